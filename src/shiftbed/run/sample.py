"""A part of an image set, for a first look."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from shiftbed.data import ImageSet, Labels, Picture, digest
from shiftbed.errors import InputError
from shiftbed.settings import Setting

__all__ = ["Sample", "limited", "sample"]


@dataclass(frozen=True, eq=False)
class Sample:
    """Some of an image set's pictures, as an image set. Its name says that it is a sample."""

    whole: ImageSet
    indices: npt.NDArray[np.int64]
    name: str

    @property
    def classes(self) -> Sequence[str]:
        """The classes of the whole set, also where the sample has no picture of one."""
        return self.whole.classes

    @cached_property
    def ids(self) -> Sequence[str]:
        """The ids of the pictures that are in the sample."""
        ids = self.whole.ids
        return [ids[index] for index in self.indices]

    @cached_property
    def labels(self) -> Labels | None:
        """The labels of the pictures that are in the sample."""
        labels = self.whole.labels
        return None if labels is None else labels[self.indices]

    def __len__(self) -> int:
        return len(self.indices)

    def load(self, index: int) -> Picture:
        """Return one picture of the sample."""
        return self.whole.load(int(self.indices[index]))

    def fingerprint(self) -> str:
        """A hash of the whole set and of which pictures were drawn."""
        return digest([self.whole.fingerprint(), self.indices.astype("<i8").tobytes()])


def limited(settings: Sequence[Setting], limit: int | None, seed: int) -> list[Setting]:
    """Return the settings with at most ``limit`` pictures of each image set."""
    if limit is None:
        return list(settings)
    if limit < 1:
        raise InputError(f"the limit is {limit}; it must be at least one picture")
    samples = {id(setting.images): sample(setting.images, limit, seed) for setting in settings}
    return [_with_images(setting, samples[id(setting.images)]) for setting in settings]


def sample(images: ImageSet, limit: int, seed: int = 0) -> ImageSet:
    """Draw ``limit`` pictures, as evenly over the classes as these allow.

    A picture's turn depends on the seed and its id alone, and classes take turns: so the
    sample of 100 is a part of the sample of 200.
    """
    if limit >= len(images):
        return images
    turns = [
        hashlib.sha256(f"{seed}:{name}".encode("utf-8", "surrogateescape")).digest()
        for name in images.ids
    ]
    order = sorted(range(len(images)), key=turns.__getitem__)
    labels = images.labels
    taken: defaultdict[int, int] = defaultdict(int)
    rounds = np.zeros(len(images), np.int64)
    if labels is not None and labels.ndim == 1:
        for index in order:
            rounds[index] = taken[int(labels[index])]
            taken[int(labels[index])] += 1
    order.sort(key=rounds.__getitem__)
    detail = f"limit={limit}" + (f",seed={seed}" if seed else "")
    return Sample(images, np.sort(np.array(order[:limit])), f"{images.name}[{detail}]")


def _with_images(setting: Setting, images: ImageSet) -> Setting:
    rest = setting.name.removeprefix(setting.images.name)
    return replace(setting, images=images, name=images.name + rest)
