"""DeepAugment: pictures through image-to-image networks that are distorted at random."""

from __future__ import annotations

import copy
import functools
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from shiftbed.augment._augmentation import Augmentation
from shiftbed.augment._registry import register
from shiftbed.corruptions._api import Picture
from shiftbed.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    import torch

    from shiftbed.augment.deep.network import ImageToImage

__all__ = ["DeepAugment", "refreshed_at"]


@register("deepaugment")
@dataclass(frozen=True, kw_only=True)
class DeepAugment(Augmentation):
    """Send pictures through a network whose weights and signals are distorted at random.

    The ``network`` is ``edsr``, ``cae``, ``autoencoder`` or ``vgg7``; ``weights`` is a file of
    its weights, which only vgg7 can do without: its own are fetched. New distortions of the
    weights are drawn with probability ``refresh`` for each picture, and of the signals for
    every picture.

    A key that ends in a colon and a number is a place in an order, as
    :class:`AugmentedDataset` gives: pictures share the weights that were last refreshed before
    them, whoever computes them. A picture with another key has weights of its own.
    """

    by_torch = True

    network: str = "vgg7"
    weights: str = ""
    refresh: float = 0.05

    def __post_init__(self) -> None:
        if not 0 <= self.refresh <= 1:
            raise InputError(f"the refresh probability is {self.refresh}; expected 0 to 1")
        self.clean()

    def clean(self) -> ImageToImage:
        """Return the network as it was trained."""
        try:
            from shiftbed.augment.deep.network import load
        except ImportError:
            raise MissingExtraError("deepaugment", "torch") from None
        return load(self.network, str(self.weights))

    def apply(self, pixels: Picture, key: str) -> Picture:
        """Return what a distorted network makes of the picture."""
        import torch
        from torch.nn import functional

        from shiftbed.augment.deep.signals import Distorted

        height, width, channels = pixels.shape
        if channels != 3:
            raise InputError(
                f"deepaugment takes pictures of 3 channels, RGB, but one of {channels} was given"
            )
        network = _distorted(self, refreshed_at(key, self.refresh, self.seed))
        rng = self.generator(key)

        def draw(shape: tuple[int, ...]) -> torch.Tensor:
            return torch.from_numpy(rng.random(tuple(shape), np.float32))

        with torch.inference_mode():
            shown = torch.from_numpy(pixels).permute(2, 0, 1)[None]
            shown = shown.contiguous(memory_format=torch.channels_last).float().div(255)
            down, right = (
                max(-side % network.multiple, _SMALLEST - side) for side in (height, width)
            )
            if down or right:
                shown = functional.pad(shown, (0, right, 0, down), mode="replicate")
            made = _visible(network(shown, Distorted(network, rng), draw), shown)
            levels = made.clamp(0, 1).mul(255).round().to(torch.uint8)[0, :, :height, :width]
            found: Picture = levels.permute(1, 2, 0).contiguous().numpy()
        return found


#: A smaller picture is surrounded by what is at its edges.
_SMALLEST = 16
#: Of the picture's own deviation: with less, hardly anything is to be seen.
_FLAT = 0.25


def _visible(made: torch.Tensor, shown: torch.Tensor) -> torch.Tensor:
    """Return what came out; if that is nearly flat, with the picture's mean and deviation."""
    made = made.nan_to_num(0)
    if made.clamp(0, 1).std() >= _FLAT * shown.std():
        return made
    return (made - made.mean()) / made.std().clamp_min(1e-6) * shown.std() + shown.mean()


#: Each is a copy of a network; a run of pictures shares one, and threads are in a few runs.
@functools.lru_cache(maxsize=16)
def _distorted(augmentation: DeepAugment, key: str) -> ImageToImage:
    """Return a network whose weights are those drawn at a key."""
    import torch

    from shiftbed.augment.deep.weights import distorted_weights

    clean = augmentation.clean()
    with torch.inference_mode():
        weights = distorted_weights(
            clean.state_dict(),
            dict(clean.layers),
            clean.distortions,
            augmentation.generator(f"weights {key}"),
        )
    network = copy.deepcopy(clean)
    network.load_state_dict(weights)
    convert: Callable[..., Any] = network.to  # its annotations know no memory_format
    convert(memory_format=torch.channels_last)
    return network


def refreshed_at(key: str, probability: float, seed: int = 0) -> str:
    """Return the key at which the weights of a picture's network were drawn.

    >>> [refreshed_at(f"0:{place}", 0.3) for place in range(6)]
    ['0:0', '0:1', '0:2', '0:2', '0:4', '0:4']
    >>> refreshed_at("cat.jpg", 0.3)
    'cat.jpg'
    """
    stem, colon, number = key.rpartition(":")
    if not (colon and number.isdecimal()):
        return key
    place = int(number) if probability else 0
    while place > 0 and _luck(seed, stem, place) >= probability:
        place -= 1
    return f"{stem}:{place}"


def _luck(seed: int, stem: str, place: int) -> float:
    """Return a number in [0, 1) that belongs to a place of an order."""
    named = repr((seed, "refresh", stem, place)).encode("utf-8", "surrogatepass")
    digest = hashlib.blake2b(named, digest_size=8).digest()
    return int.from_bytes(digest, "little") / 2**64
