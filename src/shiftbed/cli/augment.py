"""shiftbed augment: an augmented copy of an image set, or a contact sheet of one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from shiftbed.cli._app import app, examples
from shiftbed.cli._config import Config
from shiftbed.cli._options import Seed, as_options
from shiftbed.cli._progress import progress, resumable
from shiftbed.errors import InputError


@app.command(
    "augment",
    epilog=examples(
        "shiftbed augment photos deepaugment -o copy",
        "shiftbed augment photos augmix --sheet sheet.png",
    ),
)
def augment(
    images: Annotated[
        str, typer.Argument(metavar="SET", help="A folder of pictures, or a known set.")
    ],
    name: Annotated[str, typer.Argument(help="See `shiftbed list augmentations`.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A new folder, or one to go on with.")
    ] = None,
    sheet: Annotated[
        Path | None,
        typer.Option("--sheet", help="Draw a contact sheet of a few pictures: a .png or .jpg."),
    ] = None,
    size: Annotated[
        int | None, typer.Option("--size", help="First bring the shorter side to this.")
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--option",
            metavar="NAME=VALUE",
            help="Of the augmentation, as in scale=0.4. Repeatable.",
        ),
    ] = None,
    encoding: Annotated[
        str, typer.Option("--format", help="jpeg (quality 85), png or webp (both lossless).")
    ] = "jpeg",
    seed: Seed = 0,
    workers: Annotated[
        int | None, typer.Option("--workers", "-j", help="Threads; one per core, unless said.")
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Read what is there, and make anew what was altered.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", "-f", help="Replace the contact sheet.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
    config: Config = None,
) -> None:
    """Write an augmented copy of an image set: shiftbed augment photos/ deepaugment -o copy/.

    Run the same command again after an interruption: it does what is missing, and the result
    has the same bytes. Exit status 1 if some pictures could not be read. With --sheet, a few
    pictures are drawn, each augmented several times.
    """
    from shiftbed.augment import augmentation
    from shiftbed.augment.copies import augment_set
    from shiftbed.cli.make import report_unreadable
    from shiftbed.data import open_set

    if output is None and sheet is None:
        raise InputError("say where to: a folder with --output, or a contact sheet with --sheet")
    pictures = open_set(images)
    chosen = augmentation(name, **{"seed": seed, **as_options(option)})
    if sheet is not None:
        from shiftbed.augment.sheet import contact_sheet, spread
        from shiftbed.corruptions.stored import save, writable

        writable(sheet, replace=force)
        save(contact_sheet(spread(pictures), chosen), sheet, replace=force)
        print(f"wrote {sheet}")
    if output is None:
        return
    with resumable(output), progress("pictures", len(pictures), quiet) as watch:
        made = augment_set(
            pictures,
            output,
            chosen,
            size=size,
            encoding=encoding,
            workers=workers,
            check=check,
            watch=watch,
        )
    before = f", {made.kept:,} of them already" if made.kept else ""
    print(f"{made.files:,} pictures are in {output}{before}; its manifest.jsonl has their hashes")
    report_unreadable(made)
