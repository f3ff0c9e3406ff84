"""WebDataset shards: tars of samples, each a picture and files of what is known of it."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from shiftbed._braces import expand_braces
from shiftbed.data.files import FileSet, found_path, parsed_json
from shiftbed.data.folder import PICTURE_SUFFIXES, plain_name
from shiftbed.data.table import LABEL, labelled, labels_of
from shiftbed.data.tars import TarFiles
from shiftbed.errors import InputError

__all__ = ["read_shards", "shard_paths"]

_WANTED = "expected a name or a number"
_LABELS = ("cls", *LABEL)


def shard_paths(given: str | Path) -> list[Path]:
    """Return the tars that a path means: itself, by braces or a wildcard, or a folder's.

    >>> shard_paths("no/such-{00..02}.tar")
    []
    """
    path = found_path(given)
    if path is not None and path.is_dir():
        inside = sorted(one for one in path.iterdir() if not one.name.startswith("."))
        return inside if inside and all(one.suffix == ".tar" for one in inside) else []
    if Path(given).suffix != ".tar":
        return []
    if path is not None:
        return [path] if path.is_file() else []
    found: list[Path] = []
    home = os.path.expanduser(given)  # noqa: PTH111 - Path's raises where there is no such home
    for pattern in expand_braces(home):
        # Not Path.glob, which takes no absolute pattern.
        matches = sorted(glob.glob(pattern))  # noqa: PTH207
        if not matches and found:
            raise InputError(f"{given} names the shard {pattern}, which does not exist")
        found += map(Path, matches)
    return found


def read_shards(
    paths: Sequence[Path], *, name: str | None = None, classes: Sequence[str] | None = None
) -> FileSet:
    """Open shards as one image set. An id is the shard's name and the picture's inside.

    A sample is the files whose names are equal up to the first dot: its picture, and its label
    in ``.cls`` or under ``label`` (``cls``, ``class``, ...) in ``.json``, as text or a number.
    Classes that ``classes`` gives are in the order of these numbers.
    """
    files = TarFiles(paths, prefixed=True)
    pictures: dict[str, str] = {}
    told: dict[str, dict[str, str]] = {}
    for file in files:
        path = PurePosixPath(file)
        stem, _, kind = path.name.partition(".")
        key, kind = str(path.parent / stem), kind.casefold()
        if f".{kind}" in PICTURE_SUFFIXES:
            pictures.setdefault(key, file)
        elif kind in ("cls", "json"):
            told.setdefault(key, {})[kind] = file
    own = name or plain_name(
        paths[0].stem.rstrip("0123456789").rstrip("-_") or paths[0].parent.name
    )
    if not pictures:
        raise InputError(f"{paths[0]} holds no pictures; expected samples as 0001.jpg and 0001.cls")
    given = [_label(files, told.get(key, {})) for key in pictures]
    known, labels = tuple(classes or ()), None
    if any(given):
        if classes is not None:
            given = [[_named(one, classes) for one in some] for some in given]
        known, labels = labelled(given, classes or _numbered(given), own)
    return FileSet(own, files, list(pictures.values()), labels, known)


def _label(files: TarFiles, told: dict[str, str]) -> list[str]:
    """Return a sample's labels: one, none, or several that its JSON lists."""
    try:
        if "cls" in told:
            return labels_of(files.read(told["cls"]).decode().strip() or None, "cls")
        if "json" in told:
            content = parsed_json(files.read(told["json"]).decode(), Path(told["json"]), _WANTED)
            known = [content[key] for key in _LABELS if key in content]
            return labels_of(known[0], "json") if known else []
    except (UnicodeDecodeError, TypeError) as problem:
        file = next(iter(told.values()))
        raise InputError(f"{file} says no label ({problem}); {_WANTED}") from None
    return []


def _named(label: str, classes: Sequence[str]) -> str:
    if label in classes or not (label.isdecimal() and len(label) < 7):
        return label
    if int(label) >= len(classes):
        raise InputError(f"a label is {label}, and {len(classes)} classes are numbered from 0")
    return classes[int(label)]


def _numbered(given: Sequence[Sequence[str]]) -> list[str] | None:
    """Return all numbers up to the largest label, if labels are numbers."""
    found = {one for some in given for one in some}
    # A number of more digits is a name: no set has so many classes.
    if not all(one.isdecimal() and len(one) < 7 for one in found):
        return None
    return [str(number) for number in range(max(map(int, found)) + 1)]
