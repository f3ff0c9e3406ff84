"""A results directory as tables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Results"]


class Results:
    """A directory of cells, queried as tables."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def cells(self) -> pa.Table:
        """Return one row per cell, measured here or imported."""
        from shiftbed.results.imported import read_imported
        from shiftbed.results.schema import CELLS

        return read_imported(self.path).cast(CELLS)
