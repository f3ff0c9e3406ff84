"""shiftbed plot: figures for papers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from shiftbed.cli._app import app, examples
from shiftbed.cli._options import Level

plot = typer.Typer(
    no_args_is_help=True,
    help="Draw figures for papers: PDF, SVG, EPS or PNG, as wide as a column.",
)
app.add_typer(plot, name="plot")

Folder = Annotated[Path, typer.Argument(help="The results directory.")]
Output = Annotated[Path, typer.Option("--output", "-o", help="FILE.pdf, .svg, .eps or .png.")]
Models = Annotated[
    list[str] | None,
    typer.Option("--model", "-m", help="A name, a wildcard or category:NAME; -NAME takes away."),
]
Width = Annotated[float, typer.Option("--width", help="In inches; a column has 3.3.")]
OnBenchmark = Annotated[
    str | None,
    typer.Option("--benchmark", help="As imagenet-c, or photos+; the largest, unless said."),
]


@plot.command(
    "scatter",
    epilog=examples("shiftbed plot scatter results imagenet-r -o scatter.pdf --label resnet50"),
)
def scatter(
    results: Folder,
    shifted: Annotated[str, typer.Argument(help="The shifted setting, up the figure.")],
    output: Output = Path("scatter.pdf"),
    clean: Annotated[
        str | None,
        typer.Option("--clean", help="The setting across, if the shift does not say it."),
    ] = None,
    model: Models = None,
    label: Annotated[
        list[str] | None, typer.Option("--label", help="Models to name in the figure.")
    ] = None,
    axes: Annotated[str, typer.Option("--axes", help="logit, probit or linear.")] = "logit",
    width: Width = 3.3,
    level: Level = 0.95,
) -> None:
    """Draw accuracy under a shift against clean accuracy, with the baseline."""
    from shiftbed.report import plot_scatter

    said: dict[str, Any] = {"axes": axes, "width": width, "level": level}
    named = label or ()
    print(
        plot_scatter(results, output, shifted, clean=clean, models=model or (), label=named, **said)
    )


@plot.command(
    "curves", epilog=examples("shiftbed plot curves results -o curves.pdf --corruption fog")
)
def curves(
    results: Folder,
    output: Output = Path("curves.pdf"),
    benchmark: OnBenchmark = None,
    corruption: Annotated[
        list[str] | None, typer.Option("--corruption", help="As fog; all, unless said.")
    ] = None,
    model: Models = None,
    width: Width = 6.6,
    level: Level = 0.95,
) -> None:
    """Draw accuracy by severity, a panel for each corruption."""
    from shiftbed.report import plot_curves

    said: dict[str, Any] = {"benchmark": benchmark, "width": width, "level": level}
    named = corruption or ()
    print(plot_curves(results, output, corruptions=named, models=model or (), **said))


@plot.command("matrix", epilog=examples("shiftbed plot matrix results -o matrix.pdf"))
def matrix(
    results: Folder,
    output: Output = Path("matrix.pdf"),
    benchmark: OnBenchmark = None,
    measure: Annotated[str, typer.Option("--measure", help="accuracy, error or ce.")] = "accuracy",
    baseline: Annotated[
        str | None, typer.Option("--baseline", "-b", help="The model that CE divides by.")
    ] = None,
    model: Models = None,
    width: Width = 6.6,
    level: Level = 0.95,
) -> None:
    """Draw models by corruptions as a heat map."""
    from shiftbed.report import plot_matrix

    said: dict[str, Any] = {"measure": measure, "width": width, "level": level}
    if baseline:
        said["baseline"] = baseline
    print(plot_matrix(results, output, benchmark=benchmark, models=model or (), **said))


@plot.command(
    "reliability",
    epilog=examples("shiftbed plot reliability results photos+fog.3 -o reliability.pdf"),
)
def reliability(
    results: Folder,
    setting: Annotated[str, typer.Argument(help="A setting that was measured here.")],
    output: Output = Path("reliability.pdf"),
    model: Models = None,
    width: Width = 3.3,
    level: Level = 0.95,
) -> None:
    """Draw how often models are right by how sure they are."""
    from shiftbed.report import plot_reliability

    path = plot_reliability(results, output, setting, models=model or (), width=width, level=level)
    print(path)
