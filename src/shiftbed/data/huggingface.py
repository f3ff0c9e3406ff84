"""Image sets of Hugging Face's ``datasets``: from the hub, saved to disk, in Parquet, in memory."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from shiftbed.data.folder import plain_name, split_name
from shiftbed.data.pictures import read_picture
from shiftbed.data.sets import Labels, Picture, UnreadablePicture, digest
from shiftbed.data.table import LABEL, PICTURE, find_column, labelled, labels_of
from shiftbed.errors import InputError, MissingExtraError, unknown

if TYPE_CHECKING:
    from typing_extensions import TypeIs

__all__ = [
    "HUB",
    "Dataset",
    "DatasetSet",
    "from_hub",
    "from_parquet",
    "holds_pictures",
    "is_dataset",
    "is_saved",
    "own_name",
    "saved",
]

#: What stands before the name of a data set of the hub, as in ``hf:ylecun/mnist:test``.
HUB = "hf:"
_ROWS = 1024


class Dataset(Protocol):
    """A ``datasets.Dataset``, as far as one is told from other things without that package."""

    @property
    def features(self) -> Any:
        """What is said of its columns."""
        ...

    def select_columns(self, column_names: Any) -> Any:
        """Return it with some of its columns."""
        ...


class DatasetSet:
    """A ``datasets.Dataset`` with a column of pictures, and one of labels if it has any.

    Pictures are decoded as those in files are, not by ``datasets``; an id is a row's number.
    """

    def __init__(self, name: str, dataset: Any, classes: Sequence[str] | None = None) -> None:
        from datasets import Image

        self.name = name
        features = dict(dataset.features)
        images = [column for column, kind in features.items() if isinstance(kind, Image)]
        column = images[0] if images else find_column(features, PICTURE)
        if column is None:
            raise InputError(
                f"{name} has the columns {', '.join(features)}; expected one of pictures: 'image'"
            )
        try:
            self._pictures = dataset.select_columns([column]).cast_column(
                column, Image(decode=False)
            )
        except (TypeError, ValueError) as problem:
            raise InputError(
                f"the column {column!r} of {name} holds no pictures ({problem})"
            ) from None
        self._column = column
        self.ids = tuple(map(str, range(len(dataset))))
        if not self.ids:
            raise InputError(f"{name} holds no pictures")
        self.classes, self.labels = _labels(name, dataset, classes)

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return f"DatasetSet({self.name}: {len(self)} pictures, {len(self.classes)} classes)"

    def load(self, index: int) -> Picture:
        """Return a picture as uint8 RGB, or raise UnreadablePicture."""
        held = self._pictures[index][self._column]
        if held is None:
            raise UnreadablePicture("the row has no picture")
        if held["bytes"] is not None:
            return read_picture(io.BytesIO(held["bytes"]))
        return read_picture(Path(held["path"]))

    @cached_property
    def _hash(self) -> str:
        labels = b"" if self.labels is None else self.labels.tobytes()
        return digest(["dataset", *self.classes, labels, *self._contents()])

    def _contents(self) -> Iterator[bytes]:
        import pyarrow.compute as pc

        for rows in self._pictures.with_format("arrow").iter(_ROWS):
            held = rows[self._column].combine_chunks()
            yield repr(pc.binary_length(pc.struct_field(held, "bytes")).to_pylist()).encode()
            paths = pc.struct_field(held, "path").to_pylist()
            yield repr([path and Path(path).name for path in paths]).encode()

    def fingerprint(self) -> str:
        """A hash of labels, and of sizes and names of pictures; their pixels are not read."""
        return self._hash


def _labels(
    name: str, dataset: Any, classes: Sequence[str] | None
) -> tuple[tuple[str, ...], Labels | None]:
    features = dict(dataset.features)
    named = [column for column, kind in features.items() if _names(kind) is not None]
    column = named[0] if named else find_column(features, (*LABEL, "fine_label"))
    if column is None:
        return tuple(classes or ()), None
    rows = dataset.select_columns([column]).with_format(None)[column]
    names = _names(features[column])
    if names is None:
        return labelled([labels_of(row, column) for row in rows], classes, name)
    if classes is not None and len(classes) != len(names):
        raise InputError(f"{name} has {len(names)} classes, and {len(classes)} were given for it")
    given = [
        [
            names[one]
            for one in (row if isinstance(row, list) else [row])
            if one is not None and one >= 0
        ]
        for row in rows
    ]
    found, labels = labelled(given, names, name)
    return (found if classes is None else tuple(classes)), labels


def _names(kind: Any) -> list[str] | None:
    """Return the classes that a column's own description says."""
    names: list[str] | None = getattr(getattr(kind, "feature", kind), "names", None)
    return names


