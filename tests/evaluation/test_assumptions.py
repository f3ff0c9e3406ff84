"""What nobody said of a model's outputs is said by the run."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import shiftbed as sb
from shiftbed.data import ArraySet
from shiftbed.evaluation import described, prepare

PIXELS = np.random.default_rng(0).integers(0, 256, (4, 8, 8, 3)).astype(np.uint8)


def redness(batch: np.ndarray) -> np.ndarray:
    return batch.mean((1, 2))[:, :2]


def test_classes_that_are_taken_in_order_are_named(tmp_path: Path) -> None:
    pets = ArraySet("pets", PIXELS, [0, 1, 1, 0], ["cat", "dog"])
    run = sb.evaluate(redness, data=pets, results=tmp_path / "a", quiet=True, channels=3)
    said = " ".join(str(run).split())
    assert "Nothing says what the outputs of redness mean: they are read as the classes" in said
    assert "of pets in this order: cat, dog." in said
    plan, _ = prepare(redness, data=pets, results=tmp_path / "b", channels=3)
    assert "outputs of redness mean" in described(plan)
    named = sb.evaluate(
        redness, data=pets, results=tmp_path / "c", quiet=True, channels=3, classes=("dog", "cat")
    )
    assert "Nothing says" not in str(named)
    assert named.table()["accuracy"][0].as_py() == 1 - run.table()["accuracy"][0].as_py()


def test_numbers_name_themselves(tmp_path: Path) -> None:
    digits = ArraySet("digits", PIXELS, [0, 1, 1, 0])
    assert "Nothing says" not in str(
        sb.evaluate(redness, data=digits, results=tmp_path, quiet=True, channels=3)
    )
