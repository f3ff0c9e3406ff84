"""A compressive autoencoder (after Theis et al., 2017): a picture through 32 bits per 4 x 4."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from shiftbed.augment.deep.network import CLEAN, ImageToImage, Tap, network

__all__ = ["CAE"]


def _residual() -> nn.Sequential:
    return nn.Sequential(
        nn.ZeroPad2d(1),
        nn.Conv2d(128, 128, 3),
        nn.LeakyReLU(),
        nn.ZeroPad2d(1),
        nn.Conv2d(128, 128, 3),
    )


def _halving(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(
        nn.ZeroPad2d((1, 2, 1, 2)), nn.Conv2d(inputs, outputs, 5, stride=2), nn.LeakyReLU()
    )


def _doubling(inputs: int, hidden: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, hidden, 3),
        nn.LeakyReLU(),
        nn.ZeroPad2d(1),
        nn.ConvTranspose2d(hidden, outputs, 2, stride=2),
    )


#: Of a layer that everything passes through, about as much as the paper's code distorts.
_SHARE = 0.15
_BLOCKS = [f"{half}_block_{number}" for half in "ed" for number in (1, 2, 3)]


@network("cae")
class CAE(ImageToImage):
    """Codes a picture, with random bits where it is undecided, and decodes it.

    The names of its weights are those of the file that DeepAugment's authors use.
    """

    #: From the second convolution of the encoder's second block to the last of the decoder's.
    layers = {  # noqa: RUF012
        **{f"{block}.{conv}": 0.5 for block in _BLOCKS[2:] for conv in (1, 4)},
        "e_conv_3.0": _SHARE,
        "d_up_conv_1.0": _SHARE,
    }
    places = {place: _SHARE for place in range(2, 10)}  # noqa: C420, RUF012
    skippable = (2, 3, 4, 7, 8, 9)
    multiple = 4

    def __init__(self) -> None:
        super().__init__()
        self.e_conv_1 = _halving(3, 64)
        self.e_conv_2 = _halving(64, 128)
        self.e_block_1, self.e_block_2, self.e_block_3 = _residual(), _residual(), _residual()
        self.e_conv_3 = nn.Sequential(nn.Conv2d(128, 32, 5, padding=2), nn.Tanh())
        self.d_up_conv_1 = _doubling(32, 64, 128)
        self.d_block_1, self.d_block_2, self.d_block_3 = _residual(), _residual(), _residual()
        self.d_up_conv_2 = _doubling(128, 32, 256)
        self.d_up_conv_3 = nn.Sequential(
            nn.Conv2d(256, 16, 3),
            nn.LeakyReLU(),
            nn.ReflectionPad2d(2),
            nn.Conv2d(16, 3, 3),
            nn.Tanh(),
        )

    def forward(
        self, pixels: torch.Tensor, tap: Tap = CLEAN, draw: Callable[..., torch.Tensor] = torch.rand
    ) -> torch.Tensor:
        """Return the picture that comes out."""
        signal = tap.after(1, self.e_conv_2(tap.after(0, self.e_conv_1(pixels))))
        for place, block in enumerate((self.e_block_1, self.e_block_2, self.e_block_3), start=2):
            if not tap.skips(place):
                signal = tap.after(place, block(signal) + signal)
        code = tap.after(5, self.e_conv_3(signal))
        # Each value becomes -1 or 1, at random, so that it is itself in the mean.
        bits = torch.where(draw(code.shape) <= (1 + code) / 2, 1.0, -1.0)
        signal = tap.after(6, self.d_up_conv_1(bits))
        for place, block in enumerate((self.d_block_1, self.d_block_2, self.d_block_3), start=7):
            if not tap.skips(place):
                signal = tap.after(place, block(signal) + signal)
        decoded: torch.Tensor = self.d_up_conv_3(self.d_up_conv_2(signal))
        return decoded
