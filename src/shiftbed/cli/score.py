"""shiftbed score: every number of some results, with its interval."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from shiftbed._tables import print_parts
from shiftbed.cli._app import app, examples
from shiftbed.cli._config import Config
from shiftbed.cli._options import Level


@app.command(
    "score",
    epilog=examples(
        "shiftbed score results",
        "shiftbed score results --metric calibration --setting 'photos+fog.*'",
    ),
)
def score(
    results: Annotated[Path, typer.Argument(help="The results directory.")],
    metric: Annotated[
        list[str] | None,
        typer.Option(
            "--metric",
            help="accuracy, top5, balanced-accuracy, corruption-error, mce, relative-mce, "
            "calibration, ece, aurra, detection or frames; again for more. Unless said: mce and "
            "accuracy (which is AUPR, mAP or pm-k where a setting is scored by that).",
        ),
    ] = None,
    model: Annotated[
        list[str] | None, typer.Option("--model", "-m", help="A model, or a wildcard.")
    ] = None,
    setting: Annotated[
        list[str] | None, typer.Option("--setting", "-s", help="A setting, or a wildcard.")
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option("--baseline", help="mCE: the model that errors are relative to."),
    ] = None,
    usual: Annotated[
        str | None,
        typer.Option("--usual", help="Detection: the setting that is not anomalous."),
    ] = None,
    level: Level = 0.95,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="As CSV.")] = False,
    config: Config = None,
) -> None:
    """Show scores of models: accuracy, corruption errors, calibration, detection."""
    from shiftbed.evaluation import print_table
    from shiftbed.results import Results
    from shiftbed.studies import score as compute
    from shiftbed.studies import show

    found = compute(
        Results.open(results),
        metric or ("mce", "accuracy"),
        models=model or (),
        settings=setting or (),
        baseline=baseline,
        usual=usual,
        level=level,
    )
    if as_json or as_csv:
        print_table(found, as_json, as_csv)
    else:
        print_parts(show.score_tables(found, level))
