"""shiftbed curate: from a heap of pictures to the few that fool a classifier."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from shiftbed.cli._app import app

curate = typer.Typer(
    no_args_is_help=True,
    help="From a heap of pictures to those that fool a classifier: filter, review, export.",
)
app.add_typer(curate, name="curate")

Directory = Annotated[Path, typer.Argument(metavar="DIR", help="A curation's directory.")]


@curate.command("review")
def review(directory: Directory) -> None:
    """Look at a shortlist in the browser, and accept or reject its pictures."""
    from shiftbed.curate import review

    review.serve(directory)
