"""EDSR: super-resolution by residual blocks (Lim et al., 2017), the baseline for four times."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional

from shiftbed.augment.deep.network import CLEAN, ImageToImage, Tap, network

__all__ = ["EDSR"]

_SCALE = 4
_BLOCKS = 16
_WIDTH = 64
#: The mean pixel of the pictures that it was trained on (DIV2K), where white is 1.
_MEAN = (0.4488, 0.4371, 0.4040)


def _conv(inputs: int, outputs: int) -> nn.Conv2d:
    return nn.Conv2d(inputs, outputs, 3, padding=1)


class _Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(_conv(_WIDTH, _WIDTH), nn.ReLU(), _conv(_WIDTH, _WIDTH))

    def forward(self, signal: torch.Tensor) -> torch.Tensor:
        changed: torch.Tensor = self.body(signal)
        return changed + signal


@network("edsr")
class EDSR(ImageToImage):
    """Shrinks the picture to a quarter of its side, and enlarges it again.

    The names of its weights are those of its authors' ``edsr_baseline_x4`` file.
    """

    layers = {f"body.{block}.body.{conv}": 1.0 for block in range(_BLOCKS) for conv in (0, 2)}  # noqa: RUF012
    #: After the head, a few channels; in the body, beside which the head's signal goes on, all.
    places = {0: 0.1, **dict.fromkeys(range(4, _BLOCKS), 1.0)}  # noqa: RUF012
    skippable = tuple(range(3, _BLOCKS + 1))
    distortions = 3
    multiple = _SCALE

    def __init__(self) -> None:
        super().__init__()
        self.sub_mean = nn.Conv2d(3, 3, 1)
        self.add_mean = nn.Conv2d(3, 3, 1)
        self.head = nn.Sequential(_conv(3, _WIDTH))
        self.body = nn.Sequential(*(_Block() for _ in range(_BLOCKS)), _conv(_WIDTH, _WIDTH))
        enlarge = [
            part for _ in range(2) for part in (_conv(_WIDTH, 4 * _WIDTH), nn.PixelShuffle(2))
        ]
        self.tail = nn.Sequential(nn.Sequential(*enlarge), _conv(_WIDTH, 3))
        with torch.no_grad():
            for shift, sign in ((self.sub_mean, -1), (self.add_mean, 1)):
                shift.weight.copy_(torch.eye(3).view(3, 3, 1, 1))
                assert shift.bias is not None
                shift.bias.copy_(sign * 255 * torch.tensor(_MEAN))

    def forward(
        self, pixels: torch.Tensor, tap: Tap = CLEAN, draw: Callable[..., torch.Tensor] = torch.rand
    ) -> torch.Tensor:
        """Return the picture that comes out."""
        small = functional.avg_pool2d(pixels, _SCALE) * 255
        head = tap.after(0, self.head(self.sub_mean(small)))
        signal = head
        for place, block in enumerate(self.body, start=1):
            if not tap.skips(place):
                signal = tap.after(place, block(signal))
        large: torch.Tensor = self.add_mean(self.tail(signal + head))
        return large / 255
