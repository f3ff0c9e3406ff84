"""Networks for small pictures that the papers test and that other libraries lack.

A name says the family, the depth and the widths; the side of the pictures is free, for all end
with an average over the places. With ``s2`` after it, a network looks at every other pixel.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from shiftbed.errors import InputError

if TYPE_CHECKING:
    from torch import nn

__all__ = ["FAMILIES", "Family", "build"]


@dataclass(frozen=True)
class Family:
    """Architectures whose names differ in their numbers alone."""

    #: How a name is written, with an example's numbers.
    example: str
    about: str
    #: The numbers in a name are its groups; one that may be left out has a default.
    pattern: str
    defaults: tuple[int, ...]
    #: The smallest network of the family has this depth, and each larger one so many more.
    depth: tuple[int, int] | None = None


#: With ``s2`` at the end, the first convolution halves the sides: a quarter of the work.
_HALVED = r"(?:s(\d))?"

FAMILIES = {
    "mnist-conv1": Family("mnist-conv1", "two convolutions and two dense layers", "", ()),
    "mnist-conv2": Family("mnist-conv2", "the same, wider: Madry's network for MNIST", "", ()),
    "resnet": Family(
        "resnet20-16",
        "ResNet of 16, 32 and 64 channels",
        rf"(\d+)(?:-(\d+))?{_HALVED}",
        (20, 16, 1),
        (8, 6),
    ),
    "resnext": Family(
        "resnext29-8x32",
        "ResNeXt of 8 groups, 32 wide",
        rf"(\d+)-(\d+)x(\d+){_HALVED}",
        (29, 8, 32, 1),
        (11, 9),
    ),
    "shakeshake": Family(
        "shakeshake29-4x32",
        "ResNeXt of two branches, which Shake-Shake regularisation mixes at random",
        rf"(\d+)-(\d+)x(\d+){_HALVED}",
        (29, 4, 32, 1),
        (11, 9),
    ),
    "densenet": Family(
        "densenet40-24", "DenseNet of growth rate 24", r"(\d+)(?:-(\d+))?", (40, 12), (7, 3)
    ),
}


def build(name: str, outputs: int, channels: int = 3) -> nn.Module:
    """Return an untrained network, from normalised pixels (N, channels, H, W) to logits.

    >>> sum(one.numel() for one in build("resnet20", 10).parameters())
    272474
    """
    from shiftbed.models.architectures import cifar, mnist

    for family, told in FAMILIES.items():
        found = re.fullmatch(family + told.pattern, name)
        if found is None:
            continue
        numbers = [
            default if given is None else int(given)
            for given, default in zip(found.groups(), told.defaults, strict=True)
        ]
        if told.depth is not None:
            least, step = told.depth
            if numbers[0] < least or (numbers[0] - least) % step:
                raise InputError(
                    f"{name} cannot have {numbers[0]} layers; expected {least}, {least + step}, "
                    f"{least + 2 * step}, ..., as in {told.example}"
                )
        if not all(0 < number <= 10_000 for number in numbers):
            raise InputError(f"{name} has no size that can be built; write {told.example}")
        make: Callable[..., nn.Module] = {
            "mnist-conv1": mnist.conv1,
            "mnist-conv2": mnist.conv2,
            "resnet": cifar.resnet,
            "resnext": cifar.resnext,
            "shakeshake": cifar.shakeshake,
            "densenet": cifar.densenet,
        }[family]
        return make(*numbers, outputs=outputs, channels=channels)
    forms = ", ".join(told.example for told in FAMILIES.values())
    raise InputError(
        f"there is no architecture {name!r}; write one like {forms}, or timm:NAME, "
        "torchvision:NAME or python:MODULE:FACTORY"
    )
