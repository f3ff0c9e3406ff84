"""shiftbed import: results that others measured."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from shiftbed.cli._app import app, examples


@app.command(
    "import",
    epilog=examples(
        "shiftbed import imagenet-testbed/ --results results",
        "shiftbed import accuracies.csv --format cells --results results",
    ),
)
def import_(
    source: Annotated[
        list[Path],
        typer.Argument(help="CSV files, or the folder of the ImageNet testbed's grid."),
    ],
    results: Annotated[
        Path, typer.Option("--results", "-o", help="The results directory to add to.")
    ] = Path("results"),
    format: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="testbed (models x settings), timm (its results-*.csv), predictions (file_name,"
            "predicted_class) or cells (model,setting,accuracy,n). Told by the columns, unless "
            "said.",
        ),
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", help="The import's name; the file's, unless said.")
    ] = None,
    setting: Annotated[
        str | None,
        typer.Option("--setting", "-s", help="What was measured, if the file does not say it."),
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", "-m", help="Predictions: whose they are.")
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option("--labels", help="Predictions: the true classes, a CSV of file_name,label."),
    ] = None,
) -> None:
    """Add published results: of the ImageNet testbed, of timm, or of your own.

    They are used like measured ones, and marked as imported. Importing again under the same
    name replaces them.
    """
    from shiftbed.errors import InputError
    from shiftbed.results import import_results

    if name is not None and len(source) > 1:
        raise InputError(f"--name names one import, and {len(source)} files are given")

    said: dict[str, Any] = {"format": format, "name": name, "model": model}
    for one in source:
        done = import_results(one, results, setting=setting, labels=labels, **said)
        print(
            f"{done.cells:,} cells of {done.models:,} models on {done.settings:,} settings, "
            f"read as {done.format}, are in {done.path}"
        )
        for note in done.notes:
            print(f"note: {note}")
