"""Heaps of small pictures, and models that see nothing but their colours."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image

from shiftbed.models import Model, load

COLOURS = ("red", "green", "blue")


def picture(seed: int, colour: int, tint: float = 60.0, side: int = 24) -> Image.Image:
    """A picture of random blocks, all over of a colour."""
    rng = np.random.default_rng(seed)
    small = rng.integers(20, 180, (side // 4, side // 4, 3)).astype(float)
    small[..., colour] += tint
    pixels = np.kron(small.clip(0, 255), np.ones((4, 4, 1)))
    return Image.fromarray(pixels.astype(np.uint8))


def photo(seed: int, colour: int) -> Image.Image:
    """A smooth picture of 96 pixels, which stays what it is when it is resized or compressed."""
    return picture(seed, colour, side=32).resize((96, 96), Image.Resampling.BICUBIC)


def make_heap(root: Path, pictures: int, *, wrong: float = 0.4, seed: int = 0) -> Path:
    """A folder per colour; a share of the pictures is of another colour than its folder says."""
    rng = np.random.default_rng(seed)
    for number in range(pictures):
        label = int(rng.integers(len(COLOURS)))
        shown = int((label + rng.integers(1, 3)) % 3) if rng.random() < wrong else label
        folder = root / COLOURS[label]
        folder.mkdir(parents=True, exist_ok=True)
        tint = float(rng.uniform(20, 70))
        picture(10_000 * seed + number, shown, tint).save(folder / f"{number:05}.png")
    return root


def by_mean(batch: npt.NDArray[np.uint8]) -> npt.NDArray[np.float64]:
    """Say the colour that there is most of."""
    return batch.mean((1, 2)) / 4


def by_middle(batch: npt.NDArray[np.uint8]) -> npt.NDArray[np.float64]:
    """Say the colour that there is most of around the middle."""
    return batch[:, 4:-4, 4:-4].mean((1, 2)) / 6


def models() -> list[Model]:
    """Two filter models, which look at 20 pixels out of 24."""
    how = {"outputs": 3, "size": 20, "resize": 24, "channels": 3, "classes": COLOURS}
    return [load(by_mean, name="mean", **how), load(by_middle, name="middle", **how)]


def slow() -> Callable[[npt.NDArray[np.uint8]], npt.NDArray[np.float64]]:
    """A model for the command line, which takes its time and writes down how much it has seen."""
    log = os.open("shown.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def predict(batch: npt.NDArray[np.uint8]) -> npt.NDArray[np.float64]:
        os.write(log, f"{len(batch)}\n".encode())
        time.sleep(0.02)
        return by_mean(batch)

    return predict


def colours() -> Callable[[npt.NDArray[np.uint8]], npt.NDArray[np.float64]]:
    """A model for the command line."""
    return by_mean
