"""What is in an image set, and what is wrong with it: damage, duplicates, leakage."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from shiftbed.data.sets import ImageSet, Picture, UnreadablePicture

__all__ = ["Findings", "check"]

#: The signs of a picture: is a cell of its thumbnail brighter than the one on its right?
_BITS = 256
#: So many of these may differ between two renderings of one picture (other size, quality).
NEAR = 12
#: Pictures whose thumbnails vary less than this are plain, and alike without being the same.
_PLAIN = 4.0
_BANDS = 16


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
    pixels: list[bytes]
    signs: npt.NDArray[np.bool_]
    plain: npt.NDArray[np.bool_]
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
    for one, pixels in zip(seen.ids, seen.pixels, strict=True):
        same[pixels].append(one)
    duplicates = [group for group in same.values() if len(group) > 1]
    contradictions = [
        group for group in duplicates if len({str(label_of.get(one)) for one in group}) > 1
    ]
    leakage: list[tuple[str, str]] = []
    if against is not None:
        other = _look(against, watch)
        theirs = {pixels: one for one, pixels in zip(other.ids, other.pixels, strict=True)}
        pairs = {
            (one, theirs[pixels])
            for one, pixels in zip(seen.ids, seen.pixels, strict=True)
            if pixels in theirs
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
    ids, pixels, signs, plain, shapes, unreadable = [], [], [], [], [], []

    def one(index: int) -> tuple[bytes, npt.NDArray[np.bool_], bool, tuple[int, int]] | str:
        try:
            picture = images.load(index)
        except UnreadablePicture as problem:
            return problem.reason
        digest = hashlib.sha256(str(picture.shape).encode() + picture.tobytes()).digest()
        return (digest, *_signs(picture), (picture.shape[0], picture.shape[1]))

    with ThreadPoolExecutor() as pool:
        for index, found in enumerate(pool.map(one, range(len(images)))):
            watch(index + 1, len(images))
            name = images.ids[index]
            if isinstance(found, str):
                unreadable.append((name, found))
                continue
            ids.append(name)
            pixels.append(found[0])
            signs.append(found[1])
            plain.append(found[2])
            shapes.append(found[3])
    table = np.array(signs, np.bool_).reshape(len(ids), _BITS)
    return _Seen(ids, pixels, table, np.array(plain, np.bool_), shapes, unreadable)


def _signs(picture: Picture) -> tuple[npt.NDArray[np.bool_], bool]:
    from PIL import Image

    grey = Image.fromarray(picture).convert("L").resize((17, 16), Image.Resampling.BOX)
    small = np.asarray(grey, np.int16)
    return (small[:, 1:] > small[:, :-1]).ravel(), bool(small.std() < _PLAIN)


def _alike(here: _Seen, there: _Seen) -> Iterator[tuple[str, str]]:
    """Yield pairs whose signs differ in few places.

    Two that differ in at most 12 of 256 bits agree in at least four of 16 bands of bits, so
    only those that share a band are compared.
    """
    found: set[tuple[int, int]] = set()
    for band in range(_BANDS):
        part = slice(band * _BITS // _BANDS, (band + 1) * _BITS // _BANDS)
        buckets: defaultdict[bytes, list[int]] = defaultdict(list)
        for row in np.flatnonzero(~there.plain):
            buckets[there.signs[row, part].tobytes()].append(int(row))
        for row in np.flatnonzero(~here.plain):
            others = buckets.get(here.signs[row, part].tobytes())
            if others:
                differ = (there.signs[others] != here.signs[row]).sum(axis=1)
                found |= {(int(row), others[at]) for at in np.flatnonzero(differ <= NEAR)}
    for one, two in sorted(found):
        yield here.ids[one], there.ids[two]


def _sizes(shapes: list[tuple[int, int]]) -> dict[str, tuple[int, int]]:
    if not shapes:
        return {}
    heights, widths = zip(*shapes, strict=True)
    return {
        "smallest": (min(heights), min(widths)),
        "largest": (max(heights), max(widths)),
        "commonest": Counter(shapes).most_common(1)[0][0],
    }
