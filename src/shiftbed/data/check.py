"""What is in an image set, and what is wrong with it: damage, duplicates, leakage."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from shiftbed.data.prints import Print, alike, bands, print_of
from shiftbed.data.sets import ImageSet, UnreadablePicture

__all__ = ["Findings", "check"]


@dataclass(frozen=True)
class Findings:
    """What was found. Pairs and groups are of pictures' ids."""

    name: str
    pictures: int
    #: Class -> its number of pictures; empty without labels.
    classes: dict[str, int]
    unlabelled: int
    #: The smallest and largest height and width, and the commonest size.
    sizes: dict[str, tuple[int, int]]
    unreadable: list[tuple[str, str]]
    #: Groups with the same pixels; and those of them that bear different labels.
    duplicates: list[list[str]]
    contradictions: list[list[str]]
    #: Pairs that look the same, though their pixels differ.
    near: list[tuple[str, str]]
    #: Pairs of a picture here and the same, or one that looks it, in the other set.
    leakage: list[tuple[str, str]]

    @property
    def sound(self) -> bool:
        """Whether nothing is unreadable, contradictory or leaked."""
        return not (self.unreadable or self.contradictions or self.leakage)


@dataclass(frozen=True)
class _Seen:
    ids: list[str]
    prints: list[Print]
    shapes: list[tuple[int, int]]
    unreadable: list[tuple[str, str]]


def check(
    images: ImageSet,
    against: ImageSet | None = None,
    *,
    watch: Callable[[int, int], None] = lambda done, total: None,
) -> Findings:
    """Read every picture of a set and say what is there and what is wrong.

    >>> from shiftbed.data import ArraySet
    >>> rng = np.random.default_rng(0)
    >>> some = rng.integers(0, 256, (3, 32, 32), dtype=np.uint8)
    >>> found = check(ArraySet("some", some[[0, 1, 2, 0]], labels=[0, 1, 0, 1]))
    >>> found.classes, found.duplicates, found.contradictions
    ({'0': 2, '1': 2}, [['0', '3']], [['0', '3']])
    """
    seen = _look(images, watch)
    labels = images.labels
    classes: dict[str, int] = {}
    unlabelled = 0
    label_of: dict[str, Any] = {}
    if labels is not None:
        counts = (
            labels.sum(axis=0)
            if labels.ndim == 2
            else np.bincount(labels[labels >= 0], minlength=len(images.classes))
        )
        classes = {one: int(n) for one, n in zip(images.classes, counts, strict=True)}
        none = ~labels.any(axis=1) if labels.ndim == 2 else labels < 0
        unlabelled = int(none.sum())
        label_of = {
            one: np.asarray(row).tolist() for one, row in zip(images.ids, labels, strict=True)
        }
    same: defaultdict[bytes, list[str]] = defaultdict(list)
    for one, printed in zip(seen.ids, seen.prints, strict=True):
        same[printed.pixels].append(one)
    duplicates = [group for group in same.values() if len(group) > 1]
    contradictions = [
        group for group in duplicates if len({str(label_of.get(one)) for one in group}) > 1
    ]
    leakage: list[tuple[str, str]] = []
    if against is not None:
        other = _look(against, watch)
        theirs = {printed.pixels: one for one, printed in zip(other.ids, other.prints, strict=True)}
        pairs = {
            (one, theirs[printed.pixels])
            for one, printed in zip(seen.ids, seen.prints, strict=True)
            if printed.pixels in theirs
        }
        known = {one for one, _ in pairs}
        pairs |= {pair for pair in _alike(seen, other) if pair[0] not in known}
        leakage = sorted(pairs)
    near = sorted(
        (one, two)
        for one, two in _alike(seen, seen)
        if one < two and not any({one, two} <= set(group) for group in duplicates)
    )
    return Findings(
        images.name,
        len(images),
        classes,
        unlabelled,
        _sizes(seen.shapes),
        seen.unreadable,
        duplicates,
        contradictions,
        near,
        leakage,
    )


def _look(images: ImageSet, watch: Callable[[int, int], None]) -> _Seen:
    seen = _Seen([], [], [], [])

    def one(index: int) -> tuple[Print, tuple[int, int]] | str:
        try:
            picture = images.load(index)
        except UnreadablePicture as problem:
            return problem.reason
        return print_of(picture), (picture.shape[0], picture.shape[1])

    with ThreadPoolExecutor() as pool:
        for index, found in enumerate(pool.map(one, range(len(images)))):
            watch(index + 1, len(images))
            name = images.ids[index]
            if isinstance(found, str):
                seen.unreadable.append((name, found))
                continue
            seen.ids.append(name)
            seen.prints.append(found[0])
            seen.shapes.append(found[1])
    return seen


def _alike(here: _Seen, there: _Seen) -> Iterator[tuple[str, str]]:
    """Yield pairs of the same look: only those that share a band of signs are compared."""
    buckets: defaultdict[int, list[int]] = defaultdict(list)
    for row, printed in enumerate(there.prints):
        if not printed.plain:
            for band in bands(printed.signs):
                buckets[band].append(row)
    for row, printed in enumerate(here.prints):
        if printed.plain:
            continue
        others = {other for band in bands(printed.signs) for other in buckets.get(band, ())}
        for other in sorted(others):
            if alike(printed, there.prints[other]):
                yield here.ids[row], there.ids[other]


def _sizes(shapes: list[tuple[int, int]]) -> dict[str, tuple[int, int]]:
    if not shapes:
        return {}
    heights, widths = zip(*shapes, strict=True)
    return {
        "smallest": (min(heights), min(widths)),
        "largest": (max(heights), max(widths)),
        "commonest": Counter(shapes).most_common(1)[0][0],
    }
