"""Random erasing: a rectangle of the picture is painted over."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from shiftbed.augment._augmentation import Augmentation
from shiftbed.augment._registry import register
from shiftbed.corruptions._api import Picture
from shiftbed.errors import InputError

__all__ = ["RandomErasing"]

#: As often a rectangle is drawn anew that would not fit.
_TRIES = 10


@register("random_erasing")
@dataclass(frozen=True, kw_only=True)
class RandomErasing(Augmentation):
    """Paint over a rectangle, with one colour drawn at random or with noise.

    Its area is ``least`` to ``most`` of the picture's, and its height ``narrowest`` times its
    width to the inverse of that. ``probability`` of the pictures are changed.
    """

    probability: float = 0.5
    least: float = 0.02
    most: float = 0.33
    narrowest: float = 0.3
    #: Each pixel has a colour of its own.
    pixelwise: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.probability <= 1:
            raise InputError(f"the probability is {self.probability}; expected 0 to 1")
        if not 0 < self.least <= self.most <= 1:
            raise InputError(
                f"random erasing was given areas of {self.least} to {self.most}; "
                "expected parts of the picture, as in 0.02 to 0.33"
            )
        if not 0 < self.narrowest <= 1:
            raise InputError(f"the narrowest shape is {self.narrowest}; expected above 0 to 1")

    def apply(self, pixels: Picture, key: str) -> Picture:
        """Return the picture with its rectangle."""
        rng = self.generator(key)
        erased = pixels.copy()
        if rng.random() >= self.probability:
            return erased
        height, width, channels = pixels.shape
        for _ in range(_TRIES):
            area = rng.uniform(self.least, self.most) * height * width
            shape = math.exp(rng.uniform(math.log(self.narrowest), -math.log(self.narrowest)))
            down, across = round(math.sqrt(area * shape)), round(math.sqrt(area / shape))
            if 0 < down <= height and 0 < across <= width:
                top = int(rng.integers(height - down + 1))
                left = int(rng.integers(width - across + 1))
                size = (down, across, channels) if self.pixelwise else channels
                erased[top : top + down, left : left + across] = rng.integers(
                    0, 256, size, np.uint8
                )
                break
        return erased
