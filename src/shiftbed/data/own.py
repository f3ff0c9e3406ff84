"""A user's own pictures, in whatever form they are kept."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from shiftbed.data import huggingface
from shiftbed.data.arrays import read_npy, read_npz
from shiftbed.data.files import found_path
from shiftbed.data.folder import folder_name, image_folder
from shiftbed.data.sets import ImageSet
from shiftbed.data.shards import read_shards, shard_paths
from shiftbed.data.table import labelled_files
from shiftbed.errors import InputError

__all__ = ["OWN", "open_own"]

OWN = (
    "expected a folder with one folder per class, a table (.csv, .tsv, .parquet), arrays (.npz, "
    ".npy), shards (.tar) or a data set of Hugging Face's (hf:NAME:SPLIT, or saved to a folder)"
)


def open_own(
    given: huggingface.Dataset | str | Path,
    name: str | None = None,
    classes: Sequence[str] | None = None,
) -> ImageSet | None:
    """Open pictures in any form; None if nothing is there by that name.

    ``classes`` are those that the labels mean, in their order, also where one has no picture.
    """
    if huggingface.is_dataset(given):
        return huggingface.DatasetSet(name or huggingface.own_name(given), given, classes)
    if str(given).startswith(huggingface.HUB):
        return huggingface.from_hub(str(given).removeprefix(huggingface.HUB), name, classes)
    path = found_path(given)
    if shards := shard_paths(given):
        return read_shards(shards, name=name or _shards_name(path), classes=classes)
    if path is None:
        return None
    if path.is_dir():
        if huggingface.is_saved(path):
            return huggingface.saved(path, name or folder_name(path), classes)
        return image_folder(path, name=name, classes=classes)
    suffix = path.suffix.lower()
    if suffix == ".npz":
        return read_npz(path, name, classes)
    if suffix == ".npy":
        return read_npy(path, name, classes)
    if suffix == ".parquet" and huggingface.holds_pictures(path):
        return huggingface.from_parquet(path, name or path.stem, classes)
    if suffix in (".csv", ".tsv", ".parquet"):
        return labelled_files(path, name=name, classes=classes)
    raise InputError(f"{given} is a file that is no image set; {OWN}")


def _shards_name(path: Path | None) -> str | None:
    return folder_name(path) if path is not None and path.is_dir() else None
