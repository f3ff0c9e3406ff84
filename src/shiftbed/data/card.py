"""What an image set says of itself beside its pictures: how it is read, scored and compared."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from shiftbed import published
from shiftbed.data.imagenet import imagenet_classes
from shiftbed.data.sets import ImageSet, digest
from shiftbed.errors import InputError, unknown

__all__ = [
    "Card",
    "ClassMap",
    "Combine",
    "Frames",
    "card_of",
    "check_score",
    "named_classes",
    "renamed",
]

#: For each class of an image set, the outputs that mean it: by key, by name or by number.
ClassMap = Mapping[str, Sequence[str | int]]
Combine = Literal["max", "mean", "sum"]


@dataclass(frozen=True)
class Card:
    """How a set is read and scored, what it is compared with, whose it is.

    >>> Card("mine", score="aupr", usual="photos").variant
    'imagenet-c'
    """

    name: str
    about: str = ""
    #: ``top1``; ``agreement`` with the answer on the unshifted picture; ``aupr`` where the whole
    #: set is anomalous; ``map`` for several labels a picture; ``pm10`` (or another number) for
    #: frame sets. None: ``top1``, or ``agreement`` where there are no labels.
    score: str | None = None
    #: Superclasses: each class -> the model outputs that mean it.
    members: ClassMap | None = None
    combine: Combine = "max"
    #: The setting with the same classes on pictures that did not shift: a study's x axis.
    clean: str | None = None
    #: Of an anomalous set: the setting whose pictures are usual, and as whose classes both are
    #: read.
    usual: str | None = None
    #: The variant of the corruptions that suits the pictures.
    variant: str = "imagenet-c"
    licence: str = ""
    citation: str = ""


@dataclass(frozen=True, eq=False)
class Frames:
    """Which pictures are frames of one scene, and how far from its anchor each was taken."""

    sets: tuple[str, ...]
    #: Frames after (or, if negative, before) the anchor, which is at 0.
    offsets: npt.NDArray[np.int64]

    def digest(self) -> str:
        """A hash that goes into the set's fingerprint."""
        return digest([*self.sets, self.offsets.astype("<i8").tobytes()])


def card_of(images: ImageSet) -> Card:
    """Return a set's card; a set without one has a card with nothing but its name.

    >>> from shiftbed.data import ArraySet
    >>> card_of(ArraySet("two", np.zeros((2, 28, 28), np.uint8))).score is None
    True
    """
    card = getattr(images, "card", None)
    return card if isinstance(card, Card) else Card(images.name)


def check_score(images: ImageSet) -> str:
    """Return how a set is scored, or say why it cannot be scored as its card says."""
    card, labels = card_of(images), images.labels
    score = card.score or ("agreement" if labels is None and card.usual is None else "top1")
    if card.score is None and card.usual is not None:
        score = "aupr"
    needs = ""
    if score == "top1" and labels is None:
        needs = "labels"
    elif score == "aupr" and card.usual is None:
        needs = "`usual`, the setting that its pictures are told apart from"
    elif score == "map" and (labels is None or labels.ndim != 2):
        needs = "a table of truth values, pictures by classes"
    elif re.fullmatch(r"pm\d+", score) and (labels is None or not getattr(images, "frames", None)):
        needs = "labels, and for each picture its frame set and its offset from the anchor"
    elif score not in ("top1", "agreement", "aupr", "map") and not re.fullmatch(r"pm\d+", score):
        raise unknown("score", score, ["top1", "agreement", "aupr", "map", "pm10"])
    if needs:
        raise InputError(f"{images.name} is scored by {score}, which needs {needs}")
    return score


def named_classes(name: str) -> tuple[str, ...]:
    """Return the classes of a published list, or all 1,000 of ImageNet.

    >>> len(named_classes("imagenet-1k")), len(named_classes("imagenet-a"))
    (1000, 200)
    """
    if name == "imagenet-1k":
        return imagenet_classes()
    if name not in published.class_lists():
        raise unknown("class list", name, ["imagenet-1k", *published.class_lists()])
    return published.class_list(name)


def renamed(card: Card, names: Mapping[str, str]) -> Card:
    """Return a card whose counterparts go by other names, where these are among ``names``."""
    clean, usual = (names.get(one, one) if one else None for one in (card.clean, card.usual))
    return replace(card, clean=clean, usual=usual)
