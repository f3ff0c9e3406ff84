"""An image set of picture files, however they were found and labelled."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from shiftbed.data.pictures import read_picture
from shiftbed.data.sets import Labels, Picture, digest

__all__ = ["FileSet", "found_path"]


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


class FileSet:
    """Picture files below one folder; a picture's id is its path there."""

    def __init__(
        self,
        name: str,
        root: Path,
        ids: Sequence[str],
        labels: Labels | None = None,
        classes: Sequence[str] = (),
        *,
        orient: bool = False,
    ) -> None:
        self.name = name
        self.root = root
        self.ids = tuple(ids)
        self.labels = labels
        self.classes = tuple(classes)
        #: Whether pictures are turned as their EXIF orientation says.
        self.orient = orient

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return f"FileSet({self.name}: {len(self)} pictures, {len(self.classes)} classes)"

    def load(self, index: int) -> Picture:
        """Return a picture as uint8 RGB, or raise UnreadablePicture."""
        return read_picture(self.root / self.ids[index], orient=self.orient)

    @cached_property
    def _hash(self) -> str:
        labels = b"" if self.labels is None else self.labels.tobytes()
        sizes = (str((self.root / name).stat().st_size) for name in self.ids)
        return digest(["files", str(self.orient), *self.classes, *self.ids, labels, *sizes])

    def fingerprint(self) -> str:
        """A hash of paths, labels and sizes of files; their pixels are not read for it."""
        return self._hash
