"""shiftbed compare: two models on the same pictures."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from shiftbed._tables import print_parts
from shiftbed.cli._app import app, examples
from shiftbed.cli._config import Config


@app.command(
    "compare", epilog=examples("shiftbed compare new last --results results --fail-if-worse")
)
def compare(
    first: Annotated[str, typer.Argument(help="A model of the results.")],
    second: Annotated[str, typer.Argument(help="Another.")],
    results: Annotated[Path, typer.Option("--results", "-r", help="The results directory.")] = Path(
        "results"
    ),
    other: Annotated[
        Path | None,
        typer.Option("--other", help="The second model's results, if they are elsewhere."),
    ] = None,
    setting: Annotated[
        list[str] | None, typer.Option("--setting", "-s", help="A setting, or a wildcard.")
    ] = None,
    level: Annotated[float, typer.Option("--level", help="Of intervals and tests.")] = 0.95,
    fail_if_worse: Annotated[
        bool,
        typer.Option(
            "--fail-if-worse",
            help="Exit status 1 where FIRST is established to be worse than SECOND: by mCE on "
            "corruptions, by accuracy on other settings. For continuous integration.",
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="As CSV.")] = False,
    config: Config = None,
) -> None:
    """Show where one model is better than another: paired tests, corrected for their number."""
    from shiftbed.evaluation import print_table
    from shiftbed.results import Results
    from shiftbed.studies import compare as compute
    from shiftbed.studies import compare_corruptions, show, worse

    ours = Results.open(results)
    theirs = None if other is None else Results.open(other)
    found = compute(ours, first, second, other=theirs, settings=setting or (), level=level)
    corruptions = compare_corruptions(ours, first, second, other=theirs, level=level)
    if as_json or as_csv:
        print_table(found, as_json, as_csv)
    else:
        print_parts(show.comparison_tables(found, first, second, level))
        print_parts(show.corruption_comparison(corruptions, first, second, level))
    if fail_if_worse and (where := worse(found, corruptions, second)):
        print(f"shiftbed: {first} is worse than {second} on {', '.join(where)}", file=sys.stderr)
        raise typer.Exit(1)
