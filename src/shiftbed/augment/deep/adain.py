"""Adaptive instance normalisation: an encoder, a decoder, and what happens between them."""

from __future__ import annotations

import functools

import numpy as np
import torch
from torch import nn

from shiftbed.corruptions._api import Picture
from shiftbed.models._torch import read_checkpoint
from shiftbed.models.sources.torch import fill

__all__ = ["as_pixels", "load", "stylized"]

#: VGG-19 up to its tenth convolution but one: the widths of the convolutions, and None where
#: the picture is halved.
_ENCODER = (64, 64, None, 128, 128, None, 256, 256, 256, 256, None, 512)
_DECODER = (256, None, 256, 256, 256, 128, None, 128, 64, None, 64, 3)


def _encoder() -> nn.Sequential:
    """Return the encoder, whose first layer brings pixels to what VGG was trained on."""
    layers: list[nn.Module] = [nn.Conv2d(3, 3, 1)]
    width = 3
    for wider in _ENCODER:
        if wider is None:
            layers.append(nn.MaxPool2d(2, 2, ceil_mode=True))
            continue
        layers += [nn.ReflectionPad2d(1), nn.Conv2d(width, wider, 3), nn.ReLU()]
        width = wider
    return nn.Sequential(*layers)


def _decoder() -> nn.Sequential:
    layers: list[nn.Module] = []
    width = 512
    for narrower in _DECODER:
        if narrower is None:
            layers.append(nn.Upsample(scale_factor=2, mode="nearest"))
            continue
        layers += [nn.ReflectionPad2d(1), nn.Conv2d(width, narrower, 3), nn.ReLU()]
        width = narrower
    return nn.Sequential(*layers[:-1])  # pixels come out as they are


@functools.lru_cache(maxsize=2)
def load(encoder: str, decoder: str) -> tuple[nn.Module, nn.Module]:
    """Return both networks with the weights of two files."""
    front, back = _encoder(), _decoder()
    own = front.state_dict()
    # The published file goes on to deeper layers, which nothing here looks at.
    fill(
        front,
        {k: v for k, v in read_checkpoint(encoder).items() if k in own},
        encoder,
        "AdaIN's encoder",
    )
    fill(back, read_checkpoint(decoder), decoder, "AdaIN's decoder")
    return front.eval().requires_grad_(False), back.eval().requires_grad_(False)


def as_pixels(picture: Picture) -> torch.Tensor:
    """Return a picture as pixels in [0, 1], (1, 3, H, W)."""
    return torch.from_numpy(np.ascontiguousarray(picture)).permute(2, 0, 1)[None].float().div(255)


def stylized(
    encoder: nn.Module, decoder: nn.Module, content: torch.Tensor, style: torch.Tensor, alpha: float
) -> torch.Tensor:
    """Return the content's pixels with the style's features, as large as the content."""
    features, (mean, deviation) = encoder(content), _statistics(encoder(style))
    own_mean, own_deviation = _statistics(features)
    moved = (features - own_mean) / own_deviation * deviation + mean
    made: torch.Tensor = decoder(alpha * moved + (1 - alpha) * features)
    # The encoder rounds sides up to whole eighths.
    return made[..., : content.shape[2], : content.shape[3]]


def _statistics(features: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    variance, mean = torch.var_mean(features, (2, 3), keepdim=True)
    return mean, (variance + 1e-5).sqrt()
