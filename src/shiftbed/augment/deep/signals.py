"""What DeepAugment does to the signal inside a network: a small function each, in one table.

Each takes a signal (1, channels, height, width) and the draws, and returns another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import torch
from torch.nn import functional

from shiftbed.augment.deep.network import ImageToImage, Tap

__all__ = ["SIGNAL_DISTORTIONS", "Distorted"]

Distortion = Callable[[torch.Tensor, np.random.Generator], torch.Tensor]

SIGNAL_DISTORTIONS: dict[str, Distortion] = {}


def signal_distortion(function: Distortion) -> Distortion:
    """Add a distortion of signals to those that are drawn from."""
    SIGNAL_DISTORTIONS[function.__name__] = function
    return function


def _uniform(rng: np.random.Generator, *shape: int) -> torch.Tensor:
    return torch.from_numpy(rng.random(shape, np.float32))


@signal_distortion
def dropout(signal: torch.Tensor, rng: np.random.Generator) -> torch.Tensor:
    """Make a twentieth to a fifth of the values 0."""
    return signal * (_uniform(rng, *signal.shape) >= float(rng.uniform(0.05, 0.2)))


@signal_distortion
def drop_pixels(signal: torch.Tensor, rng: np.random.Generator) -> torch.Tensor:
    """Make a fifth of the pixels 0 in all channels."""
    return signal * (_uniform(rng, *signal.shape[2:]) >= 0.2)


@signal_distortion
def gelu(signal: torch.Tensor, rng: np.random.Generator) -> torch.Tensor:
    """Send the signal through another activation function."""
    return functional.gelu(signal) if rng.random() < 0.5 else functional.relu(signal)


@signal_distortion
def negate(signal: torch.Tensor, rng: np.random.Generator) -> torch.Tensor:
    """Turn the sign."""
    return -signal


@signal_distortion
def negate_some(signal: torch.Tensor, rng: np.random.Generator) -> torch.Tensor:
    """Turn the sign of a fortieth of the values, or of a tenth of the pixels."""
    if rng.random() < 0.5:
        return torch.where(_uniform(rng, *signal.shape) < 0.025, -signal, signal)
    return torch.where(_uniform(rng, *signal.shape[2:]) < 0.1, -signal, signal)


@signal_distortion
def flip(signal: torch.Tensor, rng: np.random.Generator) -> torch.Tensor:
    """Flip left to right or upside down, and perhaps the channels' order."""
    flipped = signal.flip(int(rng.integers(2, 4)))
    return flipped.flip(1) if rng.random() < 0.5 else flipped


@signal_distortion
def swap_channels(signal: torch.Tensor, rng: np.random.Generator) -> torch.Tensor:
    """Swap five pairs of channels."""
    order = np.arange(signal.shape[1])
    for one, other in rng.integers(len(order), size=(5, 2)):
        order[[one, other]] = order[[other, one]]
    return signal[:, order]


@signal_distortion
def shuffle_channels(signal: torch.Tensor, rng: np.random.Generator) -> torch.Tensor:
    """Put up to ten channels in another order."""
    order = np.arange(signal.shape[1])
    chosen = rng.permutation(len(order))[:10]
    order[np.sort(chosen)] = chosen
    return signal[:, order]


@signal_distortion
def shift_channels(signal: torch.Tensor, rng: np.random.Generator) -> torch.Tensor:
    """Move each channel by up to a pixel each way."""
    channels = signal.shape[1]
    kernel = torch.zeros(channels, 1, 3, 3)
    kernel[
        np.arange(channels), 0, rng.integers(3, size=channels), rng.integers(3, size=channels)
    ] = 1
    return functional.conv2d(signal, kernel, padding=1, groups=channels)


@signal_distortion
def mix_channels(signal: torch.Tensor, rng: np.random.Generator) -> torch.Tensor:
    """Let each channel leak into the others, with random weights."""
    channels = signal.shape[1]
    leak = (_uniform(rng, channels, channels, 1, 1) - 0.5) * (0.6 / channels**0.5)
    return functional.conv2d(signal, torch.eye(channels)[:, :, None, None] + leak)


@signal_distortion
def add_channels(signal: torch.Tensor, rng: np.random.Generator) -> torch.Tensor:
    """Add to about half of the channels another one."""
    channels = signal.shape[1]
    other = signal[:, rng.integers(channels, size=channels)]
    return signal + other * (_uniform(rng, channels, 1, 1) < 0.5)


@signal_distortion
def multiply_noise(signal: torch.Tensor, rng: np.random.Generator) -> torch.Tensor:
    """Multiply each value by a factor of its own, from 1 to at most 3."""
    return signal * (1 + 2 * float(rng.random()) * _uniform(rng, *signal.shape))


class Distorted(Tap):
    """One or two distortions at places of a network, or up to three blocks that are skipped."""

    def __init__(self, network: ImageToImage, rng: np.random.Generator) -> None:
        self._rng = rng
        self._skipped: frozenset[int] = frozenset()
        self._at: dict[int, list[Distortion]] = {}
        self._shares: Mapping[int, float] = network.places
        kinds, places = list(SIGNAL_DISTORTIONS.values()), list(network.places)
        # Skipping blocks is one more distortion, of a network that has such.
        choices = len(kinds) + (1 if network.skippable else 0)
        for _ in range(int(rng.integers(1, 3))):
            choice = int(rng.integers(choices))
            if choice == len(kinds):
                skipped = rng.choice(network.skippable, int(rng.integers(1, 4)))
                self._skipped = frozenset(int(place) for place in skipped)
            else:
                place = places[int(rng.integers(len(places)))]
                self._at.setdefault(place, []).append(kinds[choice])

    def skips(self, place: int) -> bool:
        """Whether the block at a place is passed by."""
        return place in self._skipped

    def after(self, place: int, signal: torch.Tensor) -> torch.Tensor:
        """Return the signal, distorted in a share of its channels."""
        for distort in self._at.get(place, ()):
            channels = signal.shape[1]
            count = max(1, round(self._shares[place] * channels))
            chosen = torch.from_numpy(self._rng.permutation(channels) < count)
            signal = torch.where(chosen.view(1, -1, 1, 1), distort(signal, self._rng), signal)
        return signal
