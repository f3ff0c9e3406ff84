"""The image sets known by name, and opening of any image set, known or the user's own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from shiftbed import _plugins
from shiftbed.assets import cache_dir
from shiftbed.data.arrays import read_npz
from shiftbed.data.card import Card, card_of
from shiftbed.data.described import open_described, read_card
from shiftbed.data.files import found_path
from shiftbed.data.folder import CARD_FILE, image_folder
from shiftbed.data.sets import ImageSet
from shiftbed.data.table import labelled_files
from shiftbed.errors import InputError, unknown

__all__ = ["SetInfo", "image_set", "list_sets", "open_set", "sets_dir"]


@dataclass(frozen=True)
class SetInfo:
    """A named image set, not opened: its card, and how to have it."""

    card: Card
    open: Callable[[], ImageSet]
    #: Whether it is on this machine; otherwise opening it fetches it, or says what to do.
    ready: Callable[[], bool]
    #: For what cannot be fetched without a person: what to download, and where to put it.
    by_hand: str | None = None
    #: The suites that it belongs to.
    suites: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The set's name."""
        return self.card.name

    @property
    def state(self) -> str:
        """``ready``, ``fetch`` (the first use fetches it) or ``by hand``."""
        if self.ready():
            return "ready"
        return "fetch" if self.by_hand is None else "by hand"


_SETS: dict[str, SetInfo] = {}


def image_set(
    card: Card,
    *,
    ready: Callable[[], bool] = lambda: True,
    by_hand: str | None = None,
    suites: tuple[str, ...] = (),
) -> Callable[[Callable[[], ImageSet]], Callable[[], ImageSet]]:
    """Register a function that opens an image set under its card's name."""

    def register(build: Callable[[], ImageSet]) -> Callable[[], ImageSet]:
        _SETS[card.name] = SetInfo(card, build, ready, by_hand, suites)
        return build

    return register


def sets_dir() -> Path:
    """Return the folder of image sets: ``sets`` under ``SHIFTBED_DATA``.

    A folder in it with a ``set.toml`` is a set that can be named.
    """
    return cache_dir() / "sets"


def list_sets() -> list[SetInfo]:
    """Return every image set known by name: those built in, and those in the sets folder."""
    from shiftbed.data import fetched  # noqa: F401 - registers the sets that it holds

    _plugins.load()
    return sorted((_SETS | _described()).values(), key=lambda info: info.name)


def _described() -> dict[str, SetInfo]:
    found = {}
    for path in sorted(sets_dir().glob(f"*/{CARD_FILE}")):
        folder = path.parent
        try:
            card = read_card(path).card
        except InputError as problem:  # of one set; the others can be used all the same
            card = Card(folder.name, about=str(problem))
        found[card.name] = SetInfo(card, partial(open_described, folder), lambda: True)
    return found


def open_set(given: ImageSet | str | Path, *, name: str | None = None) -> ImageSet:
    """Return an image set: one known by name, a folder, a table, a file of arrays, or itself.

    >>> import numpy as np
    >>> from shiftbed.data import ArraySet
    >>> open_set(ArraySet("two", np.zeros((2, 28, 28), np.uint8))).name
    'two'
    """
    if isinstance(given, ImageSet):
        return given
    known = {info.name: info for info in list_sets()}
    if isinstance(given, str) and given in known:
        images = known[given].open()
        if card_of(images) != known[given].card:
            vars(images)["card"] = known[given].card
        return images
    path = found_path(given)
    if path is not None and path.name == CARD_FILE:
        path = path.parent
    if path is not None and path.is_dir():
        if (path / CARD_FILE).is_file():
            return open_described(path, name=name)
        return image_folder(path, name=name)
    if path is not None:
        suffix = path.suffix.lower()
        if suffix == ".npz":
            return read_npz(path, name)
        if suffix in (".csv", ".tsv", ".parquet"):
            return labelled_files(path, name=name)
        raise InputError(
            f"{given} is a file that is no image set; expected a folder of pictures, a table of "
            "them (.csv, .tsv or .parquet), or an .npz file with 'images' and 'labels'"
        )
    if "/" in str(given) or isinstance(given, Path):
        raise InputError(
            f"{given} does not exist; give a folder with one folder per class, an .npz file, or "
            f"one of {', '.join(known)}"
        )
    raise unknown("image set or folder", str(given), known)
