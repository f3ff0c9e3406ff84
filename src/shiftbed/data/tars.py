"""Pictures inside uncompressed tar files, read where they lie."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from shiftbed.errors import InputError

__all__ = ["TarFiles"]


class TarFiles:
    """The files in some tars by their names there; each is read by its place, in any thread."""

    def __init__(self, paths: Sequence[Path], *, prefixed: bool = False) -> None:
        #: With ``prefixed``, names begin with the tar's own, so that tars may hold the same.
        self.paths = tuple(paths)
        self._places: dict[str, tuple[Path, int, int]] = {}
        for path in self.paths:
            for name, start, size in _members(path):
                name = f"{path.stem}/{name}" if prefixed else name
                if name in self._places:
                    raise InputError(f"{path} and {self._places[name][0]} both hold {name}")
                self._places[name] = (path, start, size)

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __contains__(self, name: object) -> bool:
        return name in self._places

    def size(self, name: str) -> int:
        """Return a file's size in bytes."""
        return self._places[name][2]

    def read(self, name: str) -> bytes:
        """Return a file's content."""
        path, start, size = self._places[name]
        with path.open("rb") as file:
            file.seek(start)
            return file.read(size)

    def open(self, name: str) -> io.BytesIO:
        """Return a file's content to be read from."""
        return io.BytesIO(self.read(name))


def _members(path: Path) -> Iterator[tuple[str, int, int]]:
    try:
        with tarfile.open(path, "r:") as tar:
            for entry in tar:
                if entry.isfile():
                    yield entry.name.removeprefix("./"), entry.offset_data, entry.size
    except FileNotFoundError:
        raise InputError(f"{path} does not exist") from None
    except (tarfile.TarError, EOFError, OSError) as problem:
        raise InputError(
            f"{path} is not an uncompressed tar ({problem}); unpack or decompress it first"
        ) from None
