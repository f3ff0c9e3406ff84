"""Tables as files for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from shiftbed.errors import InputError
from shiftbed.results._files import write_atomically

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["export"]

_FORMATS = (".csv", ".parquet", ".arrow", ".json")


def export(table: pa.Table, path: str | Path) -> Path:
    """Write a table to a ``.csv``, ``.parquet``, ``.arrow`` or ``.json`` file, by its suffix.

    >>> import tempfile
    >>> import pyarrow as pa
    >>> file = Path(tempfile.mkdtemp()) / "numbers.csv"
    >>> export(pa.table({"n": [1, 2]}), file).read_text()
    '"n"\\n1\\n2\\n'
    """
    import json

    import pyarrow.csv
    import pyarrow.feather
    import pyarrow.parquet

    path = Path(path)
    writers = {
        ".csv": lambda temporary: pyarrow.csv.write_csv(table, temporary),
        ".parquet": lambda temporary: pyarrow.parquet.write_table(table, temporary),
        ".arrow": lambda temporary: pyarrow.feather.write_feather(table, str(temporary)),
        ".json": lambda temporary: temporary.write_text(json.dumps(table.to_pylist()), "utf-8"),
    }
    if path.suffix.lower() not in writers:
        raise InputError(f"{path} says no format; end its name in one of {', '.join(_FORMATS)}")
    write_atomically(path.parent, path, writers[path.suffix.lower()])
    return path
