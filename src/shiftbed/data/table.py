"""Pictures listed in a table: CSV or Parquet, one row for each picture and label."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from shiftbed.data.card import Frames
from shiftbed.data.files import FileSet, read_text
from shiftbed.data.sets import Labels
from shiftbed.errors import InputError, unknown

__all__ = [
    "LABEL",
    "PICTURE",
    "find_column",
    "labelled",
    "labelled_files",
    "labels_of",
    "read_table",
]

#: What the columns may be called; the first is what shiftbed's own tables say.
PICTURE = ("picture", "path", "file", "filename", "file_name", "image", "img", "filepath")
LABEL = ("label", "class", "category", "labels")
_SEPARATOR = ";"
#: All of ImageNet-21k has 14 million pictures.
_MOST_ROWS = 50_000_000


def read_table(path: Path) -> dict[str, list[Any]]:
    """Return a table's columns by name. Fields of CSV are text; empty ones are None."""
    try:
        if path.suffix.lower() == ".parquet":
            import pyarrow as pa
            import pyarrow.parquet as pq

            try:
                file = pq.ParquetFile(path)  # not read_table, which looks at folders' names too
                if file.metadata.num_rows > _MOST_ROWS:
                    raise InputError(
                        f"{path} has {file.metadata.num_rows:,} rows; at most {_MOST_ROWS:,} are "
                        "read"
                    )
                columns: dict[str, list[Any]] = file.read().to_pydict()
            except InputError:
                raise
            except (pa.ArrowException, ValueError, TypeError) as problem:
                reason = str(problem).splitlines()[0]
                raise InputError(f"{path} is not a Parquet file ({reason})") from None
            return columns
        delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
        reader = csv.reader(io.StringIO(read_text(path), newline=""), delimiter=delimiter)
        header = [name.strip() for name in next(reader, [])]
        rows = [row for row in reader if any(field.strip() for field in row)]
    except OSError as problem:
        raise InputError(f"cannot read the table {path}: {problem.strerror}") from None
    except (UnicodeDecodeError, csv.Error) as problem:
        raise InputError(f"{path} is not a table of text ({problem})") from None
    odd = next((row for row in rows if len(row) != len(header)), None)
    if odd is not None:
        raise InputError(
            f"{path} has {len(header)} columns, but a row of {len(odd)}: {','.join(odd)[:60]}"
        )
    return {
        name: [row[column].strip() or None for row in rows] for column, name in enumerate(header)
    }


def labelled_files(
    path: str | Path,
    *,
    root: Path | None = None,
    name: str | None = None,
    classes: Sequence[str] | None = None,
    several: bool = False,
) -> FileSet:
    """Open the pictures that a table lists, with the labels that it gives them.

    Its columns: ``picture``, a path from the table's folder (or ``root``); ``label``, one to a
    row, so that a picture of several labels has several rows, or ``labels``, separated by
    semicolons; for frame sets ``frame_set`` and ``offset``. Others are passed over. Labels are
    a table of truth values if a picture has several, or if ``several`` says so.
    """
    path = Path(path)
    columns = read_table(path)
    pictures = find_column(columns, PICTURE)
    if pictures is None:
        raise InputError(
            f"{path} has the columns {', '.join(columns) or 'of an empty file'}; expected "
            "'picture' (a path), and 'label' where there are labels"
        )
    if not columns[pictures]:
        raise InputError(f"{path} lists no pictures")
    label = find_column(columns, LABEL)
    listed: dict[tuple[str, str], list[str]] = {}
    offsets: dict[tuple[str, str], int] = {}
    count = len(columns[pictures])
    frame_sets = columns.get("frame_set", [None] * count)
    for row, (file, frame_set) in enumerate(zip(columns[pictures], frame_sets, strict=True)):
        if file is None:
            raise InputError(f"row {row + 1} of {path} names no picture")
        key = (str(file), "" if frame_set is None else str(frame_set))
        found = listed.setdefault(key, [])
        if label is not None:
            found += [one for one in labels_of(columns[label][row], label) if one not in found]
        if "frame_set" in columns:
            offsets[key] = _offset(columns, row, path)
    known, labels = tuple(classes or ()), None
    if label is not None:
        known, labels = labelled(list(listed.values()), classes, path, several=several)
    frames = None
    if "frame_set" in columns:
        frames = Frames(
            tuple(frame_set for _, frame_set in listed),
            np.array([offsets[key] for key in listed], np.int64),
        )
    files = [file for file, _ in listed]
    # A frame may belong to the neighbourhoods of two anchors.
    twice = len(set(files)) < len(files)
    ids = [f"{file}#{frame_set}" if twice else file for file, frame_set in listed]
    return FileSet(
        name or path.stem, root or path.parent, ids, labels, known, files=files, frames=frames
    )


def find_column(columns: Iterable[str], names: Sequence[str]) -> str | None:
    """Return the column that is called by one of some names."""
    by_name = {name.casefold(): name for name in columns}
    return next((by_name[name] for name in names if name in by_name), None)


def labels_of(field: Any, column: str) -> list[str]:
    """Return the labels in a field: one, or in a column ``labels`` several.

    >>> labels_of("cat; dog", "labels"), labels_of("cat; dog", "label"), labels_of(None, "label")
    (['cat', 'dog'], ['cat; dog'], [])
    """
    if field is None:
        return []
    if isinstance(field, list):
        return [str(one) for one in field]
    if column.casefold() == "labels":
        return [one.strip() for one in str(field).split(_SEPARATOR) if one.strip()]
    return [str(field)]


def _offset(columns: dict[str, list[Any]], row: int, path: Path) -> int:
    try:
        offset = int(columns["offset"][row])
        if abs(offset) > _MOST_ROWS:  # no scene has so many frames
            raise ValueError(offset)
        return offset
    except (KeyError, TypeError, ValueError, OverflowError):
        raise InputError(
            f"row {row + 1} of {path} has a frame set, but no offset from its anchor as a whole "
            "number, in the column 'offset'"
        ) from None


def labelled(
    given: Sequence[Sequence[str]],
    classes: Sequence[str] | None,
    where: str | Path,
    *,
    several: bool = False,
) -> tuple[tuple[str, ...], Labels]:
    """Return the classes, and pictures' labels as indices, or as truth values if any has several.

    >>> classes, labels = labelled([["dog"], [], ["cat"]], None, "a list")
    >>> classes, labels.tolist()
    (('cat', 'dog'), [1, -1, 0])
    """
    from shiftbed.data.folder import order

    named = sorted({one for found in given for one in found}, key=order)
    known = tuple(named if classes is None else classes)
    place = {name: index for index, name in enumerate(known)}
    strange = next((one for one in named if one not in place), None)
    if strange is not None:
        raise unknown(f"class (a label in {where})", strange, known)
    if not known:
        raise InputError(f"{where} has a column of labels, and all of them are empty")
    if several or any(len(found) > 1 for found in given):
        truth = np.zeros((len(given), len(known)), np.bool_)
        for row, found in enumerate(given):
            truth[row, [place[one] for one in found]] = True
        return known, truth
    # A picture that has no label is shown to models, and not counted.
    return known, np.array([place[found[0]] if found else -1 for found in given], np.int64)
