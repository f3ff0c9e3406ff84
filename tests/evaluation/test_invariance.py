"""No score depends on the order of pictures, the batch size or the number of workers."""

from __future__ import annotations

import dataclasses
import shutil
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import shiftbed as sb
from shiftbed.data import ArraySet, Card, Frames, ImageSet

COUNT = 12
RNG = np.random.default_rng(4)
PIXELS = RNG.integers(0, 256, (COUNT, 32, 32, 3)).astype(np.uint8)
IDS = [f"picture-{number}" for number in range(COUNT)]
LABELS = RNG.integers(0, 3, COUNT)
TRUTH = RNG.integers(0, 2, (COUNT, 3)).astype(bool)
SCENES = np.repeat([f"scene-{number}" for number in range(4)], 3)
OFFSETS = np.tile([-2, 0, 2], 4)
NAMES = ["a", "b", "c"]


def labelled(order: Sequence[int]) -> ImageSet:
    return ArraySet("labelled", PIXELS[order], LABELS[order], NAMES, [IDS[one] for one in order])


def several(order: Sequence[int]) -> ImageSet:
    images = ArraySet("several", PIXELS[order], TRUTH[order], NAMES, [IDS[one] for one in order])
    vars(images)["card"] = Card("several", score="map")
    return images


def frames(order: Sequence[int]) -> ImageSet:
    images = ArraySet("frames", PIXELS[order], LABELS[order], NAMES, [IDS[one] for one in order])
    vars(images)["card"] = Card("frames", score="pm10")
    vars(images)["frames"] = Frames(tuple(SCENES[order]), OFFSETS[order])
    return images


def unlabelled(order: Sequence[int]) -> ImageSet:
    return ArraySet("unlabelled", PIXELS[order], ids=[IDS[one] for one in order])


def brightest(batch: np.ndarray) -> np.ndarray:
    return batch.mean((1, 2), dtype=np.float64)


def striped(batch: np.ndarray) -> np.ndarray:
    return batch[:, ::3].mean((1, 2), dtype=np.float64)


def rounded(value: Any) -> Any:
    """Numbers to nine places: the order of a sum may change what is behind them."""
    if isinstance(value, dict | tuple | list):
        values = value.values() if isinstance(value, dict) else value
        return [rounded(one) for one in values]
    return round(value, 9) if isinstance(value, float) else value


def numbers(images: ImageSet, **how: Any) -> Any:
    folder = tempfile.mkdtemp()
    try:
        run = sb.evaluate(
            {"x": brightest, "y": striped},
            "+{clean,gaussian_noise.{1,2},contrast.{1,2}}",
            images,
            results=folder,
            baseline="y",
            channels=3,
            quiet=True,
            **how,
        )
        table = [list(map(rounded, row.values())) for row in run.table().to_pylist()]
        return table, [list(map(rounded, dataclasses.astuple(score))) for score in run.scores()]
    finally:
        shutil.rmtree(folder)


@pytest.mark.parametrize("make", [labelled, several, frames, unlabelled])
def test_order_batches_and_workers_change_no_score(make: Callable[..., ImageSet]) -> None:
    in_order = numbers(make(range(COUNT)))

    @settings(max_examples=3, deadline=None, phases=[Phase.generate])
    @given(st.permutations(range(COUNT)), st.integers(1, 20), st.integers(1, 3))
    def alike(order: list[int], batch_size: int, workers: int) -> None:
        assert numbers(make(order), batch_size=batch_size, workers=workers) == in_order

    alike()
