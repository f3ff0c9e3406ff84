"""The ledger of a curation: what became of every candidate, kept as it is found out.

It is a database in the curation's directory, not a table in memory: a million candidates need no
more room than ten thousand, and a run that is killed goes on from the last slice that it wrote.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from shiftbed.data.prints import NEAR, Print, alike, bands
from shiftbed.errors import InputError

__all__ = ["Candidate", "Ledger", "Outcome", "Ranked"]

_FILE = "candidates.sqlite"
#: Numbered in the order of classes and paths; reference pictures have numbers below zero.
_TABLES = """
create table if not exists facts(name text primary key, value text not null) without rowid;
create table if not exists candidates(
    n integer primary key, class text not null, path text not null, fate text, detail text,
    sha256 text, p_true real, difficulty real, predicted text, answers text
);
create index if not exists by_fate on candidates(fate, class);
create table if not exists prints(
    n integer primary key, pixels blob not null, thumbnail blob not null
);
create index if not exists by_pixels on prints(pixels);
create table if not exists bands(
    band integer not null, n integer not null, primary key(band, n)
) without rowid;
"""
#: KiB of the database that are held in memory.
_CACHE = 32 * 1024


@dataclass(frozen=True)
class Candidate:
    """A picture of the heap that is still to be looked at."""

    n: int
    class_name: str
    path: str


@dataclass(frozen=True)
class Outcome:
    """What became of a candidate."""

    n: int
    fate: str
    detail: str | None = None
    sha256: str | None = None
    p_true: float | None = None
    difficulty: float | None = None
    predicted: str | None = None
    answers: Sequence[Mapping[str, Any]] | None = None


@dataclass(frozen=True)
class Ranked:
    """A candidate on the shortlist."""

    class_name: str
    path: str
    sha256: str
    difficulty: float
    predicted: str
    answers: Sequence[Mapping[str, Any]]


class Ledger:
    """A curation's database.

    >>> import tempfile
    >>> with Ledger(tempfile.mkdtemp()) as ledger:
    ...     ledger.fill([("b.jpg", "owl", None, None), ("a.jpg", "owl", None, None)])
    ...     [one.path for one in ledger.pending(10)]
    ['a.jpg', 'b.jpg']
    """

    def __init__(self, directory: str | Path) -> None:
        self.path = Path(directory) / _FILE
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(self.path, timeout=1, isolation_level=None)
            self._db.execute("pragma locking_mode = exclusive")
            self._db.execute("pragma journal_mode = wal")
            self._db.execute("pragma synchronous = normal")
            self._db.execute("pragma temp_store = file")
            self._db.execute(f"pragma cache_size = -{_CACHE}")
            self._db.executescript(_TABLES)
        except sqlite3.OperationalError as problem:
            if "locked" in str(problem):
                raise InputError(
                    f"{self.path.parent} is being worked on by another process; let it finish"
                ) from None
            raise InputError(f"cannot write to {self.path.parent} ({problem})") from None
        except (OSError, sqlite3.DatabaseError) as problem:
            raise InputError(
                f"{self.path} cannot be used ({problem}); delete it to begin again, or give "
                "another directory"
            ) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
        self._db.close()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("begin immediate")
        try:
            yield
        except BaseException:
            self._db.execute("rollback")
            raise
        self._db.execute("commit")

    # Facts

    def fact(self, name: str) -> str | None:
        """Return something that was noted."""
        row = self._db.execute("select value from facts where name = ?", (name,)).fetchone()
        return None if row is None else str(row[0])

    def note(self, name: str, value: str) -> None:
        """Note something."""
        self._db.execute("insert or replace into facts values (?, ?)", (name, value))

    def claim(self, asked: Mapping[str, Any]) -> None:
        """Note what all that is kept here depends on, or refuse what differs from it."""
        known = json.loads(self.fact("asked") or "{}")
        now = json.loads(json.dumps(asked))
        differ = [key for key in now if key in known and known[key] != now[key]]
        if differ:
            raise InputError(
                f"{self.path.parent} holds a curation with other {' and '.join(differ)}; give "
                "the same, or another directory"
            )
        self.note("asked", json.dumps({**known, **now}))

    # The heap

    def fill(self, heap: Iterable[tuple[str, str, str | None, str | None]]) -> None:
        """List the heap: each candidate's path and class, and its fate if that is clear already."""
        if self.fact("listed") is not None:
            return
        with self._transaction():
            self._db.execute(
                "create temp table listed(class text, path text, fate text, detail text, "
                "primary key(class, path)) without rowid"
            )
            self._db.executemany(
                "insert or ignore into listed(path, class, fate, detail) values (?, ?, ?, ?)", heap
            )
            self._db.execute(
                "insert into candidates(class, path, fate, detail) "
                "select class, path, fate, detail from listed order by class, path"
            )
            self._db.execute("drop table listed")
            self.note("listed", "yes")

    def classes(self) -> list[str]:
        """Return the classes that candidates came with."""
        rows = self._db.execute("select distinct class from candidates order by class")
        return [row[0] for row in rows]

    def pending(self, some: int) -> Iterator[Candidate]:
        """Yield those that nothing is known of yet, read ``some`` at a time."""
        last = 0
        query = (
            # By number: the index of fates would have to be sorted anew for every slice.
            "select n, class, path from candidates not indexed where n > ? and fate is null "
            "order by n"
        )
        while rows := self._db.execute(f"{query} limit {some}", (last,)).fetchall():
            yield from (Candidate(*row) for row in rows)
            last = rows[-1][0]

    def counts(self) -> tuple[int, int]:
        """Return how many candidates there are, and of how many the fate is known."""
        query = "select count(*), count(fate) from candidates"
        total, known = self._db.execute(query).fetchone()
        return int(total), int(known)

    # Prints

    def twin(self, printed: Print, near: int = NEAR) -> int | None:
        """Return the number of a picture that is the same as this, or nearly, if there is one."""
        query = "select n from prints where pixels = ? order by n limit 1"
        row = self._db.execute(query, (printed.pixels,)).fetchone()
        if row is not None:
            return int(row[0])
        if printed.plain:
            return None
        keys = bands(printed.signs, near)
        marks = ",".join("?" * len(keys))
        rows = self._db.execute(
            "select n, pixels, thumbnail from prints where n in "
            f"(select n from bands where band in ({marks})) order by n",
            keys,
        )
        found = (int(n) for n, *kept in rows if alike(Print(*kept), printed, near))
        return next(found, None)

    def remember(self, n: int, printed: Print, near: int = NEAR) -> None:
        """Keep a picture's print, to know it again."""
        self._db.execute(
            "insert into prints values (?, ?, ?)", (n, printed.pixels, printed.thumbnail)
        )
        if not printed.plain:
            self._db.executemany(
                "insert into bands values (?, ?)", ((key, n) for key in bands(printed.signs, near))
            )

    @contextmanager
    def slice(self) -> Iterator[None]:
        """What is written in the block is kept as a whole, or not at all."""
        with self._transaction():
            yield

    def candidate(self, n: int) -> Candidate:
        """Return a candidate by its number."""
        query = "select n, class, path from candidates where n = ?"
        return Candidate(*self._db.execute(query, (n,)).fetchone())

    def settle(self, outcomes: Iterable[Outcome]) -> None:
        """Write down what became of some candidates."""
        self._db.executemany(
            "update candidates set fate = ?, detail = ?, sha256 = ?, p_true = ?, difficulty = ?, "
            "predicted = ?, answers = ? where n = ?",
            (
                (
                    *(one.fate, one.detail, one.sha256, one.p_true, one.difficulty, one.predicted),
                    None if one.answers is None else json.dumps(one.answers, ensure_ascii=False),
                    one.n,
                )
                for one in outcomes
            ),
        )

    # What is left

    def fates(self) -> Iterator[tuple[str, str, int]]:
        """Yield each fate, class, and how many candidates of the class it befell."""
        yield from self._db.execute(
            "select fate, class, count(*) from candidates group by fate, class order by class"
        )

    def fallen(self, fate: str) -> Iterator[tuple[str, str]]:
        """Yield the path of every candidate with a fate, and the detail."""
        query = "select path, coalesce(detail, '') from candidates where fate = ? order by n"
        yield from self._db.execute(query, (fate,))

    def rank(self, judged: str, least: float, each: int) -> None:
        """Rank those with the fate ``judged``, and keep ``each`` of every confusion at most."""
        with self._transaction():
            self._db.execute("drop table if exists ranked")
            self._db.execute(
                "create table ranked as select n, class, predicted, difficulty, "
                "row_number() over (partition by class, predicted order by difficulty desc, n) "
                "as place from candidates where fate = ? and difficulty >= ?",
                (judged, least),
            )
            self._db.execute("create index by_difficulty on ranked(difficulty desc, n)")
            self.note("each", str(each))

    def confusions(self) -> list[tuple[str, str, int, int]]:
        """Return class, predicted class, and how often before and after the cap."""
        query = (
            "select class, predicted, count(*), sum(place <= ?) from ranked "
            "group by class, predicted order by 3 desc, 1, 2"
        )
        rows = self._db.execute(query, (int(self.fact("each") or 0),))
        return [(one, two, int(before), int(after)) for one, two, before, after in rows]

    def ranked(self) -> Iterator[Ranked]:
        """Yield the shortlist, hardest first."""
        rows = self._db.execute(
            "select class, path, sha256, difficulty, predicted, answers from candidates "
            "join (select n as r, difficulty as d from ranked where place <= ?) on n = r "
            "order by d desc, r",
            (int(self.fact("each") or 0),),
        )
        for name, path, sha256, difficulty, predicted, answers in rows:
            yield Ranked(name, path, sha256, difficulty, predicted, json.loads(answers))

    def best(self, fate: str, each: int) -> Iterator[tuple[str, str]]:
        """Yield class and path of the ``each`` of every class that a model was surest of."""
        yield from self._db.execute(
            "select class, path from (select class, path, row_number() over "
            "(partition by class order by p_true desc, n) as place from candidates "
            "where fate = ? and p_true is not null) where place <= ? order by class, place",
            (fate, each),
        )
