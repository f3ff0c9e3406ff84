"""Noise as an augmentation: normal, in proportion to the brightness, or uniform."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from shiftbed.augment._augmentation import Augmentation
from shiftbed.augment._registry import register
from shiftbed.corruptions import noise
from shiftbed.corruptions._api import Picture
from shiftbed.corruptions._random import Stream
from shiftbed.errors import InputError

__all__ = ["GaussianNoise", "SpeckleNoise", "UniformNoise"]


@dataclass(frozen=True, kw_only=True)
class _Noise(Augmentation):
    """Noise of a scale, where white is 1; with ``vary``, of one drawn for each picture up to it."""

    scale: float = 0.3
    vary: bool = True

    def __post_init__(self) -> None:
        if not (math.isfinite(self.scale) and self.scale > 0):
            raise InputError(f"the scale of noise is {self.scale}; expected a number above 0")

    def apply(self, pixels: Picture, key: str) -> Picture:
        """Return the picture with its noise."""
        rng = self.generator(key)
        scale = self.scale * float(rng.random()) if self.vary else self.scale
        return self.noisy(pixels, Stream.from_generator(rng), scale)

    @abstractmethod
    def noisy(self, pixels: Picture, stream: Stream, scale: float) -> Picture:
        """Return the picture with noise of a scale."""


@register("gaussian_noise")
@dataclass(frozen=True, kw_only=True)
class GaussianNoise(_Noise):
    """Add normal noise."""

    def noisy(self, pixels: Picture, stream: Stream, scale: float) -> Picture:
        """Return the picture with noise of a standard deviation."""
        return noise.gaussian_noise(pixels, stream, scale)


@register("speckle_noise")
@dataclass(frozen=True, kw_only=True)
class SpeckleNoise(_Noise):
    """Multiply each value by 1 plus normal noise."""

    scale: float = 0.6

    def noisy(self, pixels: Picture, stream: Stream, scale: float) -> Picture:
        """Return the picture with noise of a standard deviation."""
        return noise.speckle_noise(pixels, stream, scale)


@register("uniform_noise")
@dataclass(frozen=True, kw_only=True)
class UniformNoise(_Noise):
    """Add noise that is uniform in a range about 0."""

    def noisy(self, pixels: Picture, stream: Stream, scale: float) -> Picture:
        """Return the picture with noise from minus the scale to the scale."""
        added = stream.random_sample(pixels.shape) * np.float32(2 * scale) - np.float32(scale)
        noisy: Picture = np.rint(np.clip(pixels + 255 * added, 0, 255)).astype(np.uint8)
        return noisy
