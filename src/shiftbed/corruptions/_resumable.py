"""Work that may be stopped at any moment, and whose result is the same bytes all the same.

The work is a list of units, each idempotent, and its result a folder of files. A file is
written beside its place and moved there whole. When all files of a unit are in place, its
record is added to a journal; at the end, the records in their order are the manifest.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from shiftbed.assets import sha256_of
from shiftbed.errors import InputError

__all__ = ["Record", "Shelf", "Unit", "alone", "claim", "run"]

#: A unit's line of the manifest, in which each key of "files", followed by the "path" if there
#: is one, is the name of a file, and its value the file's SHA-256.
Record = dict[str, Any]

_SETTINGS = "manifest.json"
_MANIFEST = "manifest.jsonl"
_JOURNAL = ".journal.jsonl"
_SCRATCH = ".scratch"


class Shelf:
    """A folder in which files appear whole or not at all."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.scratch = folder / _SCRATCH
        self._numbers = itertools.count()

    def put(self, name: str, write: Callable[[Path], None]) -> str:
        """Write a file, move it to its name, and return its SHA-256."""
        temporary = self.scratch / str(next(self._numbers))
        write(temporary)
        digest = sha256_of(temporary)
        target = self.folder / name
        try:
            temporary.replace(target)
        except FileNotFoundError:
            target.parent.mkdir(parents=True, exist_ok=True)
            temporary.replace(target)
        return digest


@dataclass(frozen=True)
class Unit:
    """What is done at once."""

    #: How much of the whole it is, for those who watch.
    size: int
    #: Puts its files on the shelf and returns its record.
    write: Callable[[Shelf], Record]


def claim(output: Path, settings: Record) -> None:
    """Make the folder this job's, or see that it already is."""
    path = output / _SETTINGS
    if path.exists():
        try:
            theirs = dict(json.loads(path.read_text("utf-8")))
        except (ValueError, TypeError):
            raise InputError(
                f"{path} is no manifest of a stored set; choose another folder"
            ) from None
        for name, value in settings.items():
            # Another release of this package may go on: each corruption has its own version.
            if name != "shiftbed" and theirs.get(name) != value:
                was, now = _difference(theirs.get(name), value)
                raise InputError(
                    f"{output} was begun with other {name} ({was}; now {now}); "
                    "go on as it was begun, or choose another folder"
                )
        return
    if output.is_dir():
        others = [entry for entry in output.iterdir() if entry.name != _SCRATCH]
        if others:
            raise InputError(
                f"{output} is not empty ({others[0].name}) and no stored set; choose a new folder"
            )
    elif output.exists():
        raise InputError(f"{output} is a file; choose a new folder")
    (output / _SCRATCH).mkdir(parents=True, exist_ok=True)
    text = json.dumps(settings, indent=2) + "\n"
    Shelf(output).put(_SETTINGS, lambda file: _write_text(file, text))


def _difference(was: Any, now: Any) -> tuple[str, str]:
    """Return the part in which two settings differ, shortly."""
    if isinstance(was, dict) and isinstance(now, dict):
        name = next(name for name in {**was, **now} if was.get(name) != now.get(name))
        return f"{name} {was.get(name)}", str(now.get(name))
    if isinstance(was, list) and isinstance(now, list):
        gone = [item for item in was if item not in now]
        new = [item for item in now if item not in was]
        return f"{len(was)}, {_some(gone)} among them", f"{len(now)}, {_some(new)} among them"
    return str(was), str(now)


def _some(items: list[Any]) -> str:
    return str(items[0]) if items else "no other"


def _write_text(path: Path, text: str) -> None:
    path.write_text(text, "utf-8", newline="\n")


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Keep a second run out of the folder. The system ends this when the process ends."""
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise InputError(f"another run is writing to {folder}; wait for it to end") from None
    else:
        yield
    finally:
        os.close(handle)


def run(
    units: list[Unit], shelf: Shelf, *, threads: int, check: bool, watch: Callable[[int], None]
) -> tuple[list[Record], int]:
    """Do the units that are missing, write the manifest, and return it.

    Beside it: how many files were there before. ``watch`` is told of what is there already;
    units tell of themselves. ``check`` reads files that are there.
    """
    shutil.rmtree(shelf.scratch, ignore_errors=True)
    shelf.scratch.mkdir()
    journal = shelf.folder / _JOURNAL
    records = _finished(shelf.folder, check)
    kept = sum(len(record.get("files", ())) for record in records.values())
    # A killed run may have left half a line: begin the journal with the whole ones.
    shelf.put(_JOURNAL, partial(_write_lines, records=records))
    with journal.open("a", encoding="utf-8", newline="\n") as file:
        for number, record in _missing(units, frozenset(records), shelf, threads, watch):
            records[number] = record
            file.write(_line(number, record))
            file.flush()
    shelf.put(_MANIFEST, partial(_write_lines, records=records))
    journal.unlink()
    shelf.scratch.rmdir()
    return [records[number] for number in sorted(records)], kept


def _finished(folder: Path, check: bool) -> dict[int, Record]:
    """Return the records of the units whose files are all there."""
    records = {}
    for line in _lines(folder / _MANIFEST, folder / _JOURNAL):
        try:
            record = json.loads(line)
            number = record.pop("n")
        except (ValueError, KeyError, AttributeError):
            continue  # cut short when its run was killed
        files = record.get("files", {})
        # What could not be read is tried again.
        if "unreadable" not in record and all(
            _is_there(folder / name / record.get("path", ""), digest, check)
            for name, digest in files.items()
        ):
            records[number] = record
    return records


def _lines(*paths: Path) -> Iterator[str]:
    for path in paths:
        if path.exists():
            with path.open(encoding="utf-8") as file:
                yield from file


def _is_there(path: Path, digest: str, check: bool) -> bool:
    return path.is_file() and (not check or sha256_of(path) == digest)


def _missing(
    units: list[Unit],
    finished: frozenset[int],
    shelf: Shelf,
    threads: int,
    watch: Callable[[int], None],
) -> Iterator[tuple[int, Record]]:
    """Do the units that are not finished, and yield each one's record when it is."""
    running: dict[Future[Record], int] = {}
    with ThreadPoolExecutor(threads) as pool:
        try:
            for number, unit in enumerate(units):
                if number in finished:
                    watch(unit.size)
                    continue
                running[pool.submit(unit.write, shelf)] = number
                if len(running) > 2 * threads:
                    yield from _ended(running)
            while running:
                yield from _ended(running)
        finally:
            pool.shutdown(cancel_futures=True)


def _ended(running: dict[Future[Record], int]) -> Iterator[tuple[int, Record]]:
    for future in wait(running, return_when=FIRST_COMPLETED).done:
        yield running.pop(future), future.result()


def _line(number: int, record: Record) -> str:
    return json.dumps({"n": number, **record}) + "\n"


def _write_lines(path: Path, records: Mapping[int, Record]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(_line(number, records[number]) for number in sorted(records))
