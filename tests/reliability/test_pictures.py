"""Broken and hostile pictures: each is scored rightly, or listed with its reason."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hostile import corpus, drawn
from PIL import Image

import shiftbed as sb
from shiftbed.errors import InputError
from shiftbed.models import Geometry

SEEN = Geometry((32, 32), (36, 36), channels=3)
#: Random, so that another picture gives another answer.
WEIGHTS = np.random.default_rng(0).normal(0, 0.01, (32 * 32 * 3, 50))


def net(batch: np.ndarray) -> np.ndarray:
    return batch.reshape(len(batch), -1).astype(np.float64) @ WEIGHTS


HOW = {"outputs": 50, "channels": 3, "size": 32, "resize": 36}


def evaluated(folder: Path, results: Path, shift: str = "clean", **how: object) -> sb.Evaluation:
    classes = [f"class {number}" for number in range(3)] + [f"other {n}" for n in range(47)]
    how = {"quiet": True, "classes": classes, **HOW, **how}
    return sb.evaluate({"net": net}, [f"+{shift}"], folder, results=results, **how)


def text(name: str) -> str:
    return name.encode("utf-8", "backslashreplace").decode()


def test_every_picture_is_scored_rightly_or_listed(tmp_path: Path) -> None:
    good, bad = corpus(tmp_path / "hostile")
    assert len(good) > 15
    assert len(bad) > 12
    run = evaluated(tmp_path / "hostile", tmp_path / "results", keep=["logits"])
    [manifest] = run.manifests()
    listed = dict(manifest.skipped)
    assert {text(name) for name in listed} == {text(name) for name in bad}
    for name, reason in listed.items():
        assert re.search(bad[name], reason), (name, reason)
    table = run.results.logits("net", "hostile").to_pylist()
    rows = {row["picture"]: row["logits"] for row in table}
    assert rows.keys() == {text(name) for name in good}
    for name, pixels in good.items():
        expected = net(SEEN.apply(pixels)[None])[0]
        np.testing.assert_allclose(rows[text(name)], expected, rtol=2e-3, atol=0.1, err_msg=name)
    [cell] = run.cells().to_pylist()
    assert cell["n"] == len(good)
    assert f"{len(bad)} of {len(good) + len(bad)} pictures of hostile could not be read" in (
        " ".join(str(run).split())
    )


@pytest.mark.parametrize("shift", ["gaussian_noise.3", "glass_blur.5", "elastic_transform.5"])
def test_under_a_shift_the_same_pictures_count(tmp_path: Path, shift: str) -> None:
    good, bad = corpus(tmp_path / "hostile")
    run = evaluated(tmp_path / "hostile", tmp_path / "results", shift)
    [manifest] = run.manifests()
    assert manifest.counts is not None
    assert (manifest.counts.pictures, manifest.counts.scored) == (len(good) + len(bad), len(good))


def test_a_strict_run_refuses_and_keeps_what_it_did(tmp_path: Path) -> None:
    corpus(tmp_path / "hostile")
    with pytest.raises(InputError, match=r"and \d+ more of hostile cannot be read \(.*strict"):
        evaluated(tmp_path / "hostile", tmp_path / "results", strict=True)
    run = evaluated(tmp_path / "hostile", tmp_path / "results")  # lenient, and it is all there
    with pytest.raises(InputError, match="cannot be read"):  # from what is there already
        evaluated(tmp_path / "hostile", tmp_path / "results", strict=True)
    for name, _ in run.manifests()[0].skipped:
        (tmp_path / "hostile" / name).unlink()
    assert evaluated(tmp_path / "hostile", tmp_path / "mended", strict=True).cells().num_rows == 1


def test_the_command_goes_on_or_is_strict(tmp_path: Path) -> None:
    good, bad = corpus(tmp_path / "hostile")
    module = "from test_pictures import net\ndef five(): return net\n"
    (tmp_path / "own.py").write_text(
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n{module}"
    )
    classes = tmp_path / "classes.txt"
    classes.write_text("".join(f"class {n}\n" for n in range(50)))
    command = [
        sys.executable,
        "-m",
        "shiftbed",
        "eval",
        "-m",
        "python:own:five",
        "--data",
        "hostile",
    ]
    command += ["--size", "32", "--classes", str(classes), "-o", "out"]

    def ran(*more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*command, *more], cwd=tmp_path, capture_output=True, text=True, check=False
        )

    refused = ran("--strict")
    assert refused.returncode == 2
    assert "strict" in refused.stderr
    assert "Traceback" not in refused.stderr
    done = ran("--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["cells"][0]["n"] == len(good)
    assert len(told["skipped"]["hostile"]) == len(bad)
    shown = ran()
    assert shown.returncode == 0
    assert "\x1b[31m" not in shown.stdout  # a file's name is no command to the terminal


def test_a_picture_that_is_spoilt_midway_is_listed(tmp_path: Path) -> None:
    folder = tmp_path / "photos" / "class 0"
    folder.mkdir(parents=True)
    for number in range(40):
        Image.fromarray(np.roll(drawn(), number, 1)).save(folder / f"{number:02}.png")
    # check_models reads the first; these go between that and their turn.
    spoilt = 0

    def spoils(batch: np.ndarray) -> np.ndarray:
        nonlocal spoilt
        if not spoilt and len(batch) == 1:
            (folder / "37.png").unlink()
            content = (folder / "38.png").read_bytes()
            (folder / "38.png").write_bytes(content[: len(content) // 2])
            spoilt += 1
        return net(batch)

    classes = [f"class {number}" for number in range(50)]
    run = sb.evaluate(
        {"net": spoils},
        data=tmp_path / "photos",
        results=tmp_path / "results",
        classes=classes,
        quiet=True,
        **HOW,
    )
    [manifest] = run.manifests()
    assert dict(manifest.skipped) == {
        "class 0/37.png": "the file is gone",
        "class 0/38.png": "truncated",
    }
    # It is not the folder any more that this cell is of, and nothing is mixed with it.
    with pytest.raises(InputError, match="differs in the pictures"):
        evaluated(tmp_path / "photos", tmp_path / "results", classes=classes)
