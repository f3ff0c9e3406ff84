"""Broad classes whose subtypes are partly unseen: from a set and a hierarchy of its classes."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from shiftbed.data.remix import Row
from shiftbed.data.sets import ImageSet
from shiftbed.data.table import read_table
from shiftbed.errors import InputError

__all__ = ["broad_classes", "held_out", "read_hierarchy", "subtype_splits"]


def read_hierarchy(path: Path) -> dict[str, set[str]]:
    """Read the parents of each class: a table with the columns ``class,superclass``.

    A text file without a header, as WordNet's list of ``parent child``, is understood too.
    """
    parents: dict[str, set[str]] = {}
    if path.suffix.lower() == ".txt":
        try:
            lines = [line.split() for line in path.read_text("utf-8").splitlines() if line.strip()]
        except (OSError, UnicodeDecodeError) as problem:
            raise InputError(f"cannot read the hierarchy {path}: {problem}") from None
        if any(len(line) != 2 for line in lines):
            raise InputError(f"{path} should hold two words a line: a parent and its child")
        pairs = [(child, parent) for parent, child in lines]
    else:
        table = read_table(path)
        if not {"class", "superclass"} <= set(table):
            raise InputError(f"{path} lacks the columns class,superclass")
        pairs = list(zip(table["class"], table["superclass"], strict=True))
    for child, parent in pairs:
        if child and parent:
            parents.setdefault(str(child), set()).add(str(parent))
    if not parents:
        raise InputError(f"the hierarchy {path} is empty")
    return parents


def broad_classes(
    classes: Sequence[str], parents: Mapping[str, set[str]], broad: Sequence[str] | None = None
) -> dict[str, list[str]]:
    """Return each broad class with the classes below it, however deep; others are left out.

    Without ``broad``, these are the parents that the classes name themselves. Where a class is
    below several, it is left out: nobody could say which answer is right.

    >>> parents = {"tabby": {"cat"}, "cat": {"animal"}, "lion": {"cat"}, "rose": {"plant"}}
    >>> broad_classes(["lion", "tabby", "rose"], parents, ["cat", "plant"])
    {'cat': ['lion', 'tabby'], 'plant': ['rose']}
    """
    if broad is None:
        broad = sorted({parent for one in classes for parent in parents.get(one, ())})
    wanted = set(broad)
    found: dict[str, list[str]] = {one: [] for one in broad}
    for one in classes:
        above = _ancestors(one, parents) & wanted
        if len(above) == 1:
            found[above.pop()].append(one)
    return {one: some for one, some in found.items() if some}


def _ancestors(name: str, parents: Mapping[str, set[str]]) -> set[str]:
    above, waiting = {name}, [name]
    while waiting:
        new = parents.get(waiting.pop(), set()) - above
        above |= new
        waiting += new
    return above


def held_out(broad: Mapping[str, Sequence[str]], count: int, seed: int = 0) -> set[str]:
    """Choose so many subtypes of each broad class; more are a superset of fewer.

    >>> len(held_out({"cat": ["lion", "tabby", "puma"], "dog": ["pug", "husky"]}, 1))
    2
    """
    chosen = set()
    for name, some in broad.items():
        if len(some) <= count:
            raise InputError(
                f"{name} has {len(some)} subtypes, so {count} cannot be held out and one left"
            )
        turns = {one: hashlib.sha256(f"{seed}:{name}:{one}".encode()).digest() for one in some}
        chosen |= set(sorted(some, key=turns.__getitem__)[:count])
    return chosen


def subtype_splits(
    images: ImageSet, broad: Mapping[str, Sequence[str]], unseen: set[str]
) -> dict[str, list[Row]]:
    """Return the pictures of seen and of unseen subtypes, labelled with the broad class."""
    labels = images.labels
    if labels is None or labels.ndim != 1:
        raise InputError(f"{images.name} needs one label a picture to be split by subtypes")
    group = {one: name for name, some in broad.items() for one in some}
    splits: dict[str, list[Row]] = {"seen": [], "unseen": []}
    for picture, label in zip(images.ids, labels, strict=True):
        subtype = images.classes[int(label)]
        if label >= 0 and subtype in group:
            row = Row(picture, group[subtype], {"subtype": subtype})
            splits["unseen" if subtype in unseen else "seen"].append(row)
    return splits
