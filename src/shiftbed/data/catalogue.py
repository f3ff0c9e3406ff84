"""The image sets known by name, and opening of any image set, known or the user's own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from shiftbed import _plugins
from shiftbed.data.arrays import read_npz
from shiftbed.data.files import found_path
from shiftbed.data.folder import image_folder
from shiftbed.data.sets import ImageSet
from shiftbed.errors import InputError, unknown

__all__ = ["SetInfo", "image_set", "list_sets", "open_set"]


@dataclass(frozen=True)
class SetInfo:
    """What is known of a named image set, without opening it."""

    name: str
    about: str
    #: The variant of the corruptions that its published benchmark uses.
    variant: str
    source: str
    licence: str
    open: Callable[[], ImageSet]
    #: Whether it is on this machine; otherwise opening it fetches it.
    ready: Callable[[], bool]


_SETS: dict[str, SetInfo] = {}


def image_set(
    name: str,
    *,
    about: str,
    source: str,
    licence: str,
    ready: Callable[[], bool] = lambda: True,
    variant: str = "imagenet-c",
) -> Callable[[Callable[[], ImageSet]], Callable[[], ImageSet]]:
    """Register a function that opens an image set under a name."""

    def register(build: Callable[[], ImageSet]) -> Callable[[], ImageSet]:
        _SETS[name] = SetInfo(name, about, variant, source, licence, build, ready)
        return build

    return register


def list_sets() -> list[SetInfo]:
    """Return every image set known by name, with whether it is on this machine."""
    from shiftbed.data import fetched  # noqa: F401 - registers the sets that it holds

    _plugins.load()
    return sorted(_SETS.values(), key=lambda info: info.name)


def open_set(given: ImageSet | str | Path, *, name: str | None = None) -> ImageSet:
    """Return an image set: one known by name, a folder, an ``.npz`` file, or itself.

    >>> import numpy as np
    >>> from shiftbed.data import ArraySet
    >>> open_set(ArraySet("two", np.zeros((2, 28, 28), np.uint8))).name
    'two'
    """
    if isinstance(given, ImageSet):
        return given
    known = {info.name: info for info in list_sets()}
    if isinstance(given, str) and given in known:
        return known[given].open()
    path = found_path(given)
    if path is not None and path.is_dir():
        return image_folder(path, name=name)
    if path is not None:
        if path.suffix.lower() == ".npz":
            return read_npz(path, name)
        raise InputError(
            f"{given} is a file that is no image set; expected a folder of pictures or an .npz "
            "file with 'images' and 'labels'"
        )
    if "/" in str(given) or isinstance(given, Path):
        raise InputError(
            f"{given} does not exist; give a folder with one folder per class, an .npz file, or "
            f"one of {', '.join(known)}"
        )
    raise unknown("image set or folder", str(given), known)
