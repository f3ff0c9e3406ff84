"""shiftbed make: a stored benchmark in its authors' layout."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shiftbed.cli._app import app, examples
from shiftbed.cli._config import Config
from shiftbed.cli._options import Option, Seed, as_options
from shiftbed.cli._progress import progress, resumable
from shiftbed.errors import InputError

if TYPE_CHECKING:
    from shiftbed.corruptions.stored import Made


@app.command(
    "make",
    epilog=examples(
        "shiftbed make photos imagenet-c -o photos-c", "shiftbed make mnist-test mnist-c -o mnist-c"
    ),
)
def make(
    images: Annotated[
        str,
        typer.Argument(
            metavar="SET",
            help="A folder with one folder per class, an .npz file, or a known set.",
        ),
    ],
    suite: Annotated[
        str,
        typer.Argument(
            help="imagenet-c, imagenet-c-299, tiny-imagenet-c, cifar-c, mnist-c, ..., or a "
            "pattern of shifts: '+{fog,snow}.{1..3}', '+extra@cifar-c'.",
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="A new folder, or one to go on with.")
    ],
    encoding: Annotated[
        str,
        typer.Option(
            "--format", help="jpeg (quality 85, as published), png or webp (both lossless)."
        ),
    ] = "jpeg",
    keep_size: Annotated[
        bool, typer.Option("--keep-size", help="Do not bring pictures to the benchmark's size.")
    ] = False,
    seed: Seed = 0,
    option: Option = None,
    workers: Annotated[
        int | None, typer.Option("--workers", "-j", help="Threads; one per core, unless said.")
    ] = None,
    check: Annotated[
        bool,
        typer.Option("--check", help="Read what is there, and make anew what was altered."),
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
    config: Config = None,
) -> None:
    """Write corrupted copies of an image set in the layout of the benchmark's authors.

    Run the same command again after an interruption: it does what is missing, and the result
    has the same bytes. Exit status 1 if some pictures could not be read.
    """
    from shiftbed.corruptions import stored
    from shiftbed.data import open_set
    from shiftbed.settings import Shift, resolve
    from shiftbed.settings import suite as find_suite

    pictures = open_set(images)
    if not suite.startswith("+"):
        find_suite(suite)
    named = [one.shift for one in resolve(suite, pictures) if one.shift is not None]
    shifts = [shift for shift in named if isinstance(shift, Shift)]
    if len(shifts) < len(named):
        raise InputError(
            f"{suite} names an attack, which is made for each model as it is evaluated"
        )
    variants = dict.fromkeys(shift.variant for shift in shifts)
    if len(variants) != 1:
        what = f"shifts of {' and '.join(variants)}" if variants else "no corruption"
        raise InputError(f"{suite} names {what}; a stored set is of one variant's corruptions")
    with resumable(output), progress("pictures", len(pictures) * len(shifts), quiet) as watch:
        made = stored.make(
            pictures,
            output,
            [(shift.corruption, shift.severity) for shift in shifts],
            variant=shifts[0].variant,
            seed=seed,
            encoding=encoding,
            keep_size=keep_size,
            options=as_options(option),
            workers=workers,
            check=check,
            watch=watch,
        )
    before = f", {made.kept:,} of them already" if made.kept else ""
    print(f"{made.files:,} files are in {output}{before}; its manifest.jsonl has their hashes")
    report_unreadable(made)


def report_unreadable(made: Made) -> None:
    """Name the pictures that could not be read; exit status 1 if there are any."""
    if made.unreadable:
        print(f"could not be read: {len(made.unreadable)}", file=sys.stderr)
        for name, reason in made.unreadable[:20]:
            print(f"  {name}: {reason}", file=sys.stderr)
        if len(made.unreadable) > 20:
            print("  ... all of them are in manifest.jsonl", file=sys.stderr)
        raise typer.Exit(1)
