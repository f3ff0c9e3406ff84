"""A folder of pictures with a card in it: the file ``set.toml``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, get_args

from shiftbed.data.card import Card, ClassMap, Combine, named_classes
from shiftbed.data.files import FileSet, read_toml
from shiftbed.data.folder import CARD_FILE
from shiftbed.data.own import OWN, open_own
from shiftbed.data.sets import ImageSet
from shiftbed.data.table import labelled_files
from shiftbed.errors import InputError, unknown

__all__ = ["Description", "open_described", "read_card", "write_card"]


@dataclass(frozen=True)
class Description:
    """What a ``set.toml`` says: the card, and where the pictures, labels and classes are."""

    card: Card
    #: The folder of the pictures and the table of their labels, relative to the file.
    pictures: str = "."
    #: The known set whose layout and card this one has, but for what is said here.
    like: str | None = None
    labels: str | None = None
    #: All classes, in the order of the labels, or None: those that the labels or folders name.
    classes: tuple[str, ...] | None = None
    #: Whether pictures are turned as their EXIF orientation says.
    orient: bool = False
    #: Pixels to cut from every side.
    border: int = 0
    #: Anything else that is worth keeping; shiftbed does not read it.
    notes: Mapping[str, Any] = field(default_factory=dict)


_CARD_KEYS = {one.name: one for one in fields(Card)}
_OTHER_KEYS = {one.name: one for one in fields(Description) if one.name != "card"}


def read_card(path: Path) -> Description:
    """Read a ``set.toml``, or say in a sentence what is wrong with it."""
    content = read_toml(path)
    for key in content:
        if key not in _CARD_KEYS and key not in _OTHER_KEYS:
            raise InputError(
                f"in {path}: {unknown('key', key, [*_CARD_KEYS, *_OTHER_KEYS])}; "
                "what shiftbed should not read goes under [notes]"
            )
    classes = content.pop("classes", None)
    if isinstance(classes, str):
        classes = named_classes(classes)
    elif classes is not None:
        if not (isinstance(classes, list) and classes and all(isinstance(c, str) for c in classes)):
            raise _wrong(path, "classes", "a list of names, or the name of a class list")
        if len(set(classes)) < len(classes):
            twice = next(name for name in classes if classes.count(name) > 1)
            raise InputError(f"{path} names the class {twice!r} twice")
        classes = tuple(classes)
    for key, kind, wanted in (
        *((key, str, "text") for key in ("name", "about", "score", "clean", "usual", "variant")),
        *((key, str, "text") for key in ("licence", "citation", "pictures", "labels", "like")),
        ("orient", bool, "true or false"),
        ("border", int, "a number of pixels"),
        ("notes", dict, "a table"),
    ):
        if key in content and not isinstance(content[key], kind):
            raise _wrong(path, key, wanted)
    if content.get("name") == "":
        raise _wrong(path, "name", "a text that is not empty")
    if content.get("combine", "max") not in get_args(Combine):
        raise unknown(f"way to combine outputs (in {path})", content["combine"], get_args(Combine))
    if "members" in content:
        content["members"] = _members(path, content["members"])
    given = {key: content.pop(key) for key in list(content) if key in _CARD_KEYS}
    card = Card(**{"name": path.resolve().parent.name, **given})
    return Description(card, classes=classes, **content)


def _members(path: Path, given: Any) -> ClassMap:
    wanted = "a table from each class to a list of outputs (WordNet ids, names or numbers)"
    if not isinstance(given, dict):
        raise _wrong(path, "members", wanted)
    members = {name: one if isinstance(one, list) else [one] for name, one in given.items()}
    if not all(isinstance(output, str | int) for one in members.values() for output in one):
        raise _wrong(path, "members", wanted)
    return members


def _wrong(path: Path, key: str, wanted: str) -> InputError:
    return InputError(f"{key!r} in {path} should be {wanted}")


def write_card(folder: str | Path, description: Description) -> Path:
    """Write a description into its folder of pictures, as ``set.toml``.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp()) / "hard-birds"
    >>> folder.mkdir()
    >>> card = Card("hard-birds", clean="imagenet-val", members={"owl": ["n01622779"]})
    >>> path = write_card(folder, Description(card, classes=("owl",)))
    >>> print(path.read_text(), end="")
    name = "hard-birds"
    clean = "imagenet-val"
    classes = ["owl"]
    <BLANKLINE>
    [members]
    "owl" = ["n01622779"]
    >>> read_card(path).card == card
    True
    """
    plain: dict[str, Any] = {}
    tables: dict[str, Mapping[str, Any]] = {}
    empty = Description(Card(""))
    for source, default in ((description.card, empty.card), (description, empty)):
        for one in fields(source):
            value = getattr(source, one.name)
            if one.name == "card" or value == getattr(default, one.name):
                continue
            (tables if isinstance(value, Mapping) else plain)[one.name] = value
    lines = [f"{key} = {_toml(value)}" for key, value in plain.items()]
    for key, table in tables.items():
        lines += ["", f"[{key}]", *(f"{_toml(str(k))} = {_toml(v)}" for k, v in table.items())]
    path = Path(folder) / CARD_FILE
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def _toml(value: Any) -> str:
    """Return a value as TOML, whose texts, numbers and lists are JSON's, and tables nearly."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_toml(str(k))} = {_toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def open_described(folder: Path, *, name: str | None = None) -> ImageSet:
    """Open a folder of pictures as its ``set.toml`` says."""
    told = read_card(folder / CARD_FILE)
    if told.like is not None:
        from shiftbed.data.catalogue import find_info, read_placed

        known = find_info(told.like)
        own = {
            one.name: getattr(told.card, one.name)
            for one in fields(Card)
            if getattr(told.card, one.name) != one.default
        }
        card = replace(known.card, **(own | ({"name": name} if name else {})))
        return read_placed(known, folder / told.pictures, card)
    images: ImageSet | None
    if told.labels is not None:
        images = labelled_files(
            folder / told.labels,
            root=folder / told.pictures,
            name=name or told.card.name,
            classes=told.classes,
            several=told.card.score == "map",
        )
    else:
        where = folder / told.pictures
        images = open_own(where, name or told.card.name, told.classes)
        if images is None:
            raise InputError(f"{folder / CARD_FILE} says that the pictures are {where}; {OWN}")
    if isinstance(images, FileSet):
        images.orient, images.border = told.orient, told.border
    elif told.orient or told.border:
        raise InputError(
            f"{folder / CARD_FILE} has orient or border, which are for files of pictures"
        )
    vars(images)["card"] = told.card
    return images
