"""The votes of a review: written down as they are cast, and never overwritten."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path
from typing import Literal, get_args

from shiftbed.curate.shortlist import Recipe
from shiftbed.errors import InputError
from shiftbed.metrics import Estimate, cohen_kappa

__all__ = ["REASONS", "Agreement", "Verdict", "Vote", "Votes"]

Verdict = Literal["accept", "reject", "skip"]

#: Why a picture may be rejected.
REASONS: Mapping[Recipe, Sequence[str]] = {
    "hard": ("two classes", "wrong label", "bad quality", "other"),
    "anomalies": ("shows a known class", "wrong label", "bad quality", "other"),
}

_FILE = "votes.sqlite"
#: Votes that were cast together are taken back together.
_TABLE = """
create table if not exists votes(
    n integer primary key, cast_with integer not null, picture text not null,
    reviewer text not null, verdict text not null, reason text not null, at text not null,
    undone text
);
create index if not exists by_reviewer on votes(reviewer, n);
"""


@dataclass(frozen=True)
class Vote:
    """What a reviewer last said of a picture."""

    picture: str
    reviewer: str
    verdict: Verdict
    reason: str = ""
    #: When, in UTC.
    at: str = ""


@dataclass(frozen=True)
class Agreement:
    """Of two reviewers, on the pictures that both accepted or rejected."""

    reviewers: tuple[str, str]
    pictures: int
    agreed: int
    #: None where there is none: see :func:`shiftbed.metrics.cohen_kappa`.
    kappa: Estimate | None


class Votes:
    """A curation's votes. What is taken back stays in the table, marked so.

    >>> import tempfile
    >>> votes = Votes(tempfile.mkdtemp())
    >>> votes.cast("ann", [Vote("00ff", "ann", "reject", "two classes")])
    >>> votes.cast("ann", [Vote("00ff", "ann", "accept")])
    >>> [(vote.verdict, vote.reason) for vote in votes.current()]
    [('accept', '')]
    >>> votes.undo("ann"), [vote.verdict for vote in votes.current("ann")]
    (['00ff'], ['reject'])
    """

    def __init__(self, directory: str | Path) -> None:
        self.path = Path(directory) / _FILE
        with self._open() as db:
            db.executescript(_TABLE)

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            with closing(sqlite3.connect(self.path, timeout=30, isolation_level=None)) as db:
                db.execute("pragma journal_mode = wal")
                db.execute("pragma synchronous = full")  # a vote outlives a power cut
                yield db
        except sqlite3.Error as problem:
            raise InputError(f"the votes in {self.path} cannot be used ({problem})") from None

    def cast(self, reviewer: str, votes: Iterable[Vote]) -> None:
        """Write votes down, all of them or, if the machine stops midway, none."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        with self._open() as db:
            db.execute("begin immediate")
            [first] = db.execute("select coalesce(max(n), 0) + 1 from votes").fetchone()
            db.executemany(
                "insert into votes(cast_with, picture, reviewer, verdict, reason, at) "
                "values (?, ?, ?, ?, ?, ?)",
                ((first, one.picture, reviewer, one.verdict, one.reason, now) for one in votes),
            )
            db.execute("commit")

    def undo(self, reviewer: str) -> list[str]:
        """Take back what a reviewer cast last, and return the pictures."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        last = (
            "cast_with = (select cast_with from votes where reviewer = ? and undone is null "
            "order by n desc limit 1) and reviewer = ?"
        )
        with self._open() as db:
            db.execute("begin immediate")
            query = f"select picture from votes where {last} order by n"
            pictures = [str(row[0]) for row in db.execute(query, (reviewer, reviewer))]
            db.execute(f"update votes set undone = ? where {last}", (now, reviewer, reviewer))
            db.execute("commit")
        return pictures

    def current(self, reviewer: str | None = None) -> list[Vote]:
        """Return what every reviewer, or one, last said of each picture."""
        query = (
            "select picture, reviewer, verdict, reason, at from votes where n in "
            "(select max(n) from votes where undone is null group by picture, reviewer) "
            "and (? is null or reviewer = ?) order by picture, reviewer"
        )
        with self._open() as db:
            return [Vote(*row) for row in db.execute(query, (reviewer, reviewer))]

    def agreements(self) -> list[Agreement]:
        """Return how far each two reviewers agree."""
        said: dict[str, dict[str, Verdict]] = {}
        for vote in self.current():
            if vote.verdict != "skip":
                said.setdefault(vote.reviewer, {})[vote.picture] = vote.verdict
        found = []
        for one, two in combinations(sorted(said), 2):
            both = sorted(said[one].keys() & said[two].keys())
            if both:
                first, second = ([said[who][picture] for picture in both] for who in (one, two))
                agreed = sum(a == b for a, b in zip(first, second, strict=True))
                kappa = cohen_kappa(first, second)
                found.append(Agreement((one, two), len(both), agreed, kappa))
        return found


def check_vote(vote: Vote, recipe: Recipe) -> bool:
    """Whether a vote is one that can be cast.

    >>> check_vote(Vote("00ff", "ann", "reject", "two classes"), "hard")
    True
    >>> check_vote(Vote("00ff", "ann", "accept", "two classes"), "hard")
    False
    """
    if vote.verdict not in get_args(Verdict):
        return False
    if vote.verdict == "reject":
        return vote.reason in REASONS[recipe]
    return vote.reason == ""
