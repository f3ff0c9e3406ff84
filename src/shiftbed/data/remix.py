"""Splits of a table of pictures with attributes: all attributes but one stay as in training."""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from shiftbed.assets import placed
from shiftbed.data.card import Card
from shiftbed.data.described import Description, write_card
from shiftbed.data.folder import plain_name
from shiftbed.data.table import LABEL, PICTURE, find_column, labels_of, read_table
from shiftbed.errors import InputError, unknown

__all__ = ["PRESETS", "Row", "read_rows", "remix", "write_splits"]

#: Attributes of the training pictures of published remixes.
PRESETS: dict[str, dict[str, tuple[str, ...]]] = {
    "streetview-storefronts": {
        "country": ("US", "MX", "CA"),
        "year": ("2019",),
        "camera": ("new",),
    },
    "deepfashion-remixed": {
        "scale": ("2",),
        "occlusion": ("2",),
        "viewpoint": ("3",),
        "zoom_in": ("1",),
    },
}


@dataclass(frozen=True)
class Row:
    """Something in a picture: its label, and the attributes that it was taken with."""

    picture: str
    label: str
    attributes: Mapping[str, str]


def read_rows(path: Path, attributes: Iterable[str]) -> list[Row]:
    """Read a table with a row for each picture and label, and columns for the attributes.

    A row of several labels, as in a column ``labels``, is several rows.
    """
    table = read_table(path)
    picture, label = find_column(table, PICTURE), find_column(table, LABEL)
    if picture is None or label is None:
        raise InputError(
            f"{path} has the columns {', '.join(table)}; expected 'picture' and 'label', and the "
            "attributes"
        )
    wanted = list(attributes)
    for name in wanted:
        if name not in table:
            raise unknown(f"column in {path}", name, table)
    return [
        Row(str(file), one, {name: str(table[name][row]) for name in wanted})
        for row, file in enumerate(table[picture])
        for one in labels_of(table[label][row], label)
    ]


def remix(
    rows: Sequence[Row],
    base: Mapping[str, Sequence[str]],
    *,
    test: float = 0.1,
    seed: int = 0,
    group: str | None = None,
) -> dict[str, list[Row]]:
    """Return ``train``, ``iid`` and a split for each other value of each attribute.

    Training rows have the base's values in every attribute; ``iid`` is a share of them, held
    out by picture (or by ``group``, an attribute whose values stay on one side). Each further
    split differs from the base in one attribute alone, and has none of the pictures (or
    groups) that are trained on. A row is what is judged: a picture of several rows may be in
    a split for one of its labels and not for another.

    >>> rows = [Row(f"{i}.png", "cat", {"year": "2019" if i < 8 else "2018"}) for i in range(10)]
    >>> {name: len(split) for name, split in remix(rows, {"year": ["2019"]}, test=0.25).items()}
    {'train': 6, 'iid': 2, 'year-2018': 2}
    """
    if not 0 <= test < 1:
        raise InputError(f"the share of test pictures is {test}; it should be from 0 up to 1")
    if not base:
        raise InputError("say what stays fixed: at least one attribute with its values")
    usual = [row for row in rows if all(row.attributes[a] in v for a, v in base.items())]
    if not usual:
        said = ", ".join(f"{name} {' or '.join(values)}" for name, values in base.items())
        raise InputError(f"no row has {said}; see which values the table has")

    def unit(row: Row) -> str:
        return row.picture if group is None else row.attributes[group]

    held = _drawn({unit(row) for row in usual}, test, seed)
    splits = {
        "train": [row for row in usual if unit(row) not in held],
        "iid": [row for row in usual if unit(row) in held],
    }
    if not splits["train"]:
        raise InputError(f"a share of {test} leaves nothing to train on")
    trained = {unit(row) for row in splits["train"]}
    for name, values in base.items():
        others = {row.attributes[name] for row in rows} - set(values)
        for value in sorted(others):
            splits[f"{name}-{value}"] = [
                row
                for row in rows
                if row.attributes[name] == value
                and unit(row) not in trained
                and all(row.attributes[a] in v for a, v in base.items() if a != name)
            ]
    return {name: split for name, split in splits.items() if split or name == "train"}


def _drawn(units: set[str], share: float, seed: int) -> set[str]:
    """Return a share of units, each by its own turn, so that more is a superset of less."""
    turns = sorted(units, key=lambda one: hashlib.sha256(f"{seed}:{one}".encode()).digest())
    return set(turns[: round(share * len(turns))])


def write_splits(
    splits: Mapping[str, Sequence[Row]],
    output: Path,
    *,
    root: Path,
    card: Card,
    clean: str | None = "iid",
) -> list[Path]:
    """Write each split as a described folder ``NAME.SPLIT``; pictures stay where they are.

    ``clean`` is the split that the others, but for the one to train on, are compared with.
    """
    classes = sorted({row.label for split in splits.values() for row in split})
    several = any(len({row.picture for row in split}) < len(split) for split in splits.values())
    folders = []
    for name, split in splits.items():
        folder = output / f"{card.name}.{plain_name(name)}"
        if folder.exists():
            raise InputError(f"{folder} is there already; remove it, or write elsewhere")
        compared = f"{card.name}.{clean}" if clean in splits and name != clean else None
        told = replace(
            card,
            name=folder.name,
            about=f"{card.about or card.name}: {name}",
            clean=None if name.startswith("train") else compared,
            score=card.score or ("map" if several else None),
        )
        with placed(folder) as scratch:
            with (scratch / "labels.csv").open("w", encoding="utf-8", newline="") as file:
                table = csv.writer(file, lineterminator="\n")
                attributes = list(split[0].attributes) if split else []
                table.writerow(["picture", "label", *attributes])
                table.writerows(
                    [row.picture, row.label, *(row.attributes[a] for a in attributes)]
                    for row in split
                )
            where = str(root.resolve())
            write_card(
                scratch,
                Description(told, pictures=where, labels="labels.csv", classes=tuple(classes)),
            )
        folders.append(folder)
    return folders
