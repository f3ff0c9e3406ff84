"""Files that are there whole or not at all.

Every file is written under a temporary name, flushed to the disk, and then renamed, so a
reader, a crash or a power cut finds the old content or the new, never a half. The folder
that holds the name is not flushed: a power cut may undo the last few renames, and those
files are then made again.
"""

from __future__ import annotations

import os
import shutil
import socket
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from shiftbed.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["damaged", "read_text", "rows_of", "sweep", "write_atomically"]

#: A record is larger than this only if somebody wants to fill the memory.
_MOST = 256 * 2**20
#: Temporary files of a machine that we cannot ask are left alone for this long.
FOREIGN_SECONDS = 24 * 3600


def write_atomically(
    root: Path, path: Path, write: Callable[[Path], object], *, flush: bool = True
) -> None:
    """Make the file ``path`` by calling ``write`` with a temporary path below ``root``.

    ``flush=False`` is for a file that nobody would miss after a power cut.

    >>> import tempfile
    >>> root = Path(tempfile.mkdtemp())
    >>> write_atomically(root, root / "a" / "b.txt", lambda path: path.write_text("whole"))
    >>> (root / "a" / "b.txt").read_text()
    'whole'
    >>> [entry.name for entry in root.iterdir()]
    ['a']
    """
    scratch = _scratch(root)
    temporary = scratch / uuid.uuid4().hex
    try:
        scratch.mkdir(parents=True, exist_ok=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        write(temporary)
        if flush:
            with temporary.open("rb+") as file:
                os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as problem:
        raise InputError(
            f"cannot write results to {root} ({problem.strerror or problem}); what was finished "
            "is kept: make room or give a folder that can be written, and run it again"
        ) from problem
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        _remove_if_empty(scratch)


def rows_of(path: Path, needed: pa.Schema | None = None, *, without: str = "") -> pa.Table:
    """Read a Parquet file of results, or say that it is damaged.

    With ``needed``, those columns must be there; they are cast to these types. ``without`` names
    a column that is not read.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(path)  # not read_table, which looks at folders' names too
        table = file.read([name for name in file.schema_arrow.names if name != without])
        for column in needed or ():
            place = table.schema.get_field_index(column.name)
            table = table.set_column(place, column, table[column.name].cast(column.type))
        return table
    except FileNotFoundError:
        raise
    except (pa.ArrowException, OSError, KeyError, ValueError) as problem:
        raise damaged(path, problem) from None


def damaged(path: Path, problem: Exception) -> InputError:
    """Return what is raised for a file of results that is not as it was written."""
    return InputError(
        f"{path} is damaged ({str(problem).splitlines()[0][:200]}); 'shiftbed results verify "
        f"--repair' removes what is, and the same evaluation makes it again"
    )


def read_text(path: Path) -> str:
    """Read a text file of results, or say that it is damaged."""
    try:
        with path.open("rb") as file:
            content = file.read(_MOST + 1)
        if len(content) > _MOST:
            raise InputError(f"{path} has more than {_MOST / 2**20:.0f} MiB; it is no record")
        return content.decode("utf-8")
    except UnicodeDecodeError as problem:
        raise InputError(
            f"{path} is damaged ({problem}); remove its folder, and the same evaluation makes it "
            "again"
        ) from None


def sweep(root: Path) -> list[Path]:
    """Remove the temporary files of runs that are no more; return what was removed."""
    removed = []
    for scratch in sorted((root / ".tmp").glob("*")):
        if _abandoned(scratch):
            removed += sorted(scratch.glob("*"))
            shutil.rmtree(scratch, ignore_errors=True)
    _remove_if_empty(root / ".tmp" / "-")
    return removed


def _scratch(root: Path) -> Path:
    return root / ".tmp" / f"{socket.gethostname()}-{os.getpid()}"


def _abandoned(scratch: Path) -> bool:
    host, _, process = scratch.name.rpartition("-")
    if host == socket.gethostname() and process.isdigit() and os.name == "posix":
        try:
            os.kill(int(process), 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            return False
        return False
    try:
        return time.time() - scratch.stat().st_mtime > FOREIGN_SECONDS
    except FileNotFoundError:
        return False


def _remove_if_empty(scratch: Path) -> None:
    for folder in (scratch, scratch.parent):
        try:
            folder.rmdir()
        except OSError:
            return
