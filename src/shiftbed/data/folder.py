"""A folder of pictures: a folder per class, or flat and without labels."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from shiftbed.data.files import FileSet, found_path
from shiftbed.errors import InputError

__all__ = ["folder_name", "image_folder"]

#: What systems leave in folders; nobody meant it as a picture.
_LITTER = {"thumbs.db", "desktop.ini"}
_SPLITS = {"train", "training", "val", "valid", "validation", "test", "testing"}


def image_folder(path: str | Path, *, name: str | None = None, orient: bool = False) -> FileSet:
    """Open a folder of pictures: a folder per class (labelled), or flat (not labelled).

    Every file below a class folder is a picture of it, in subfolders too; one that cannot be
    read is reported when it is loaded. Hidden files are passed over. Classes are in the order
    of their names, as torchvision has them, but numbers sort as numbers.
    """
    given, found = path, found_path(path)
    if found is None or not found.is_dir():
        what = "does not exist" if found is None else "is a file, not a folder"
        raise InputError(f"{given} {what}; expected a folder with one folder per class")
    path = found
    inside = sorted(_visible(path), key=lambda entry: _order(entry.name))
    folders = [(entry.name, _files(entry)) for entry in inside if entry.is_dir()]
    folders = [(class_name, files) for class_name, files in folders if files]
    files = [entry for entry in inside if entry.is_file()]
    labels = None
    if folders:
        _check_labelled(path, files, [class_name for class_name, _ in folders])
        labels = np.repeat(np.arange(len(folders)), [len(files) for _, files in folders])
        files = [file for _, below in folders for file in below]
    elif not files:
        raise InputError(
            f"{given} holds no pictures; expected a folder with one folder per class, "
            "or pictures directly in it"
        )
    return FileSet(
        name or folder_name(path),
        path,
        [file.relative_to(path).as_posix() for file in files],
        labels,
        [class_name for class_name, _ in folders],
        orient=orient,
    )


def _check_labelled(path: Path, loose: list[Path], names: list[str]) -> None:
    splits = [name for name in names if name.casefold() in _SPLITS]
    if splits and len(splits) == len(names):
        raise InputError(
            f"{path} holds {' and '.join(splits)} rather than classes; "
            f"name one of them, as in {path / splits[-1]}"
        )
    pictures = [file for file in loose if file.suffix.casefold() in _SUFFIXES]
    if pictures:
        raise InputError(
            f"{path} holds both class folders ({', '.join(names[:3])}) and "
            f"{len(pictures)} loose pictures ({pictures[0].name}), so it is not clear whether "
            "it is labelled; move the loose ones away, or into a class folder"
        )


_SUFFIXES = {".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp", ".gif"}


def folder_name(path: Path) -> str:
    """Return a set's name for a folder: its own name, or its parent's for the validation split.

    >>> folder_name(Path("pets/val")), folder_name(Path("pets/test")), folder_name(Path("pets"))
    ('pets', 'pets-test', 'pets')
    """
    path = path.resolve()
    split = path.name.casefold()
    if split in _SPLITS and path.parent.name:
        name = path.parent.name if split.startswith("val") else f"{path.parent.name}-{split}"
    else:
        name = path.name or "pictures"
    # A name must be able to stand in a setting's name.
    return "".join(char if char.isalnum() or char in "-_." else "-" for char in name)


def _visible(folder: Path) -> list[Path]:
    return [
        entry
        for entry in folder.iterdir()
        if not entry.name.startswith(".") and entry.name.casefold() not in _LITTER
    ]


def _files(folder: Path) -> list[Path]:
    found: list[Path] = []
    for entry in sorted(_visible(folder), key=lambda entry: entry.name):
        found.extend(_files(entry) if entry.is_dir() else [entry])
    return found


def _order(name: str) -> tuple[int, int, str]:
    """Numbers before names, and in the order of numbers."""
    return (0, int(name), name) if name.isdecimal() else (1, 0, name)
