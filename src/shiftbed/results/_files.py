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

from shiftbed.errors import InputError

__all__ = ["sweep", "write_atomically"]

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
