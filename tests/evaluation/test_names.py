"""NAME=SPEC names a model, on the command line as in Python."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from shiftbed import evaluate
from shiftbed.data import ArraySet
from shiftbed.errors import InputError

PHOTOS = ArraySet(
    "photos", np.zeros((4, 8, 8, 3), np.uint8), labels=np.arange(4) % 2, classes=["a", "b"]
)


def test_a_model_is_named_before_its_spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "nets.py").write_text(
        "import numpy as np\n"
        "def build():\n"
        "    return lambda batch: np.stack([batch.mean((1, 2, 3)), 0 * batch[:, 0, 0, 0]], 1)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    run = evaluate(
        ["new=python:nets:build", "last=python:nets:build"],
        data=PHOTOS,
        baseline="last",
        outputs=2,
        size=8,
        results=tmp_path / "results",
        quiet=True,
    )
    assert run.models == ["new", "last"]
    assert run.baseline == "last"


def test_a_name_is_of_one_model(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"both is the name of one model, but package:eff\* means"):
        evaluate(["both=package:eff*"], data=PHOTOS, results=tmp_path)
