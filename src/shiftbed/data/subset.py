"""A part of an image set, and sets that differ from another only in how a picture is shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from shiftbed.data.card import Card, Frames
from shiftbed.data.sets import ImageSet, Labels, Picture, digest
from shiftbed.errors import InputError

__all__ = ["Subset", "of_classes"]


@dataclass(frozen=True, eq=False)
class Subset:
    """Some of an image set's pictures, as an image set."""

    whole: ImageSet
    indices: npt.NDArray[np.int64]
    name: str
    card: Card | None = None
    #: The classes that are kept, in another order perhaps; None: all.
    kept: Sequence[str] | None = None
    #: What is done to each picture, and its name for the fingerprint.
    change: tuple[str, Callable[[Picture], Picture]] | None = None

    @property
    def classes(self) -> Sequence[str]:
        """The classes, also where the part has no picture of one."""
        return self.whole.classes if self.kept is None else self.kept

    @cached_property
    def ids(self) -> Sequence[str]:
        """The ids of the pictures that are in the part: those of the whole."""
        ids = self.whole.ids
        return [ids[index] for index in self.indices]

    @cached_property
    def labels(self) -> Labels | None:
        """The labels of the pictures that are in the part."""
        if self.whole.labels is None:
            return None
        labels = self.whole.labels[self.indices]
        if self.kept is None:
            return labels
        place = {name: index for index, name in enumerate(self.whole.classes)}
        columns = np.array([place[name] for name in self.kept])
        if labels.ndim == 2:
            return np.asarray(labels[:, columns], np.bool_)
        moved = np.full(len(self.whole.classes), -1, np.int64)
        moved[columns] = np.arange(len(columns))
        return np.asarray(moved[labels])

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
        """A hash of the whole set and of which pictures and classes are in the part."""
        parts: list[str | bytes] = [self.whole.fingerprint(), self.indices.astype("<i8").tobytes()]
        if self.kept is not None:
            parts += ["kept", *self.kept]
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
    missing = [one for one in classes if one not in set(whole.classes)]
    if missing or whole.labels is None:
        lacks = f"the class {missing[0]}" if missing else "labels"
        raise InputError(f"{name} is a part of {whole.name}, which lacks {lacks}")
    wanted = np.isin(np.array(whole.classes), list(classes))
    labels = whole.labels
    has = labels[:, wanted].any(axis=1) if labels.ndim == 2 else wanted[labels]
    return Subset(whole, np.flatnonzero(has), name, card, tuple(classes))
