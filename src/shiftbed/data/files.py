"""An image set of picture files, however they were found and labelled."""

from __future__ import annotations

import csv
import io
import json
import tomllib
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from shiftbed.data.card import Card, Frames
from shiftbed.data.pictures import read_picture
from shiftbed.data.sets import Labels, Picture, UnreadablePicture, digest
from shiftbed.data.tars import TarFiles
from shiftbed.errors import InputError

__all__ = ["FileSet", "found_path", "parsed_csv", "parsed_json", "read_text", "read_toml"]


def found_path(given: str | Path) -> Path | None:
    """Return a path that the user gave, ``~`` expanded, if anything is there.

    >>> found_path("no/such/thing") is None
    True
    """
    try:
        path = Path(given).expanduser()
        return path if path.exists() else None
    except (OSError, RuntimeError, ValueError):  # too long, no such home, a null character
        return None


#: Of tables, maps and lists in text. All of ImageNet's file names have 60 MB.
_MOST = 256 * 2**20


def read_text(path: Path) -> str:
    """Return what a text file of a user holds, unless it is too large to be meant."""
    with path.open("rb") as file:  # a pipe or a device has no size to ask for
        content = file.read(_MOST + 1)
    if len(content) > _MOST:
        raise InputError(f"{path} has more than {_MOST / 2**20:.0f} MiB; expected a text file")
    return content.decode("utf-8-sig")


def read_toml(path: Path, expected: str = "") -> dict[str, Any]:
    """Return what a TOML file of a user holds, or say in a sentence why it cannot be had.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "run.toml"
    >>> _ = path.write_text("seed = 1")
    >>> read_toml(path)
    {'seed': 1}
    """
    hint = f"; {expected}" if expected else ""
    try:
        text = read_text(path)
    except OSError as problem:
        raise InputError(f"cannot read {path} ({problem.strerror})") from None
    except UnicodeDecodeError as problem:
        raise InputError(f"{path} is not TOML ({problem}){hint}") from None
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise InputError(f"{path} is not TOML that can be read: it nests too deeply") from None
    except ValueError as problem:  # numbers of thousands of digits among them
        raise InputError(f"{path} is not TOML ({problem}){hint}") from None


def parsed_json(text: str, path: Path, expected: str) -> Any:
    """Return what the text of a user's JSON file means, or say in a sentence why it has no sense.

    >>> parsed_json("[1, 2]", Path("map.json"), "expected a list")
    [1, 2]
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise InputError(f"{path} is not JSON that can be read: it nests too deeply") from None
    except ValueError as problem:
        raise InputError(f"{path} is not JSON ({problem}); {expected}") from None


def parsed_csv(
    text: str, path: Path, needed: Sequence[str], expected: str
) -> list[dict[str, str | None]]:
    """Return the rows of a user's CSV file, which must have some columns.

    >>> parsed_csv("class,output\\ncat,2", Path("map.csv"), ["class"], "expected a class map")
    [{'class': 'cat', 'output': '2'}]
    """
    rows = csv.DictReader(io.StringIO(text, newline=""))
    try:
        if not set(needed) <= set(rows.fieldnames or ()):
            columns = "column" if len(needed) == 1 else "columns"
            raise InputError(f"{path} lacks the {columns} {','.join(needed)}; {expected}")
        return list(rows)
    except csv.Error as problem:
        raise InputError(f"{path} is not CSV ({problem}); {expected}") from None


class FileSet:
    """Picture files below one folder, or in tars; a picture's id is its path there."""

    def __init__(
        self,
        name: str,
        root: Path | TarFiles,
        ids: Sequence[str],
        labels: Labels | None = None,
        classes: Sequence[str] = (),
        *,
        orient: bool = False,
        border: int = 0,
        files: Sequence[str] | None = None,
        frames: Frames | None = None,
        card: Card | None = None,
    ) -> None:
        self.name = name
        self.root = root
        self.ids = tuple(ids)
        self.labels = labels
        self.classes = tuple(classes)
        #: Whether pictures are turned as their EXIF orientation says.
        self.orient = orient
        #: Pixels that are cut from every side.
        self.border = border
        #: The files' paths, where ids are not these.
        self.files = self.ids if files is None else tuple(files)
        self.frames = frames
        self.card = card

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return f"FileSet({self.name}: {len(self)} pictures, {len(self.classes)} classes)"

    def load(self, index: int) -> Picture:
        """Return a picture as uint8 RGB, or raise UnreadablePicture."""
        file = self.files[index]
        if isinstance(self.root, TarFiles):
            picture = read_picture(self.root.open(file), orient=self.orient)
        else:
            picture = read_picture(self.root / file, orient=self.orient)
        return without_border(picture, self.border)

    @cached_property
    def _hash(self) -> str:
        labels = b"" if self.labels is None else self.labels.tobytes()
        sizes = (_size(self.root, name) for name in self.files)
        parts: list[str | bytes] = [
            "files",
            str(self.orient),
            *self.classes,
            *self.ids,
            labels,
            *sizes,
        ]
        if self.border:
            parts.append(f"border {self.border}")
        if self.frames is not None:
            parts.append(self.frames.digest())
        return digest(parts)

    def fingerprint(self) -> str:
        """A hash of paths, labels and sizes of files; their pixels are not read for it."""
        return self._hash


def _size(root: Path | TarFiles, name: str) -> str:
    if isinstance(root, TarFiles):
        return str(root.size(name))
    try:
        return str((root / name).stat().st_size)
    except OSError:  # a dead link or loop, or listed and not there; the run says which
        return "gone"


def without_border(picture: Picture, border: int) -> Picture:
    """Return a picture without a border of so many pixels.

    >>> import numpy as np
    >>> without_border(np.zeros((10, 12, 3), np.uint8), 2).shape
    (6, 8, 3)
    """
    if not border:
        return picture
    if min(picture.shape[:2]) <= 2 * border:
        raise UnreadablePicture(f"smaller than its border of {border} pixels")
    return picture[border:-border, border:-border]