def is_dataset(given: object) -> TypeIs[Dataset]:
    """Whether something is a ``datasets.Dataset``, without importing ``datasets``."""
    return type(given).__module__.startswith("datasets.") and hasattr(given, "select_columns")


def is_saved(folder: Path) -> bool:
    """Whether a folder was written by ``save_to_disk``."""
    return any((folder / file).is_file() for file in ("dataset_dict.json", "state.json"))


def holds_pictures(path: Path) -> bool:
    """Whether a Parquet file holds its pictures, rather than their paths."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        kinds = {one.name: one.type for one in pq.read_schema(path)}
    except (pa.ArrowException, OSError):  # whoever reads it as a table says what is wrong
        return False
    column = find_column(kinds, PICTURE)
    return column is not None and not pa.types.is_string(kinds[column])


def own_name(dataset: Any) -> str:
    """Return the name of a data set with its split, as far as it knows them."""
    name = dataset.info.dataset_name or "dataset"
    return split_name(name, str(dataset.split)) if dataset.split else plain_name(name)


def _library() -> Any:
    try:
        import datasets
    except ImportError:
        raise MissingExtraError("a Hugging Face data set", "datasets") from None
    return datasets


def saved(folder: Path, name: str, classes: Sequence[str] | None = None) -> DatasetSet:
    """Open what ``save_to_disk`` wrote."""
    library = _library()
    if (folder / "dataset_dict.json").is_file():
        splits = sorted(path.name for path in folder.iterdir() if path.is_dir())
        raise InputError(
            f"{folder} holds the splits {', '.join(splits)}; name one, as in {folder / splits[-1]}"
            if splits
            else f"{folder} holds no split of a data set"
        )
    try:
        return DatasetSet(name, library.load_from_disk(str(folder)), classes)
    except InputError:
        raise
    except Exception as problem:  # whatever a damaged part makes it raise
        raise InputError(f"{folder} is no data set that was saved ({_said(problem)})") from None


def from_parquet(path: Path, name: str, classes: Sequence[str] | None = None) -> DatasetSet:
    """Open a Parquet file that holds its pictures, as the hub keeps them."""
    library = _library()
    try:
        dataset = library.Dataset.from_parquet(str(path))
    except Exception as problem:  # whatever a damaged part makes it raise
        raise InputError(f"{path} cannot be read as a data set ({_said(problem)})") from None
    return DatasetSet(name, dataset, classes)


def from_hub(
    spec: str, name: str | None = None, classes: Sequence[str] | None = None
) -> DatasetSet:
    """Open ``REPOSITORY:SPLIT`` or ``REPOSITORY@CONFIGURATION:SPLIT``; a folder will do, too."""
    library = _library()
    where, _, split = spec.rpartition(":")
    if not where or not split:
        raise InputError(
            f"{HUB}{spec} names no split; write {HUB}{spec.strip(':')}:test, or another"
        )
    repository, _, configuration = where.partition("@")
    try:
        dataset = library.load_dataset(repository, configuration or None, split=split)
    except ValueError as problem:
        if "nknown split" not in str(problem):
            raise _not_had(spec, problem) from None
        known = library.get_dataset_split_names(repository, configuration or None)
        raise unknown(f"split of {repository} named", split, known) from None
    except Exception as problem:  # of the network, of the hub, of the data
        raise _not_had(spec, problem) from None
    return DatasetSet(name or split_name(Path(repository).name, split), dataset, classes)


def _not_had(spec: str, problem: Exception) -> InputError:
    return InputError(
        f"{HUB}{spec} cannot be had from the hub or its cache ({_said(problem)}); check its name "
        "and the network, or save it where there is one (save_to_disk) and give that folder"
    )


def _said(problem: Exception) -> str:
    return (str(problem).strip() or type(problem).__name__).splitlines()[0][:160]
