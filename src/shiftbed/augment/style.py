"""Stylized pictures: the content of one in the style of another, by AdaIN."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from shiftbed.augment._augmentation import Augmentation
from shiftbed.augment._registry import register
from shiftbed.corruptions._api import Picture
from shiftbed.data import UnreadablePicture, open_set
from shiftbed.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    pass

__all__ = ["Stylized"]

#: The shorter side that a larger style is shrunk to.
_STYLE_SIDE = 256


@register("stylized")
@dataclass(frozen=True, kw_only=True)
class Stylized(Augmentation):
    """Paint a picture in the style of another, drawn from a set of ``styles``.

    Its features are given the means and deviations of the style's (Huang and Belongie, 2017),
    in part (``alpha``). ``encoder`` and ``decoder`` are files of weights under the names that
    PyTorch users publish them with (``vgg_normalised.pth`` and ``decoder.pth``).
    """

    by_torch = True

    styles: str
    encoder: str
    decoder: str
    alpha: float = 1.0

    def __post_init__(self) -> None:
        if not 0 <= self.alpha <= 1:
            raise InputError(f"the alpha of stylized is {self.alpha}; expected 0 to 1")
        try:
            from shiftbed.augment.deep import adain
        except ImportError:
            raise MissingExtraError("stylized", "torch") from None
        adain.load(str(self.encoder), str(self.decoder))
        if not len(open_set(str(self.styles))):
            raise InputError(f"{self.styles} holds no pictures; stylized needs some for styles")

    def apply(self, pixels: Picture, key: str) -> Picture:
        """Return the picture in the style of another."""
        import torch

        from shiftbed.augment.deep import adain

        if pixels.shape[2] != 3:
            raise InputError(
                "stylized takes pictures of 3 channels, RGB, but one of "
                f"{pixels.shape[2]} was given"
            )
        rng = self.generator(key)
        style = _style(str(self.styles), float(rng.random()))
        encoder, decoder = adain.load(str(self.encoder), str(self.decoder))
        with torch.inference_mode():
            made = adain.stylized(
                encoder, decoder, adain.as_pixels(pixels), adain.as_pixels(style), self.alpha
            )
            levels = made.clamp(0, 1).mul(255).round().to(torch.uint8)
            found: Picture = levels[0].permute(1, 2, 0).contiguous().numpy()
        return found


@functools.lru_cache(maxsize=64)
def _style(styles: str, luck: float) -> Picture:
    """Return one of the styles; one that cannot be read gives way to the next."""
    import cv2

    pictures = open_set(styles)
    first = int(luck * len(pictures))
    for step in range(len(pictures)):
        try:
            picture = pictures.load((first + step) % len(pictures))
        except UnreadablePicture:
            continue
        if picture.ndim == 2:
            picture = np.repeat(picture[..., None], 3, axis=2)
        scale = min(1.0, _STYLE_SIDE / min(picture.shape[:2]))
        size = tuple(max(1, round(side * scale)) for side in picture.shape[1::-1])
        return np.asarray(cv2.resize(picture, size, interpolation=cv2.INTER_AREA), np.uint8)
    raise InputError(f"none of the pictures of {Path(styles).name} can be read")
