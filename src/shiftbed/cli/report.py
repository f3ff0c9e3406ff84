"""shiftbed report: one page that shows what some results say."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from shiftbed.cli._app import app, examples
from shiftbed.cli._config import Config
from shiftbed.cli._options import Level


@app.command("report", epilog=examples("shiftbed report results -o report.html --data photos"))
def report(
    results: Annotated[Path, typer.Argument(help="The results directory.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The HTML file.")] = Path(
        "report.html"
    ),
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            "-m",
            help="Whom the verdict is on: a name, a wildcard or category:NAME. Unless said, all "
            "that were measured here.",
        ),
    ] = None,
    data: Annotated[
        list[str] | None,
        typer.Option(
            "--data",
            "-d",
            help="Image sets whose pictures may be shown, as `eval` took them: a folder, or "
            "NAME=PATH. Repeatable.",
        ),
    ] = None,
    baseline: Annotated[
        list[str] | None,
        typer.Option(
            "--baseline", "-b", help="The model that mCE divides by. Repeatable: one per benchmark."
        ),
    ] = None,
    title: Annotated[str | None, typer.Option("--title", help="Of the page.")] = None,
    scale: Annotated[
        str, typer.Option("--scale", help="Of baseline fits: logit, probit or linear.")
    ] = "logit",
    level: Level = 0.95,
    pictures: Annotated[
        float, typer.Option("--pictures", metavar="MB", help="At most so much of them; 0: none.")
    ] = 3.0,
    config: Config = None,
) -> None:
    """Write a page to look at and to send: verdict, scatter, corruptions, calibration, pictures.

    It is one HTML file, which opens without a network.
    """
    from shiftbed.report import write_report

    said: dict[str, Any] = {"title": title, "scale": scale, "level": level}
    path = write_report(
        results,
        output,
        models=model or (),
        data=data,
        baseline=baseline or (),
        picture_bytes=round(pictures * 1e6),
        **said,
    )
    print(f"{path}: {path.stat().st_size / 1e6:.1f} MB, opens in any browser")
