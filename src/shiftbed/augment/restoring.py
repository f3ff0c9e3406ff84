"""What may restore a corrupted picture before a model sees it; nothing in it is random."""

from __future__ import annotations

import math
from dataclasses import dataclass

import cv2
import numpy as np

from shiftbed.augment._augmentation import Augmentation
from shiftbed.augment._registry import register
from shiftbed.corruptions._api import Picture
from shiftbed.errors import InputError

__all__ = ["Clahe", "Denoise", "noise_level"]

#: The 75th percentile of the normal distribution.
_QUARTILE = 0.6744897501960817


@register("clahe")
@dataclass(frozen=True, kw_only=True)
class Clahe(Augmentation):
    """Equalise the histogram of each part of a picture, with its contrast limited.

    It is done to the lightness (CIE L*) of colours, or to grey levels, in ``tiles`` by
    ``tiles`` parts.
    """

    clip: float = 2.0
    tiles: int = 8

    def __post_init__(self) -> None:
        if not (math.isfinite(self.clip) and self.clip > 0) or not 1 <= self.tiles <= 256:
            raise InputError(
                f"clahe was given clip {self.clip} and {self.tiles} tiles; expected a clip above "
                "0 and 1 to 256 tiles a side"
            )

    def apply(self, pixels: Picture, key: str = "") -> Picture:
        """Return the equalised picture."""
        equaliser = cv2.createCLAHE(self.clip, (self.tiles, self.tiles))
        if pixels.shape[2] == 1:
            return _as_levels(equaliser.apply(pixels[..., 0])).reshape(pixels.shape)
        lab = cv2.cvtColor(pixels, cv2.COLOR_RGB2LAB)
        lab[..., 0] = equaliser.apply(lab[..., 0])
        return _as_levels(cv2.cvtColor(lab, cv2.COLOR_LAB2RGB))


@register("denoise")
@dataclass(frozen=True, kw_only=True)
class Denoise(Augmentation):
    """Average similar patches of a picture (non-local means), more where there is more noise.

    The noise of a picture is estimated as Donoho and Johnstone do, and patches are as similar
    as their distance is small beside ``strength`` times that. A clean picture is hardly changed.
    """

    strength: float = 0.8
    patch: int = 5
    window: int = 13

    def __post_init__(self) -> None:
        if not (math.isfinite(self.strength) and self.strength > 0):
            raise InputError(f"the strength is {self.strength}; expected a number above 0")
        if not all(side % 2 == 1 and 1 <= side <= 99 for side in (self.patch, self.window)):
            raise InputError(
                f"denoise was given patches of {self.patch} and a window of {self.window} pixels; "
                "expected odd numbers up to 99"
            )

    def apply(self, pixels: Picture, key: str = "") -> Picture:
        """Return the picture without its noise."""
        level = noise_level(pixels)
        if level == 0:
            return pixels.copy()
        found = cv2.fastNlMeansDenoising(
            pixels, None, self.strength * level * 255, self.patch, self.window
        )
        return _as_levels(found).reshape(pixels.shape)


def noise_level(picture: Picture) -> float:
    """Return the standard deviation of a picture's noise, where white is 1.

    It is the median of the finest diagonal wavelet coefficients' sizes (Haar), divided by the
    normal distribution's: edges and textures are few among them, and noise is in all (Donoho
    and Johnstone). Of several channels, the mean.

    >>> noisy = np.random.default_rng(0).normal(128, 20, (200, 200, 3)).astype(np.uint8)
    >>> round(noise_level(noisy) * 255, 1), noise_level(np.full((9, 9), 7, np.uint8))
    (20.0, 0.0)
    """
    height, width = (side // 2 * 2 for side in picture.shape[:2])
    if not (height and width):
        return 0.0
    values = picture[:height, :width].reshape(height, width, -1).astype(np.float32)
    even, odd = values[::2, ::2] + values[1::2, 1::2], values[::2, 1::2] + values[1::2, ::2]
    finest = np.abs(even - odd) / 2
    return float(np.mean(np.median(finest.reshape(-1, finest.shape[2]), axis=0)) / _QUARTILE / 255)


def _as_levels(pixels: cv2.typing.MatLike) -> Picture:
    return np.asarray(pixels, np.uint8)
