"""A small autoencoder of one's own, trained in minutes on any pictures."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional

from shiftbed.augment.deep.network import CLEAN, ImageToImage, Tap, network

__all__ = ["Autoencoder"]

_WIDTH = 32
_SHARE = 0.2


class _Block(nn.Module):
    """Two convolutions beside the signal."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(width, width, 3, padding=1)
        self.second = nn.Conv2d(width, width, 3, padding=1)

    def forward(self, signal: torch.Tensor) -> torch.Tensor:
        changed: torch.Tensor = self.second(functional.relu(self.first(signal)))
        return signal + changed


@network("autoencoder")
class Autoencoder(ImageToImage):
    """Halves the picture twice, works on it in residual blocks, and doubles it twice.

    `shiftbed train autoencoder` trains one.
    """

    layers = {  # noqa: RUF012
        **{f"inner.{block}.{conv}": 1.0 for block in range(4) for conv in ("first", "second")},
        **{f"outer.{block}.{conv}": 0.5 for block in range(2) for conv in ("first", "second")},
        "shrinking.1": _SHARE,
        "growing.0": _SHARE,
    }
    places = {0: 0.1, 1: _SHARE, 2: 0.5, 3: 0.5, 4: 0.5, 5: _SHARE, 6: _SHARE, 7: _SHARE}  # noqa: RUF012
    skippable = (2, 3, 4, 5, 7, 8)
    distortions = 3
    multiple = 4

    def __init__(self) -> None:
        super().__init__()
        width = _WIDTH
        self.shrinking = nn.ModuleList(
            [nn.Conv2d(3, width, 3, 2, 1), nn.Conv2d(width, 2 * width, 3, 2, 1)]
        )
        self.inner = nn.ModuleList(_Block(2 * width) for _ in range(4))
        self.growing = nn.ModuleList(
            [nn.Conv2d(2 * width, width, 3, 1, 1), nn.Conv2d(width, 3, 3, 1, 1)]
        )
        self.outer = nn.ModuleList(_Block(width) for _ in range(2))

    def forward(
        self, pixels: torch.Tensor, tap: Tap = CLEAN, draw: Callable[..., torch.Tensor] = torch.rand
    ) -> torch.Tensor:
        """Return the picture that comes out."""
        signal = pixels - 0.5
        for place, halve in enumerate(self.shrinking):
            signal = tap.after(place, functional.relu(halve(signal)))
        signal = self._through(self.inner, 2, signal, tap)
        signal = tap.after(6, functional.relu(self.growing[0](_doubled(signal))))
        signal = self._through(self.outer, 7, signal, tap)
        pictures: torch.Tensor = self.growing[1](_doubled(signal)) + 0.5
        return pictures

    def _through(
        self, blocks: nn.ModuleList, first: int, signal: torch.Tensor, tap: Tap
    ) -> torch.Tensor:
        for place, block in enumerate(blocks, start=first):
            if not tap.skips(place):
                signal = tap.after(place, block(signal))
        return signal


def _doubled(signal: torch.Tensor) -> torch.Tensor:
    """Return a signal twice as large, smooth, so that no distortion shows as a grid."""
    return functional.interpolate(signal, scale_factor=2, mode="bilinear", align_corners=False)
