"""A results directory as DuckDB's tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shiftbed.results.packing import CONFIDENCE_SQL

if TYPE_CHECKING:
    import duckdb
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

__all__ = ["File", "create_predictions", "listed"]

_PLAIN = """
    parts.model, parts.setting, pictures.picture, stored.label, stored.class1, stored.class2,
    stored.class3, stored.class4, stored.class5, stored.confidence, stored.rank_true
"""
#: A class that is the label is not written, and those after the first are decoded when asked for.
_PACKED = f"""
    parts.model, parts.setting, pictures.picture,
    case when stored.rank_true is not null then {{label}} end as label,
    coalesce(stored.class1, {{label}}) as class1,
    runner_up(parts.number, stored.file_row_number, 0) as class2,
    runner_up(parts.number, stored.file_row_number, 1) as class3,
    runner_up(parts.number, stored.file_row_number, 2) as class4,
    runner_up(parts.number, stored.file_row_number, 3) as class5,
    {CONFIDENCE_SQL.replace("odds", "stored.odds").replace('"index"', 'stored."index"')}
    as confidence, stored.rank_true
"""


@dataclass(frozen=True)
class File:
    """A file with answers, and what it does not say itself."""

    path: str
    model: str
    setting: str
    pictures: str
    #: Whether it is a complete cell's, and whether its labels are with the pictures.
    packed: bool
    labelled: bool


def create_predictions(
    connection: duckdb.DuckDBPyConnection,
    files: Sequence[File],
    runners_up: Callable[[Path], npt.NDArray[np.int32]],
) -> None:
    """Make the view ``predictions`` of files; ``runners_up`` reads a complete cell's."""
    import pyarrow as pa

    if not files:
        from shiftbed.results.schema import PREDICTIONS

        connection.register("predictions", PREDICTIONS.empty_table())
        return
    parts = {
        "number": list(range(len(files))),
        "part": [one.path for one in files],
        "model": [one.model for one in files],
        "setting": [one.setting for one in files],
        "ids": [one.pictures for one in files],
    }
    connection.register("parts", pa.table(parts))
    arrow: dict[str, Any] = {"type": "arrow"}  # the constant's module differs by version
    lookup = _lookup(files, runners_up)
    connection.create_function(
        "runner_up",
        lambda numbers, rows, places: lookup(numbers, rows, places),  # it evaluates annotations
        ["BIGINT"] * 3,
        "INTEGER",
        **arrow,
    )
    groups = [
        (_PLAIN, [one for one in files if not one.packed]),
        (_PACKED.format(label="stored.label"), _packed(files, labelled=False)),
        (_PACKED.format(label="pictures.label"), _packed(files, labelled=True)),
    ]
    selects = [_select(columns, group) for columns, group in groups if group]
    connection.execute("create view predictions as " + " union all ".join(selects))


def _packed(files: Sequence[File], labelled: bool) -> list[File]:
    return [one for one in files if one.packed and one.labelled == labelled]


def _select(columns: str, files: Sequence[File]) -> str:
    return f"""
        select {columns}
        from read_parquet({listed([one.path for one in files])}, filename = true,
            file_row_number = true, union_by_name = true) stored
        join parts on parts.part = stored.filename
        join read_parquet({listed([one.pictures for one in files])}, filename = true,
            file_row_number = true, union_by_name = true) pictures
            on pictures.filename = parts.ids
            and pictures.file_row_number = stored."index"
        """


def _lookup(
    files: Sequence[File], runners_up: Callable[[Path], npt.NDArray[np.int32]]
) -> Callable[[pa.Array, pa.Array, pa.Array], pa.Array]:
    """Return a function from files' numbers, rows and places to classes."""
    import numpy as np
    import pyarrow as pa

    @lru_cache(maxsize=64)
    def classes(number: int) -> npt.NDArray[np.int32]:
        return runners_up(Path(files[number].path))

    def lookup(numbers: pa.Array, rows: pa.Array, places: pa.Array) -> pa.Array:
        file, row, place = (np.asarray(one, np.int64) for one in (numbers, rows, places))
        found = np.full(len(file), -1, np.int32)
        for number in np.unique(file):
            kept = classes(int(number))
            there = (file == number) & (place < kept.shape[1])
            found[there] = kept[row[there], place[there]]
        return pa.array(found, mask=found < 0)

    return lookup


def listed(paths: Sequence[str]) -> str:
    """Return paths as a list in SQL."""
    quoted = ("'" + path.replace("'", "''") + "'" for path in sorted(set(paths)))
    return f"[{', '.join(quoted)}]"
