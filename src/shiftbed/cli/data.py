"""shiftbed data: looking into image sets, and making new ones of old pictures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shiftbed.cli._app import app, examples
from shiftbed.errors import InputError

if TYPE_CHECKING:
    from shiftbed.data.check import Findings

data_app = typer.Typer(no_args_is_help=True, help="Check image sets, and make new ones of them.")
app.add_typer(data_app, name="data")

Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="Where the sets are made; the sets folder, unless said."),
]
Seed = Annotated[int, typer.Option("--seed", help="Of the draws.")]
SHOWN = 10


@data_app.command("check", epilog=examples("shiftbed data check photos --against training"))
def check(
    images: Annotated[str, typer.Argument(metavar="SET", help="A path, or a set's name.")],
    against: Annotated[
        str | None,
        typer.Option("--against", help="Another set, as a training set: look for its pictures."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, in full.")] = False,
) -> None:
    """Read every picture: classes, sizes, unreadable files, duplicates, leakage.

    Exits with 1 if a file cannot be read, a picture bears two labels, or is in the other set.
    """
    import dataclasses
    import json

    from rich.console import Console
    from rich.progress import Progress

    from shiftbed.data import open_set
    from shiftbed.data.check import check as look

    console = Console(stderr=True)
    opened = open_set(images)
    other = None if against is None else open_set(against)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("reading", total=None)
        found = look(
            opened, other, watch=lambda done, total: bar.update(task, completed=done, total=total)
        )
    if as_json:
        print(json.dumps({**dataclasses.asdict(found), "sound": found.sound}, indent=1))
    else:
        for line in _said(found, against):
            print(line)
    if not found.sound:
        raise typer.Exit(1)


def _said(found: Findings, against: str | None) -> list[str]:
    lines = [f"{found.name}: {found.pictures:,} pictures"]
    if found.classes:
        counts = sorted(found.classes.items(), key=lambda item: item[1])
        filled = [n for _, n in counts if n]
        lines.append(
            f"classes      {len(counts):,}, of {counts[0][1]:,} ({counts[0][0]}) to "
            f"{counts[-1][1]:,} ({counts[-1][0]}) pictures"
        )
        if len(filled) < len(counts):
            lines.append(f"             {len(counts) - len(filled):,} of them without a picture")
        if found.unlabelled:
            lines.append(f"             {found.unlabelled:,} pictures without a label")
    else:
        lines.append("classes      none: the pictures are not labelled")
    if found.sizes:
        ends = [f"{w} x {h}" for h, w in found.sizes.values()]
        lines.append(f"sizes        {ends[0]} to {ends[1]}, mostly {ends[2]} (width x height)")
    lines += _listed("unreadable", [f"{name}: {reason}" for name, reason in found.unreadable])
    lines += _listed("duplicates", [" = ".join(group) for group in found.duplicates])
    if found.contradictions:
        both = [" = ".join(group) for group in found.contradictions]
        lines += _listed("two labels", both)
    lines += _listed("look alike", [f"{one} ~ {two}" for one, two in found.near])
    if against is not None:
        pairs = [f"{one} is {two} there" for one, two in found.leakage]
        lines += _listed(f"also in {against}", pairs)
    return lines


def _listed(title: str, items: list[str]) -> list[str]:
    if not items:
        return [f"{title:<12} none"]
    more = [f"             and {len(items) - SHOWN:,} more"] if len(items) > SHOWN else []
    return [f"{title:<12} {len(items):,}", *(f"             {one}" for one in items[:SHOWN]), *more]


@data_app.command(
    "remix",
    epilog=examples(
        "shiftbed data remix shops.csv --base country=US,MX,CA --base year=2019 --base camera=new"
    ),
)
def remix(
    table: Annotated[
        Path, typer.Argument(help="CSV or Parquet: picture, label, and the attributes.")
    ],
    base: Annotated[
        list[str] | None,
        typer.Option(
            "--base",
            metavar="COLUMN=VALUE[,VALUE]",
            help="What training pictures have, as year=2019 or country=US,MX. Repeatable.",
        ),
    ] = None,
    like: Annotated[
        str | None,
        typer.Option("--like", help="A published remix's base: streetview-storefronts, ..."),
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", help="Of the sets; the table's name, unless said.")
    ] = None,
    root: Annotated[
        Path | None, typer.Option("--root", help="The pictures' folder, if not the table's.")
    ] = None,
    test: Annotated[
        float, typer.Option("--test", help="The share held out of training as the iid set.")
    ] = 0.1,
    group: Annotated[
        str | None,
        typer.Option("--group", help="A column whose values must not be on two sides, as store."),
    ] = None,
    seed: Seed = 0,
    output: Output = None,
) -> None:
    """Split a table into training pictures and tests that differ in one attribute alone.

    Makes described folders: NAME.train, NAME.iid, and one for each other value, as
    NAME.year-2018. Pictures stay where they are.
    """
    from shiftbed.data.card import Card
    from shiftbed.data.catalogue import sets_dir
    from shiftbed.data.remix import PRESETS, read_rows, write_splits
    from shiftbed.data.remix import remix as split
    from shiftbed.errors import unknown

    if like is not None and like not in PRESETS:
        raise unknown("published remix", like, PRESETS)
    fixed = dict(PRESETS[like]) if like is not None else {}
    for one in base or ():
        column, equals, values = one.partition("=")
        if not (column and equals and values):
            raise InputError(f"--base {one} is not COLUMN=VALUE, as in year=2019")
        fixed[column] = tuple(value.strip() for value in values.split(","))
    rows = read_rows(table, [*fixed, *([group] if group else [])])
    card = Card(name or table.stem)
    splits = split(rows, fixed, test=test, seed=seed, group=group)
    where = output or sets_dir()
    for folder, rows_of in zip(
        write_splits(splits, where, root=root or table.parent, card=card),
        splits.values(),
        strict=True,
    ):
        print(f"{folder}: {len({row.picture for row in rows_of}):,} pictures")


@data_app.command(
    "subtypes", epilog=examples("shiftbed data subtypes folder hierarchy.csv --hold-out 1")
)
def subtypes(
    images: Annotated[str, typer.Argument(metavar="SET", help="A folder, or a set's name.")],
    hierarchy: Annotated[
        Path, typer.Argument(help="CSV with class,superclass; or .txt, 'parent child' a line.")
    ],
    broad: Annotated[
        str | None,
        typer.Option("--broad", help="A class list: only these, as imagenet-22k-superclasses."),
    ] = None,
    hold_out: Annotated[
        int | None,
        typer.Option("--hold-out", help="So many subtypes of each broad class are unseen."),
    ] = None,
    seen: Annotated[
        str | None,
        typer.Option("--seen", help="Instead: a class list; subtypes not in it are unseen."),
    ] = None,
    name: Annotated[str | None, typer.Option("--name", help="Of the sets.")] = None,
    seed: Seed = 0,
    output: Output = None,
) -> None:
    """Label a set with broad classes, and split it into seen and unseen subtypes.

    Makes the described folders NAME.seen and NAME.unseen. With --seen imagenet-1k, models of
    these classes are read by the best of a broad class's seen subtypes.
    """
    from shiftbed.data import open_set
    from shiftbed.data.card import Card, named_classes
    from shiftbed.data.catalogue import sets_dir
    from shiftbed.data.files import FileSet
    from shiftbed.data.remix import write_splits
    from shiftbed.data.subtypes import broad_classes, held_out, read_hierarchy, subtype_splits

    opened = open_set(images)
    if not isinstance(opened, FileSet) or not isinstance(opened.root, Path):
        raise InputError(f"{images} is no set of picture files, which this needs")
    if (hold_out is None) == (seen is None):
        raise InputError("say which subtypes are unseen: either --hold-out N or --seen LIST")
    parents = read_hierarchy(hierarchy)
    groups = broad_classes(
        opened.classes, parents, named_classes(broad) if broad is not None else None
    )
    if not groups:
        raise InputError(f"no class of {images} is below a broad class in {hierarchy}")
    members = None
    if seen is not None:
        known = named_classes(seen)
        unseen = {one for some in groups.values() for one in some if one not in set(known)}
        below = broad_classes(known, parents, list(groups))
        lacking = [one for one in groups if one not in below]
        if lacking:
            raise InputError(f"the broad class {lacking[0]} has no subtype in {seen}")
        members = dict(below)
    else:
        unseen = held_out(groups, hold_out or 0, seed)
    card = Card(name or opened.name, members=members)
    splits = subtype_splits(opened, groups, unseen)
    where = output or sets_dir()
    for folder, rows in zip(
        write_splits(splits, where, root=opened.root, card=card, clean="seen"),
        splits.values(),
        strict=True,
    ):
        print(f"{folder}: {len(rows):,} pictures")
