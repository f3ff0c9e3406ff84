"""A curation's directory: what was asked, how many pictures each step left, and which are left.

``curation.json`` says the first two, ``shortlist.parquet`` the third, in the order of their
difficulty. The ledger of all candidates and the votes of a review are kept beside them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from shiftbed.data import ClassMap, Combine
from shiftbed.errors import InputError
from shiftbed.results._files import write_atomically

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Answer", "Confusion", "Entry", "Filter", "Recipe", "Shortlist", "Step"]

Recipe = Literal["hard", "anomalies"]

_FORMAT = 1
_ASKED = "curation.json"
_ENTRIES = "shortlist.parquet"
#: So many rows are written, and read, at a time.
_ROWS = 10_000


@dataclass(frozen=True)
class Answer:
    """What one filter model said of a picture, over all crops."""

    model: str
    #: A class of the class space.
    predicted: str
    #: The mean probability of that class.
    confidence: float
    #: That of the picture's own class; None for an anomaly, which has none.
    p_true: float | None = None


@dataclass(frozen=True)
class Filter:
    """A model that decided, and how it was read."""

    name: str
    spec: str
    #: The class space's short name.
    class_space: str
    #: Of weights, normalisation and geometry.
    fingerprint: str


@dataclass(frozen=True)
class Entry:
    """One picture of the shortlist."""

    #: The first 16 digits of ``sha256``.
    id: str
    #: Of the picture file.
    sha256: str
    path: Path
    #: The index of its class in the class space; None for an anomaly.
    label: int | None
    #: Its class; for an anomaly, the class outside the class space that it came with.
    class_name: str
    #: The class that the models together take it for.
    predicted: str
    answers: tuple[Answer, ...]
    #: From 0 to 1: how far the models were fooled.
    difficulty: float


@dataclass(frozen=True)
class Step:
    """How many pictures a step of the funnel left, in all and of each class."""

    step: str
    about: str
    left: int
    per_class: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Confusion:
    """How many pictures of a class are taken for another, before and after the cap."""

    class_name: str
    predicted: str
    before: int
    after: int


@dataclass(frozen=True)
class Shortlist:
    """What a curation's directory says.

    >>> import tempfile
    >>> entry = Entry("00ff", "00ff", Path("/heap/owl/1.jpg"), 0, "owl", "candle",
    ...               (Answer("net", "candle", 0.9, 0.01),), 0.99)
    >>> made = Shortlist(Path(tempfile.mkdtemp()), "hard", "hard-birds", "/heap",
    ...                  ("owl", "candle"), (Filter("net", "python:net", "full 2 #0", "1f"),),
    ...                  funnel=(Step("candidates", "all", 9),))
    >>> made.save([entry])
    >>> again = Shortlist.load(made.directory)
    >>> again == made, again.entries == (entry,), len(again)
    (True, True, 1)
    """

    directory: Path
    recipe: Recipe
    name: str
    #: Where the candidates came from.
    heap: str
    #: The class space's classes, in its order.
    classes: tuple[str, ...]
    models: tuple[Filter, ...]
    #: Thresholds, and what else was asked.
    options: Mapping[str, Any] = field(default_factory=dict)
    funnel: tuple[Step, ...] = ()
    confusions: tuple[Confusion, ...] = ()
    #: For some classes, picture files that show them well.
    examples: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    #: Classes of candidates that were left out as being in the class space, and what they match.
    overlap: Mapping[str, str] = field(default_factory=dict)
    #: The sets that candidates must not be near-duplicates of.
    against: tuple[str, ...] = ()
    #: Of an anomalous set: the set whose pictures are usual.
    usual: str | None = None
    #: For each class, the outputs that mean it, where models do not know the classes themselves.
    members: ClassMap | None = None
    combine: Combine = "max"
    #: Of the libraries that computed.
    versions: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def load(directory: str | Path) -> Shortlist:
        """Open a curation's directory, or say in a sentence why that is none."""
        directory = Path(directory)
        path = directory / _ASKED
        try:
            content = json.loads(path.read_text("utf-8"))
        except (FileNotFoundError, NotADirectoryError):
            raise InputError(
                f"{directory} holds no finished curation; make one with 'shiftbed curate hard' or "
                "'shiftbed curate anomalies', or let it finish by the same command as before"
            ) from None
        except (OSError, ValueError) as problem:
            raise InputError(f"cannot read {path}: {problem}") from None
        if not isinstance(content, dict) or content.get("format") != _FORMAT:
            raise InputError(
                f"{path} is not of format {_FORMAT}, which this version reads; make it again"
            )
        del content["format"]
        try:
            return Shortlist(
                directory,
                **{
                    **content,
                    "classes": tuple(content["classes"]),
                    "models": tuple(Filter(**one) for one in content["models"]),
                    "confusions": tuple(Confusion(**one) for one in content["confusions"]),
                    "against": tuple(content["against"]),
                    "funnel": tuple(Step(**step) for step in content["funnel"]),
                    "examples": {name: tuple(paths) for name, paths in content["examples"].items()},
                },
            )
        except (TypeError, KeyError, AttributeError):
            raise InputError(
                f"{path} lacks what a curation says of itself; make it again"
            ) from None

    def save(self, entries: Iterable[Entry]) -> None:
        """Write the directory. The entries, in their order, are not held in memory.

        ``curation.json`` is written last: where it is, the shortlist is whole.
        """
        write_atomically(
            self.directory, self.directory / _ENTRIES, lambda path: _write(path, entries)
        )
        content = {"format": _FORMAT, **asdict(self)}
        del content["directory"]
        text = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
        write_atomically(
            self.directory, self.directory / _ASKED, lambda path: path.write_text(text, "utf-8")
        )

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        """The pictures, hardest first."""
        return tuple(self.read())

    def read(self) -> Iterator[Entry]:
        """Read the pictures, hardest first, a few thousand at a time."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        path = self.directory / _ENTRIES
        try:
            with pq.ParquetFile(path) as file:
                for batch in file.iter_batches(_ROWS):
                    for row in batch.to_pylist():
                        yield _entry(row)
        except (OSError, KeyError, TypeError, pa.ArrowException) as problem:
            said = str(problem).splitlines()[0]
            raise InputError(f"{path} is damaged or gone ({said}); make it again") from None

    def __len__(self) -> int:
        return len(self.entries)


def _schema() -> pa.Schema:
    import pyarrow as pa

    text, number = pa.string(), pa.float64()
    answer = [("model", text), ("predicted", text), ("confidence", number), ("p_true", number)]
    return pa.schema(
        [
            ("id", text),
            ("sha256", text),
            ("path", text),
            ("label", pa.int32()),
            ("class", text),
            ("predicted", text),
            ("answers", pa.list_(pa.struct(answer))),
            ("difficulty", number),
        ]
    )


def _write(path: Path, entries: Iterable[Entry]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = _schema()
    with pq.ParquetWriter(path, schema, compression="zstd") as file:
        rows: list[dict[str, Any]] = []
        for entry in entries:
            rows.append(_row(entry))
            if len(rows) == _ROWS:
                file.write_table(pa.Table.from_pylist(rows, schema=schema))
                rows = []
        file.write_table(pa.Table.from_pylist(rows, schema=schema))


def _row(entry: Entry) -> dict[str, Any]:
    row = asdict(entry)
    row["class"] = row.pop("class_name")
    return {**row, "path": str(entry.path), "answers": list(row["answers"])}


def _entry(row: dict[str, Any]) -> Entry:
    row["class_name"] = row.pop("class")
    row["path"] = Path(row["path"])
    row["answers"] = tuple(Answer(**answer) for answer in row["answers"])
    return Entry(**row)
