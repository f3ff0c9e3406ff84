"""A folder of pictures: a folder per class, or flat and without labels."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from shiftbed.data.files import FileSet, found_path
from shiftbed.errors import InputError, unknown

__all__ = [
    "CARD_FILE",
    "PICTURE_SUFFIXES",
    "files_below",
    "folder_name",
    "image_folder",
    "order",
    "plain_name",
    "split_name",
]

#: The file that makes a folder of pictures a described set.
CARD_FILE = "set.toml"
#: What stands beside pictures in folders; nobody meant it as one.
_LITTER = {"thumbs.db", "desktop.ini", CARD_FILE}
#: Of files that are meant as pictures.
PICTURE_SUFFIXES = {
    ".jpg",
    ".jpeg",
    ".png",
    ".ppm",
    ".bmp",
    ".pgm",
    ".tif",
    ".tiff",
    ".webp",
    ".gif",
}
_SPLITS = {"train", "training", "val", "valid", "validation", "test", "testing"}


def image_folder(
    path: str | Path,
    *,
    name: str | None = None,
    orient: bool = False,
    classes: Sequence[str] | None = None,
) -> FileSet:
    """Open a folder of pictures: a folder per class (labelled), or flat (not labelled).

    Every file below a class folder is a picture of it, in subfolders too; one that cannot be
    read is reported when it is loaded. Hidden files are passed over. Classes are in the order
    of their names, as torchvision has them, but numbers sort as numbers. ``classes``, if they
    are given, say which there are and in which order, also where one has no folder.
    """
    given, found = path, found_path(path)
    if found is None or not found.is_dir():
        what = "does not exist" if found is None else "is a file, not a folder"
        raise InputError(f"{given} {what}; expected a folder with one folder per class")
    path = found
    below = list(files_below(path))
    # A file's class is the first folder on its way.
    loose = sorted(file for file in below if "/" not in file)
    by_class: dict[str, list[str]] = {}
    for file in below:
        first, slash, _ = file.partition("/")
        if slash:
            by_class.setdefault(first, []).append(file)
    found_classes = sorted(by_class, key=order)
    if not found_classes:
        if not loose:
            raise InputError(
                f"{given} holds no pictures; expected a folder with one folder per class, "
                "or pictures directly in it"
            )
        return FileSet(name or folder_name(path), path, loose, orient=orient)
    _check_labelled(path, loose, found_classes)
    classes = found_classes if classes is None else list(classes)
    place = {one: index for index, one in enumerate(classes)}
    strange = next((one for one in found_classes if one not in place), None)
    if strange is not None:
        raise unknown(f"class (a folder in {given})", strange, classes)
    ordered = [one for one in classes if one in by_class]
    ids = [file for one in ordered for file in sorted(by_class[one])]
    labels = np.repeat([place[one] for one in ordered], [len(by_class[one]) for one in ordered])
    return FileSet(name or folder_name(path), path, ids, labels, classes, orient=orient)


def _check_labelled(path: Path, loose: list[str], classes: list[str]) -> None:
    splits = [name for name in classes if name.casefold() in _SPLITS]
    if splits and len(splits) == len(classes):
        raise InputError(
            f"{path} holds {' and '.join(splits)} rather than classes; "
            f"name one of them, as in {path / splits[-1]}"
        )
    pictures = [name for name in loose if Path(name).suffix.casefold() in PICTURE_SUFFIXES]
    if pictures:
        raise InputError(
            f"{path} holds both class folders ({', '.join(classes[:3])}) and "
            f"{len(pictures)} loose pictures ({pictures[0]}), so it is not clear whether "
            "it is labelled; move the loose ones away, or into a class folder"
        )


def folder_name(path: Path) -> str:
    """Return a set's name for a folder: its own name, or its parent's for the validation split.

    >>> folder_name(Path("pets/val")), folder_name(Path("pets/test")), folder_name(Path("pets"))
    ('pets', 'pets-test', 'pets')
    """
    path = path.resolve()
    if path.name.casefold() in _SPLITS and path.parent.name:
        return split_name(path.parent.name, path.name)
    return plain_name(path.name or "pictures")


def split_name(name: str, split: str) -> str:
    """Return the name of a set's split: the set's own for the validation split."""
    split = split.casefold()
    return plain_name(name if split.startswith("val") else f"{name}-{split}")


def plain_name(name: str) -> str:
    """Return a name as it can stand in a setting's name.

    >>> plain_name("country-New Zealand")
    'country-New-Zealand'
    """
    return "".join(char if char.isalnum() or char in "-_." else "-" for char in name)


def files_below(root: Path) -> Iterator[str]:
    """Yield the paths of all files below a folder, with ``/`` between; links are followed."""
    seen: set[str] = set()
    folders = [""]
    while folders:
        inner = folders.pop()
        real = os.path.realpath(root / inner)
        if real in seen:  # a link back to where we came from
            continue
        seen.add(real)
        try:
            with os.scandir(root / inner) as entries:
                for entry in entries:
                    if entry.name.startswith("."):
                        continue
                    if _is_folder(entry):
                        folders.append(f"{inner}{entry.name}/")
                    elif entry.name.casefold() not in _LITTER:
                        yield inner + entry.name
        except OSError as problem:
            raise InputError(f"cannot look into {root / inner}: {problem.strerror}") from None


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link that leads to itself: no folder, and no picture, as reading it says
        return False


def order(name: str) -> tuple[int, int, str]:
    """The order of classes: numbers before names, and as numbers.

    >>> sorted(["10", "b", "9", "a"], key=order)
    ['9', '10', 'a', 'b']
    """
    return (0, int(name), name) if name.isdecimal() else (1, 0, name)
