"""From a reviewed shortlist to an image set: a folder that says what it is and where it is from."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from shiftbed.assets import placed, sha256_of
from shiftbed.curate.dataset_card import dataset_card
from shiftbed.curate.shortlist import Entry, Shortlist
from shiftbed.curate.votes import Vote, Votes
from shiftbed.data import Card, Description, write_card
from shiftbed.data.catalogue import sets_dir
from shiftbed.errors import InputError, unknown

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Rule", "accepted", "export"]

#: Which pictures are taken: those that every reviewer who judged them accepted, those that at
#: least one accepted, or the whole shortlist.
Rule = Literal["all", "any", "unreviewed"]
_RULES = ("all", "any", "unreviewed")

_MANIFEST = "manifest.parquet"
_PICTURES = "images"


def accepted(votes: Sequence[Vote], rule: Rule) -> bool:
    """Whether a picture with these votes is taken. A skip is no judgement.

    >>> votes = [Vote("00ff", "ann", "accept"), Vote("00ff", "ben", "reject", "bad quality")]
    >>> accepted(votes, "all"), accepted(votes, "any"), accepted([], "unreviewed")
    (False, True, True)
    """
    if rule == "unreviewed":
        return True
    judged = [vote.verdict == "accept" for vote in votes if vote.verdict != "skip"]
    return bool(judged) and (all(judged) if rule == "all" else any(judged))


def export(
    directory: str | Path,
    output: str | Path | None = None,
    *,
    name: str | None = None,
    rule: Rule = "all",
    link: bool = False,
    clean: str | None = None,
    licence: str = "",
    citation: str = "",
) -> Path:
    """Make an image set of a shortlist's accepted pictures, and return its folder.

    The folder has the pictures, by class, as copies or hard links; ``manifest.parquet``, which
    says of each picture where it is from, what the models said and how people voted;
    ``README.md``, the set's card for people; and ``set.toml``, by which it can be evaluated.
    It is made in the sets folder unless said, and can then be named in settings.
    """
    if rule not in _RULES:
        raise unknown("rule", rule, _RULES)
    shortlist = Shortlist.load(directory)
    name = name or shortlist.name
    folder = Path(output) if output is not None else sets_dir() / name
    if folder.exists():
        raise InputError(f"{folder} is there already; give another folder, or remove it")
    votes: dict[str, list[Vote]] = {}
    for vote in Votes(directory).current():
        votes.setdefault(vote.picture, []).append(vote)
    taken = [one for one in shortlist.entries if accepted(votes.get(one.id, ()), rule)]
    if not taken:
        hint = "" if rule == "unreviewed" else ": review it, or export it unreviewed"
        raise InputError(f"no picture of {directory} is accepted, out of {len(shortlist)}{hint}")
    folders = _folder_names({entry.class_name for entry in taken})
    with placed(folder) as scratch:
        rows = []
        for entry in taken:
            place = f"{_PICTURES}/{folders[entry.class_name]}/{entry.id}{_suffix(entry.path)}"
            _put(entry, scratch / place, link)
            rows.append(_row(entry, place, votes.get(entry.id, ())))
        _write_manifest(scratch / _MANIFEST, rows)
        write_card(scratch, _description(shortlist, name, len(taken), clean, licence, citation))
        judged = {picture: cast for picture, cast in votes.items() if cast}
        text = dataset_card(
            shortlist,
            name,
            taken,
            judged,
            rule=rule,
            agreements=Votes(directory).agreements(),
            licence=licence,
        )
        (scratch / "README.md").write_text(text, "utf-8")
    return folder


def _suffix(path: Path) -> str:
    suffix = path.suffix.lower()
    return suffix if suffix[1:].isalnum() else ""


def _folder_names(classes: set[str]) -> dict[str, str]:
    """Return a folder's name for each class, no two alike, on any file system.

    >>> _folder_names({"n01443537", "../etc", "a b"})["../etc"]
    'etc'
    """
    names: dict[str, str] = {}
    for one in sorted(classes):
        plain = "".join(char if char.isalnum() or char in "-_" else "-" for char in one)
        base = plain.strip("-")[:80] or "unlabelled"
        used = {other.casefold() for other in names.values()}
        numbered = (f"{base}-{number}" for number in range(2, len(classes) + 2))
        names[one] = (
            base
            if base.casefold() not in used
            else next(other for other in numbered if other.casefold() not in used)
        )
    return names


def _put(entry: Entry, target: Path, link: bool) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        if link:
            os.link(entry.path.resolve(), target)
        else:
            shutil.copyfile(entry.path, target)
        same = sha256_of(target) == entry.sha256
    except OSError as problem:
        hint = "; leave --link out to copy it" if link else ""
        raise InputError(
            f"cannot {'link' if link else 'copy'} {entry.path} ({problem.strerror}){hint}"
        ) from None
    if not same:
        raise InputError(
            f"{entry.path} is not the picture any more that was curated; put it back, or begin "
            "again in another directory"
        )


def _row(entry: Entry, place: str, votes: Sequence[Vote]) -> dict[str, Any]:
    return {
        "picture": place,
        "label": entry.class_name or None,
        "id": entry.id,
        "source": str(entry.path),
        "sha256": entry.sha256,
        "predicted": entry.predicted,
        "difficulty": entry.difficulty,
        "answers": [asdict(answer) for answer in entry.answers],
        "votes": [
            {key: value for key, value in asdict(vote).items() if key != "picture"}
            for vote in votes
        ],
    }


def _write_manifest(path: Path, rows: list[dict[str, Any]]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.Table.from_pylist(rows, schema=_schema()), path, compression="zstd")


def _schema() -> pa.Schema:
    import pyarrow as pa

    text, number = pa.string(), pa.float64()
    answer = [("model", text), ("predicted", text), ("confidence", number), ("p_true", number)]
    vote = [("reviewer", text), ("verdict", text), ("reason", text), ("at", text)]
    texts = [(one, text) for one in ("picture", "label", "id", "source", "sha256", "predicted")]
    return pa.schema(
        [
            *texts,
            ("difficulty", number),
            ("answers", pa.list_(pa.struct(answer))),
            ("votes", pa.list_(pa.struct(vote))),
        ]
    )


def _description(
    shortlist: Shortlist, name: str, pictures: int, clean: str | None, licence: str, citation: str
) -> Description:
    models = " and ".join(model.name for model in shortlist.models)
    hard = shortlist.recipe == "hard"
    what = f"that {models} has wrong" if hard else f"of no known class, of which {models} is sure"
    card = Card(
        name,
        about=f"{pictures:,} pictures {what}",
        score=None if hard else "aupr",
        members=shortlist.members if hard else None,
        combine=shortlist.combine if hard else "max",
        clean=clean,
        usual=shortlist.usual,
        licence=licence,
        citation=citation,
    )
    notes: Mapping[str, Any] = {"recipe": shortlist.recipe, **shortlist.options}
    classes = shortlist.classes if hard else None
    return Description(card, labels=_MANIFEST, classes=classes, notes=notes)
