"""Augmented copies of an image set: made once, and trained on like any other pictures."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from shiftbed.assets import sha256_of
from shiftbed.augment._augmentation import Augmentation
from shiftbed.corruptions._resumable import Record, Shelf, Unit
from shiftbed.corruptions.stored import (
    ENCODINGS,
    Made,
    carried_out,
    check_outside,
    file_places,
    pixels_digest,
    thread_count,
    write_picture,
)
from shiftbed.data import ImageSet, UnreadablePicture, open_set
from shiftbed.errors import InputError, unknown
from shiftbed.models import Geometry

__all__ = ["augment_set"]


def augment_set(
    pictures: ImageSet,
    output: str | Path,
    augmentation: Augmentation,
    *,
    size: int | None = None,
    encoding: str = "jpeg",
    workers: int | None = None,
    check: bool = False,
    watch: Callable[[int], None] = lambda pictures: None,
) -> Made:
    """Write an augmented copy of an image set as a folder, ``class/name.JPEG``.

    Each picture's draws are keyed by its place in the set. With ``size``, the shorter side of a
    picture is brought to that first. A call that was stopped, at whatever moment, is gone on
    with by the same call, to the same bytes; one with other settings is refused. ``check``
    reads what an earlier call left and makes anew what differs from its manifest.
    """
    if encoding not in ENCODINGS:
        raise unknown("encoding", encoding, ENCODINGS)
    if size is not None and not 8 <= size <= 8192:
        raise InputError(f"a shorter side of {size} pixels was asked for; expected 8 to 8192")
    if pictures.labels is not None and pictures.labels.ndim != 1:
        raise InputError(
            f"{pictures.name} has several labels per picture, for which a folder has no place; "
            "give a set with one label per picture, or none"
        )
    threads = thread_count(workers)
    output = Path(output)
    check_outside(pictures, output)
    geometry = Geometry(resize=None if size is None else (size, size), channels=3)
    job = _Job(pictures, augmentation, geometry, encoding, watch)
    places = file_places(pictures, ENCODINGS[encoding][0])
    units = [Unit(1, partial(job.write, index, path)) for index, path in enumerate(places)]
    with _one_thread_each() if augmentation.by_torch else nullcontext():
        return carried_out(units, output, job.settings, threads=threads, check=check, watch=watch)


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Let torch compute each picture in one thread."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@dataclass(frozen=True)
class _Job:
    pictures: ImageSet
    augmentation: Augmentation
    geometry: Geometry
    encoding: str
    watch: Callable[[int], None]

    def settings(self) -> Record:
        """All that the bytes depend on."""
        import cv2
        import PIL

        from shiftbed import __version__

        libraries = {"numpy": np.__version__, "opencv": cv2.__version__, "pillow": PIL.__version__}
        if self.augmentation.by_torch:
            import torch

            libraries["torch"] = str(torch.__version__)
        return {
            "augmentation": {
                "kind": type(self.augmentation).__name__,
                **{
                    field.name: _content(getattr(self.augmentation, field.name))
                    for field in dataclasses.fields(self.augmentation)
                },
            },
            "pictures": {
                "name": self.pictures.name,
                "count": len(self.pictures),
                "fingerprint": self.pictures.fingerprint(),
            },
            "size": "as they are" if self.geometry.resize is None else self.geometry.resize[0],
            "encoding": self.encoding,
            "libraries": libraries,
            "shiftbed": __version__,
        }

    def write(self, index: int, path: str, shelf: Shelf) -> Record:
        source = self.pictures.ids[index]
        try:
            picture = self.pictures.load(index)
        except UnreadablePicture as problem:
            self.watch(1)
            return {"source": source, "unreadable": problem.reason}
        seen = self.geometry.apply(picture)
        augmented = self.augmentation(seen, key=f"copy:{index}")
        digest = shelf.put(path, partial(write_picture, augmented, self.encoding))
        self.watch(1)
        return {"source": source, "pixels": pixels_digest(seen), "files": {path: digest}}


def _content(value: Any) -> Any:
    """Return an option's value, and of a file or a folder of pictures, a hash of what is in it."""
    if isinstance(value, (str, Path)) and str(value):
        path = Path(value)
        if path.is_file():
            return sha256_of(path)
        if path.is_dir():
            return open_set(str(path)).fingerprint()
    return value
