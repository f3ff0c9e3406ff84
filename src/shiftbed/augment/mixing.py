"""AugMix: chains of simple operations, mixed with each other and with the picture."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from shiftbed.augment._augmentation import Augmentation
from shiftbed.augment._registry import register
from shiftbed.corruptions._api import Picture
from shiftbed.errors import InputError

__all__ = ["OPERATIONS", "AugMix"]

#: Of a picture, a strength in [0, 1], and a sign that operations with a direction take.
Operation = Callable[[Picture, float, int], Picture]

OPERATIONS: dict[str, Operation] = {}


def operation(function: Operation) -> Operation:
    """Add an operation to those that AugMix draws from.

    None may be a corruption of the benchmarks: a network is not to be trained on its test.
    """
    OPERATIONS[function.__name__] = function
    return function


@operation
def autocontrast(picture: Picture, strength: float, sign: int) -> Picture:
    """Stretch each channel to black and white."""
    present = _counts(picture) > 0
    low = present.argmax(axis=0).astype(np.float64)
    high = 255.0 - present[::-1].argmax(axis=0)
    scale = np.divide(255.0, high - low, out=np.ones_like(low), where=high > low)
    start = np.where(high > low, -low * scale, 0.0)
    return _mapped(picture, np.clip(np.arange(256)[:, None] * scale + start, 0, 255))


@operation
def equalize(picture: Picture, strength: float, sign: int) -> Picture:
    """Spread each channel's levels, so that each occurs about equally often."""
    counts = _counts(picture)
    levels = np.repeat(np.arange(256)[:, None], picture.shape[2], axis=1)
    for channel, count in enumerate(counts.T):
        step = (count.sum() - count[np.flatnonzero(count)[-1]]) // 255
        if step:
            levels[:, channel] = (np.cumsum(count) - count + step // 2) // step
    return _mapped(picture, np.minimum(levels, 255))


@operation
def posterize(picture: Picture, strength: float, sign: int) -> Picture:
    """Keep the highest 4 to 1 bits of each level."""
    kept = max(4 - int(4 * strength), 1)
    return picture & np.uint8(256 - 2 ** (8 - kept))


@operation
def solarize(picture: Picture, strength: float, sign: int) -> Picture:
    """Invert the levels above a threshold."""
    levels = np.arange(256)[:, None]
    threshold = 256 - int(256 * strength)
    inverted = np.where(levels < threshold, levels, 255 - levels)
    return _mapped(picture, np.repeat(inverted, picture.shape[2], axis=1))


@operation
def rotate(picture: Picture, strength: float, sign: int) -> Picture:
    """Turn by up to 30 degrees about the centre."""
    turn = math.radians(30 * strength * sign)
    across, down = math.cos(turn), math.sin(turn)
    height, width = picture.shape[:2]
    x, y = (width - 1) / 2, (height - 1) / 2
    return _moved(
        picture,
        [[across, -down, x - across * x + down * y], [down, across, y - down * x - across * y]],
    )


@operation
def shear_x(picture: Picture, strength: float, sign: int) -> Picture:
    """Slant sideways by up to 0.3 pixels a row."""
    return _moved(picture, [[1, 0.3 * strength * sign, 0], [0, 1, 0]])


@operation
def shear_y(picture: Picture, strength: float, sign: int) -> Picture:
    """Slant upwards by up to 0.3 pixels a column."""
    return _moved(picture, [[1, 0, 0], [0.3 * strength * sign, 1, 0]])


@operation
def translate_x(picture: Picture, strength: float, sign: int) -> Picture:
    """Move sideways by up to a third of the width."""
    return _stepped(picture, int(picture.shape[1] / 3 * strength) * sign, axis=1)


@operation
def translate_y(picture: Picture, strength: float, sign: int) -> Picture:
    """Move up or down by up to a third of the height."""
    return _stepped(picture, int(picture.shape[0] / 3 * strength) * sign, axis=0)


@register("augmix")
@dataclass(frozen=True, kw_only=True)
class AugMix(Augmentation):
    """Mix chains of simple operations with each other, then with the picture.

    Each of ``width`` chains is 1 to 3 operations long, or ``depth``; an operation's strength is
    up to ``severity`` tenths of its range. The chains' weights are drawn from a Dirichlet
    distribution, and the picture's own from a beta distribution, both with ``alpha``. Defaults
    are those of the method's authors for CIFAR; for ImageNet they have severity 1. Train with
    :func:`jensen_shannon` on two views and the picture itself.
    """

    severity: float = 3.0
    width: int = 3
    depth: int = 0
    alpha: float = 1.0

    def __post_init__(self) -> None:
        if not 0.1 <= self.severity <= 10:
            raise InputError(f"the severity of augmix is {self.severity}; expected 0.1 to 10")
        if not 1 <= self.width <= 100 or not 0 <= self.depth <= 100:
            raise InputError(
                f"augmix was given width {self.width} and depth {self.depth}; expected a width of "
                "1 to 100, and a depth of 1 to 100, or 0 for 1 to 3 at random"
            )
        if not (math.isfinite(self.alpha) and self.alpha > 0):
            raise InputError(f"the alpha of augmix is {self.alpha}; expected a number above 0")

    def apply(self, pixels: Picture, key: str) -> Picture:
        """Return the mixture."""
        rng = self.generator(key)
        operations = list(OPERATIONS.values())
        weights = rng.dirichlet([self.alpha] * self.width)
        share = float(rng.beta(self.alpha, self.alpha))
        mixed = pixels.astype(np.float32)
        given = 1 - share
        for weight in share * weights:
            chain = pixels
            for _ in range(self.depth or int(rng.integers(1, 4))):
                change = operations[int(rng.integers(len(operations)))]
                strength = float(rng.uniform(0.1, self.severity)) / 10
                chain = change(chain, strength, 1 if rng.random() < 0.5 else -1)
            given += weight
            # A running mean: each chain counts as its part of what was given so far.
            cv2.accumulateWeighted(chain, mixed, min(weight / given, 1.0) if given else 0.0)
        return cv2.convertScaleAbs(mixed).reshape(pixels.shape).astype(np.uint8, copy=False)


def _counts(picture: Picture) -> npt.NDArray[np.int64]:
    """Return how often each level occurs in each channel, (256, channels)."""
    every = range(picture.shape[2])
    counts = [cv2.calcHist([picture], [channel], None, [256], [0, 256]) for channel in every]
    return np.stack([count.ravel() for count in counts], axis=1).astype(np.int64)


def _mapped(picture: Picture, levels: npt.NDArray[np.generic]) -> Picture:
    """Return a picture whose levels are looked up in a table of each channel's own."""
    table = levels.astype(np.uint8).reshape(256, 1, picture.shape[2])
    return cv2.LUT(picture, table).reshape(picture.shape).astype(np.uint8, copy=False)


def _stepped(picture: Picture, steps: int, axis: int) -> Picture:
    """Return a picture moved by whole pixels along an axis, with black where it was."""
    moved = np.roll(picture, steps, axis)
    left = slice(None, steps) if steps >= 0 else slice(steps, None)
    moved[(slice(None),) * axis + (left,)] = 0
    return moved


def _moved(picture: Picture, matrix: list[list[float]]) -> Picture:
    """Return a picture moved by an affine map, with black around it."""
    height, width = picture.shape[:2]
    moved = cv2.warpAffine(picture, np.array(matrix, np.float64), (width, height))
    return moved.reshape(picture.shape).astype(np.uint8, copy=False)
