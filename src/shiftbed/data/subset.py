"""A part of an image set, and sets that differ from another only in how a picture is shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from shiftbed.data.card import Card, Frames
from shiftbed.data.sets import ImageSet, Labels, Picture, digest
from shiftbed.errors import InputError

__all__ = ["Subset", "changed", "grouped", "of_classes"]


@dataclass(frozen=True, eq=False)
class Subset:
    """Some of an image set's pictures, perhaps labelled or shown otherwise, as an image set."""

    whole: ImageSet
    indices: npt.NDArray[np.int64]
    name: str
    card: Card | None = None
    #: Classes and labels of its own; None: those of the whole.
    own: tuple[tuple[str, ...], Labels] | None = None
    #: What is done to each picture, and its name for the fingerprint.
    change: tuple[str, Callable[[Picture], Picture]] | None = None

    @property
    def classes(self) -> Sequence[str]:
        """The classes, also where the part has no picture of one."""
        return self.whole.classes if self.own is None else self.own[0]

    @cached_property
    def ids(self) -> Sequence[str]:
        """The ids of the pictures that are in the part: those of the whole."""
        ids = self.whole.ids
        return [ids[index] for index in self.indices]

    @cached_property
    def labels(self) -> Labels | None:
        """The labels of the pictures that are in the part."""
        if self.own is not None:
            return self.own[1]
        return None if self.whole.labels is None else self.whole.labels[self.indices]

    @cached_property
    def frames(self) -> Frames | None:
        """Which pictures of the part are frames of one scene."""
        frames: Frames | None = getattr(self.whole, "frames", None)
        if frames is None:
            return None
        return Frames(tuple(frames.sets[i] for i in self.indices), frames.offsets[self.indices])

    def __len__(self) -> int:
        return len(self.indices)

    def load(self, index: int) -> Picture:
        """Return one picture of the part."""
        picture = self.whole.load(int(self.indices[index]))
        return picture if self.change is None else self.change[1](picture)

    def fingerprint(self) -> str:
        """A hash of the whole set, of which pictures are in the part, and of what differs."""
        parts: list[str | bytes] = [
            self.whole.fingerprint(),
            self.indices.astype("<i8").tobytes(),
        ]
        if self.own is not None:
            parts += ["own", *self.own[0], self.own[1].tobytes()]
        if self.change is not None:
            parts += ["change", self.change[0]]
        return digest(parts)


def of_classes(
    whole: ImageSet, classes: Sequence[str], name: str, card: Card | None = None
) -> Subset:
    """Return the pictures of some classes, labelled and read as these alone.

    >>> from shiftbed.data import ArraySet
    >>> whole = ArraySet("abc", np.zeros((3, 8, 8), np.uint8), [0, 1, 2], ["a", "b", "c"])
    >>> part = of_classes(whole, ["c", "a"], "abc.ca")
    >>> part.ids, part.labels.tolist()
    (['0', '2'], [1, 0])
    """
    return grouped(whole, {one: (one,) for one in classes}, name, card)


def grouped(
    whole: ImageSet, members: Mapping[str, Sequence[str]], name: str, card: Card | None = None
) -> Subset:
    """Return the pictures of the classes that are members of some group, labelled by group.

    >>> from shiftbed.data import ArraySet
    >>> whole = ArraySet("abc", np.zeros((3, 8, 8), np.uint8), [0, 1, 2], ["a", "b", "c"])
    >>> part = grouped(whole, {"x": ("c", "a")}, "abc.x")
    >>> part.ids, part.labels.tolist(), part.classes
    (['0', '2'], [0, 0], ('x',))
    """
    place = {one: index for index, one in enumerate(whole.classes)}
    missing = [one for some in members.values() for one in some if one not in place]
    if missing or whole.labels is None:
        lacks = f"the class {missing[0]}" if missing else "labels"
        raise InputError(f"{name} is a part of {whole.name}, which lacks {lacks}")
    table = np.zeros((len(whole.classes), len(members)), np.bool_)
    for column, some in enumerate(members.values()):
        table[[place[one] for one in some], column] = True
    if whole.labels.ndim == 2:
        truth = np.asarray(np.asarray(whole.labels) @ table, np.bool_)
        indices = np.flatnonzero(truth.any(axis=1))
        labels: Labels = truth[indices]
    else:
        indices = np.flatnonzero(table[whole.labels].any(axis=1) & (whole.labels >= 0))
        labels = np.asarray(table[whole.labels[indices]].argmax(axis=1), np.int64)
    return Subset(whole, indices, name, card, (tuple(members), labels))


def changed(
    whole: ImageSet, change: str, how: Callable[[Picture], Picture], name: str, card: Card
) -> Subset:
    """Return the same pictures, each shown otherwise: ``change`` is what is done, in a word."""
    return Subset(whole, np.arange(len(whole)), name, card, change=(change, how))
