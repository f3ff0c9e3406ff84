"""Noise2Net: a picture through a small network of random weights, different for each picture."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from shiftbed.augment._augmentation import Augmentation
from shiftbed.augment._registry import register
from shiftbed.corruptions._api import Picture
from shiftbed.errors import InputError, MissingExtraError
from shiftbed.models.options import IMAGENET_MEAN, IMAGENET_STD

if TYPE_CHECKING:
    import torch

__all__ = ["Noise2Net"]

_BLOCKS = 4
#: Of the Res2Net block: the parts that a signal is split into, and the planes of each.
_PARTS = 4
_PLANES = 16


@register("noise2net")
@dataclass(frozen=True, kw_only=True)
class Noise2Net(Augmentation):
    """Add to a picture what randomly initialised Res2Net blocks make of it, four times.

    Each time it is added with a strength, drawn for the picture from half of ``epsilon`` to
    ``epsilon``, where pixels are normalised as ImageNet's. It needs torch, and no weights.
    """

    by_torch = True

    epsilon: float = 0.75

    def __post_init__(self) -> None:
        if not (math.isfinite(self.epsilon) and self.epsilon > 0):
            raise InputError(f"the epsilon of noise2net is {self.epsilon}; expected above 0")

    def apply(self, pixels: Picture, key: str) -> Picture:
        """Return what a random network makes of the picture."""
        try:
            import torch
        except ImportError:
            raise MissingExtraError("noise2net", "torch") from None
        rng = self.generator(key)
        epsilon = float(rng.uniform(self.epsilon / 2, self.epsilon))
        channels = pixels.shape[2]
        mean, std = (
            torch.tensor(values if channels == 3 else [sum(values) / 3]).view(1, -1, 1, 1)
            for values in (IMAGENET_MEAN, IMAGENET_STD)
        )
        with torch.inference_mode():
            shown = torch.from_numpy(pixels).permute(2, 0, 1)[None].float().div(255)
            signal = (shown - mean) / std
            for _ in range(_BLOCKS):
                signal = signal + epsilon * _block(signal, rng)
            levels = (signal * std + mean).clamp(0, 1).mul(255).round().to(torch.uint8)
            found: Picture = levels[0].permute(1, 2, 0).contiguous().numpy()
        return found


def _block(signal: torch.Tensor, rng: np.random.Generator) -> torch.Tensor:
    """Return a Res2Net bottleneck of the signal, its weights as torch would initialise them."""
    import torch
    from torch.nn import functional

    def drawn(*shape: int) -> torch.Tensor:
        bound = 1 / math.sqrt(math.prod(shape[1:]))
        return torch.from_numpy(rng.uniform(-bound, bound, shape).astype(np.float32))

    channels = signal.shape[1]
    wide = functional.conv2d(signal, drawn(_PARTS * _PLANES, channels, 1, 1))
    parts = torch.split(functional.relu(_normalised(wide)), _PLANES, dim=1)
    done, last = [], torch.zeros(())
    for part in parts[:-1]:
        side, dilation = int(rng.choice([1, 3])), int(rng.integers(1, 4))
        weight = drawn(_PLANES, _PLANES, side, side)
        padding = (side - 1) // 2 * dilation
        made = functional.conv2d(part + last, weight, padding=padding, dilation=dilation)
        last = functional.relu(_normalised(made))
        done.append(last)
    together = torch.cat([*done, parts[-1]], dim=1)
    return _normalised(functional.conv2d(together, drawn(channels, _PARTS * _PLANES, 1, 1)))


def _normalised(signal: torch.Tensor) -> torch.Tensor:
    """Return a signal whose channels have mean 0 and variance 1 over the picture."""
    centred = signal - signal.mean((2, 3), keepdim=True)
    scale: torch.Tensor = (centred.square().mean((2, 3), keepdim=True) + 1e-5).rsqrt()
    return centred * scale
