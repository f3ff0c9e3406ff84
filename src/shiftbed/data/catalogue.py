"""The image sets known by name, and opening of any image set, known or the user's own."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from shiftbed import _plugins
from shiftbed.assets import cache_dir
from shiftbed.data.card import Card, card_of
from shiftbed.data.described import open_described, read_card
from shiftbed.data.files import found_path
from shiftbed.data.folder import CARD_FILE
from shiftbed.data.huggingface import Dataset, is_dataset
from shiftbed.data.own import OWN, open_own
from shiftbed.data.sets import ImageSet
from shiftbed.errors import InputError, unknown

__all__ = [
    "Archive",
    "Placed",
    "SetInfo",
    "find_info",
    "find_set",
    "image_set",
    "list_sets",
    "open_set",
    "placed_set",
    "sets_dir",
]


@dataclass(frozen=True)
class Archive:
    """A file that can be downloaded, with its checksum if one was published."""

    url: str
    #: As ``md5:...`` or ``sha256:...``.
    checksum: str | None
    gigabytes: float


@dataclass(frozen=True)
class Placed:
    """How a set lies in the sets folder, and how it comes to be there."""

    #: From its folder and its name to the set.
    read: Callable[[Path, str], ImageSet]
    #: How many pictures were published: a set with another number is not this set.
    pictures: int | None = None
    #: Its folder, if that is not called as it is.
    home: str | None = None
    archives: tuple[Archive, ...] = ()
    #: Places it in another way, where its archives cannot be reached.
    otherwise: Callable[[], object] | None = None
    #: What a person has to do.
    by_hand: str | None = None
    #: The set that it is made from, which it has no folder beside.
    base: str | None = None


@dataclass(frozen=True)
class SetInfo:
    """A named image set, not opened: its card, and how to have it."""

    card: Card
    open: Callable[[], ImageSet]
    #: Whether it is on this machine; otherwise opening it fetches it, or says what to do.
    ready: Callable[[], bool]
    #: The suites that it belongs to.
    suites: tuple[str, ...] = ()
    #: What many sets that are listed as one are called together.
    family: str | None = None
    placed: Placed | None = None

    @property
    def name(self) -> str:
        """The set's name."""
        return self.card.name

    @property
    def state(self) -> str:
        """``ready``, ``fetch`` (the first use fetches it) or ``by hand``."""
        if self.ready():
            return "ready"
        if self.placed is None or self.placed.archives:
            return "fetch"
        return "by hand" if self.placed.base is None else f"with {self.placed.base}"

    @property
    def home(self) -> Path | None:
        """The folder that it is read from, if that is one in the sets folder."""
        if self.placed is None or self.placed.base is not None:
            return None
        return sets_dir() / (self.placed.home or self.name)

    @property
    def missing(self) -> str:
        """What to do to have it on this machine, in a sentence."""
        if self.placed is not None and self.placed.base is not None:
            return f"{self.name} is made of another set: {find_info(self.placed.base).missing}"
        fetch = self.family or self.name
        if self.placed is None or self.placed.archives:
            return f"{self.name} is not on this machine; `shiftbed fetch {fetch}` fetches it"
        return (
            f"{self.name} is not on this machine, and has to be put there by a person: "
            f"{self.placed.by_hand}; the place is {self.home}"
        )


_SETS: dict[str, SetInfo] = {}


def image_set(
    card: Card,
    *,
    ready: Callable[[], bool] = lambda: True,
    suites: tuple[str, ...] = (),
) -> Callable[[Callable[[], ImageSet]], Callable[[], ImageSet]]:
    """Register a function that opens an image set under its card's name."""

    def register(build: Callable[[], ImageSet]) -> Callable[[], ImageSet]:
        _SETS[card.name] = SetInfo(card, build, ready, suites)
        return build

    return register


def placed_set(
    card: Card, placed: Placed, *, family: str | None = None, suites: tuple[str, ...] = ()
) -> None:
    """Register a set that lies in the sets folder, in the layout in which it was published."""

    def ready() -> bool:
        if placed.base is not None:
            return _SETS[placed.base].ready()
        return (sets_dir() / (placed.home or card.name)).is_dir()

    def build() -> ImageSet:
        info = _SETS[card.name]
        if placed.base is None and not ready():
            raise InputError(info.missing)
        images = read_placed(info, sets_dir() / (placed.home or card.name), card)
        if placed.pictures is not None and len(images) != placed.pictures:
            raise InputError(
                f"{info.home} holds {len(images):,} pictures of {card.name}, which was published "
                f"with {placed.pictures:,}; complete it, or give the part a name of its own: a "
                f'folder with a set.toml that says like = "{card.name}"'
            )
        return images

    _SETS[card.name] = SetInfo(card, build, ready, suites, family, placed)


def read_placed(info: SetInfo, root: Path, card: Card) -> ImageSet:
    """Read a folder in the layout of a known set; what its files say goes onto the card."""
    if info.placed is None:
        raise InputError(f"{info.name} has no layout that another folder could have")
    images = info.placed.read(root, card.name)
    members = card_of(images).members
    vars(images)["card"] = card if members is None else replace(card, members=members)
    return images


def sets_dir() -> Path:
    """Return the folder of image sets: ``sets`` under ``SHIFTBED_DATA``.

    A folder in it with a ``set.toml`` is a set that can be named.
    """
    return cache_dir() / "sets"


def list_sets() -> list[SetInfo]:
    """Return every image set known by name: those built in, and those in the sets folder."""
    from shiftbed.data import fetched, icons, natural  # noqa: F401 - these register their sets

    _plugins.load()
    return sorted((_SETS | _described()).values(), key=lambda info: info.name)


def find_info(name: str) -> SetInfo:
    """Return what is known of a set by its name."""
    known = {info.name: info for info in list_sets()}
    if name not in known:
        raise unknown("image set", name, known)
    return known[name]


def find_set(name: str) -> ImageSet:
    """Open a set by its name alone."""
    return find_info(name).open()


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


def open_set(given: ImageSet | Dataset | str | Path, *, name: str | None = None) -> ImageSet:
    """Return an image set: one known by name, the user's own in any of its forms, or itself.

    These are a folder, a table, arrays, WebDataset shards, and data sets of Hugging Face's.

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
        if getattr(images, "card", None) is None:
            vars(images)["card"] = known[given].card
        return images
    path = None if is_dataset(given) else found_path(given)
    if path is not None and path.name == CARD_FILE:
        path = path.parent
    if path is not None and (path / CARD_FILE).is_file():
        return open_described(path, name=name)
    own = open_own(given, name)
    if own is not None:
        return own
    near = _beside(Path(str(given)))
    if "/" in str(given) or isinstance(given, Path):
        hint = f" (did you mean {near}?)" if near is not None else ""
        raise InputError(
            f"{given} does not exist{hint}; {OWN}, or a name that `shiftbed list sets` shows"
        )
    raise unknown("image set or folder", str(given), [*known, *([str(near)] if near else [])])


def _beside(path: Path) -> Path | None:
    """Return what a path that is not there was perhaps meant to be."""
    around = found_path(path.parent)
    names = [one.name for one in around.iterdir()] if around and around.is_dir() else []
    near = difflib.get_close_matches(path.name, names, n=1)
    return path.with_name(near[0]) if near else None
