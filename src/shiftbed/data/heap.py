"""Heaps of pictures: listed one by one, because they may be too many to hold."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from shiftbed.data.files import found_path
from shiftbed.data.folder import files_below
from shiftbed.data.table import LABEL, PICTURE, find_column, labels_of
from shiftbed.errors import InputError

__all__ = ["heap_root", "list_heap"]

#: So many rows of a Parquet file are read at a time.
_ROWS = 10_000
_TABLES = (".csv", ".tsv", ".parquet")


def heap_root(heap: str | Path) -> Path:
    """Return the folder that a heap's paths are below: the heap, or the folder of its table."""
    found = found_path(heap)
    if found is None:
        raise InputError(
            f"{heap} does not exist; expected a folder with one folder per class, or a table of "
            "paths and labels (.csv, .tsv or .parquet)"
        )
    if not found.is_dir() and found.suffix.lower() not in _TABLES:
        raise InputError(
            f"{heap} is neither a folder nor a table (.csv, .tsv or .parquet) of candidates"
        )
    return (found if found.is_dir() else found.parent).resolve()


def list_heap(heap: str | Path) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the path below its root, and the labels, of every candidate, in no certain order.

    The label of a file in a folder is the first folder on its way; a table has a column
    ``picture`` and a column ``label`` or ``labels``, as that of an image set.

    >>> import tempfile
    >>> table = Path(tempfile.mkdtemp()) / "heap.csv"
    >>> _ = table.write_text("path,labels\\n1.jpg,owl\\n2.jpg,owl;cat\\n3.jpg,\\n")
    >>> list(list_heap(table))
    [('1.jpg', ('owl',)), ('2.jpg', ('owl', 'cat')), ('3.jpg', ())]
    """
    root, path = heap_root(heap), found_path(heap) or Path(heap)
    if path.is_dir():
        for file in files_below(root):
            folder, slash, _ = file.partition("/")
            yield file, ((folder,) if slash else ())
        return
    picture = label = None
    for row in _parquet(path) if path.suffix.lower() == ".parquet" else _text(path):
        if picture is None:
            picture, label = find_column(row, PICTURE), find_column(row, LABEL)
        if picture is None or row[picture] is None:
            columns = ", ".join(row)
            raise InputError(
                f"{path} has the columns {columns}; expected a 'picture' (a path) in every row, "
                "and a 'label' where there is one"
            )
        yield str(row[picture]), tuple(labels_of(row[label], label) if label is not None else ())


def _parquet(path: Path) -> Iterator[dict[str, Any]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(_ROWS):
                yield from batch.to_pylist()
    except (OSError, pa.ArrowException) as problem:
        reason = str(problem).splitlines()[0]
        raise InputError(f"{path} is not a Parquet file ({reason})") from None


def _text(path: Path) -> Iterator[dict[str, Any]]:
    delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            for row in csv.DictReader(file, delimiter=delimiter, restkey=""):
                if "" in row or None in row.values():
                    raise InputError(
                        f"{path} has a row with another number of columns than its header: "
                        f"{str(next(iter(row.values())))[:60]}"
                    )
                yield {name.strip(): value.strip() or None for name, value in row.items()}
    except (OSError, UnicodeDecodeError, csv.Error) as problem:
        raise InputError(f"{path} is not a table of text ({problem})") from None
