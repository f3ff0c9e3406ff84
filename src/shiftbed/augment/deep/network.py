"""What DeepAugment asks of an image-to-image network, and which networks there are."""

from __future__ import annotations

import functools
import importlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TypeVar

import torch
from torch import nn

from shiftbed.errors import InputError, unknown
from shiftbed.models._torch import read_checkpoint
from shiftbed.models.sources.torch import fill

__all__ = ["CLEAN", "ImageToImage", "Tap", "find", "load", "network", "networks"]


class Tap:
    """What is done to the signal on its way through a network: here, nothing."""

    def skips(self, place: int) -> bool:
        """Whether the block at a place is passed by."""
        return False

    def after(self, place: int, signal: torch.Tensor) -> torch.Tensor:
        """Return the signal that goes on from a place."""
        return signal


CLEAN = Tap()


class ImageToImage(nn.Module, ABC):
    """A network from pixels in [0, 1], (1, 3, H, W), to pixels of the same size.

    Its blocks have places, 0, 1, ..., at which a :class:`Tap` may change the signal. What runs
    beside a connection that skips it may be changed whole, since the picture gets through all
    the same; of the rest, only a share of the channels.
    """

    #: The layers whose weights may be distorted, and how much of their filters at once.
    layers: Mapping[str, float]
    #: The places at which signals may be distorted, and how much of their channels at once.
    places: Mapping[int, float]
    #: The places whose block may be skipped.
    skippable: tuple[int, ...] = ()
    #: How many weight distortions a refresh makes.
    distortions: int = 1
    #: A picture's sides are made multiples of this, by mirroring it at its edges.
    multiple: int = 1

    @classmethod
    def fetch(cls) -> dict[str, torch.Tensor] | None:
        """Return the weights that a package brings; None where there are none to be had."""
        return None

    @classmethod
    def renamed(cls, weights: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Return a published file's weights under this network's names."""
        return weights

    @abstractmethod
    def forward(
        self, pixels: torch.Tensor, tap: Tap = CLEAN, draw: Callable[..., torch.Tensor] = torch.rand
    ) -> torch.Tensor:
        """Return the picture that comes out. ``draw`` gives uniform values of a shape."""


Kind = TypeVar("Kind", bound=type[ImageToImage])

_MODULES = ("autoencoder", "cae", "edsr", "vgg7")
_kinds: dict[str, type[ImageToImage]] = {}


def network(name: str) -> Callable[[Kind], Kind]:
    """Give a network the name that it is chosen by."""

    def add(kind: Kind) -> Kind:
        _kinds[name] = kind
        return kind

    return add


def networks() -> Mapping[str, type[ImageToImage]]:
    """Return every image-to-image network by its name."""
    for module in _MODULES:
        importlib.import_module(f"shiftbed.augment.deep.{module}")
    return _kinds


def find(name: str) -> type[ImageToImage]:
    """Return a network's class."""
    known = networks()
    if name not in known:
        raise unknown("image-to-image network", name, known)
    return known[name]


@functools.lru_cache(maxsize=8)
def load(name: str, path: str = "") -> ImageToImage:
    """Return a network with the weights of a file, or with those that a package brings."""
    kind = find(name)
    weights = kind.renamed(read_checkpoint(path)) if path else kind.fetch()
    if weights is None:
        raise InputError(
            f"the network {name} needs weights; give a file, as in weights=FILE.safetensors"
            + (" (`shiftbed train autoencoder` makes one)" if name == "autoencoder" else "")
        )
    made = kind()
    fill(made, weights, path or "the package", name)
    return made.eval().requires_grad_(False)
