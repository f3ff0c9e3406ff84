"""shiftbed study: questions asked of many cells."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from shiftbed.cli._app import app, examples
from shiftbed.cli._options import Level

study = typer.Typer(
    no_args_is_help=True,
    help="Ask many cells: baselines, effective robustness, correlations, hypotheses.",
)
app.add_typer(study, name="study")

Folder = Annotated[Path, typer.Argument(help="The results directory.")]
Shifts = Annotated[
    list[str] | None,
    typer.Argument(help="Shifted settings; every known natural shift, unless said."),
]
Clean = Annotated[
    str | None, typer.Option("--clean", help="The clean setting, if the shift does not say it.")
]
Fitted = Annotated[
    list[str] | None,
    typer.Option(
        "--fitted-to",
        help="The models that make the baseline: a name, a wildcard or category:NAME; -NAME "
        "takes away. Unless said: category:standard.",
    ),
]
Models = Annotated[
    list[str] | None,
    typer.Option("--model", "-m", help="A name, a wildcard or category:NAME; -NAME takes away."),
]
Scale = Annotated[str, typer.Option("--scale", help="logit, probit or linear.")]
Shape = Annotated[
    str | None,
    typer.Option("--shape", help="line, or knee as for filtered sets, unless said."),
]
Resamples = Annotated[int, typer.Option("--resamples", help="Of the bootstrap over models.")]
Seed = Annotated[int, typer.Option("--seed", help="Of the bootstrap.")]
Json = Annotated[bool, typer.Option("--json", help="As JSON.")]
Csv = Annotated[bool, typer.Option("--csv", help="As CSV.")]


@study.command("fit", epilog=examples("shiftbed study fit results imagenet-r"))
def fit(
    results: Folder,
    shifted: Shifts = None,
    clean: Clean = None,
    fitted_to: Fitted = None,
    scale: Scale = "logit",
    shape: Shape = None,
    resamples: Resamples = 1000,
    seed: Seed = 0,
    level: Level = 0.95,
    as_json: Json = False,
    as_csv: Csv = False,
) -> None:
    """Fit the accuracy under a shift that ordinary models of a clean accuracy have."""
    from shiftbed import studies
    from shiftbed.studies import show

    grid = _grid(results)
    said: dict[str, Any] = {"scale": scale, "shape": shape, "resamples": resamples, "seed": seed}
    if fitted_to:
        said["models"] = fitted_to
    fits = [
        studies.fit_baseline(grid, name, clean=clean, **said)
        for name in studies.chosen_shifts(shifted, grid)
    ]
    _print(show.fit_rows(fits, level), show.fit_tables(fits, level), as_json, as_csv)


@study.command(
    "effective", epilog=examples("shiftbed study effective results imagenet-r --model mine")
)
def effective(
    results: Folder,
    shifted: Shifts = None,
    model: Models = None,
    parent: Annotated[
        str | None,
        typer.Option(
            "--parent", help="The model that the others were made from: adds what they gained."
        ),
    ] = None,
    clean: Clean = None,
    baseline: Annotated[
        str,
        typer.Option(
            "--baseline",
            help="results: fitted to these; published: the ImageNet testbed's; auto: these if "
            "they hold ten models of the baseline.",
        ),
    ] = "auto",
    fitted_to: Fitted = None,
    scale: Scale = "logit",
    shape: Shape = None,
    level: Level = 0.95,
    as_json: Json = False,
    as_csv: Csv = False,
) -> None:
    """Show which models are robust beyond their accuracy, and by how much."""
    import pyarrow as pa

    from shiftbed import studies
    from shiftbed.studies import show

    grid = _grid(results)
    said: dict[str, Any] = {"source": baseline, "scale": scale, "shape": shape}
    if fitted_to:
        said["models"] = fitted_to
    tables: list[Any] = []
    shown: list[Any] = []
    for name in studies.chosen_shifts(shifted, grid):
        fit, published = studies.baseline_for(grid, name, clean=clean, **said)
        table = studies.effective_robustness_table(grid, fit, models=model, level=level)
        shown += show.effective_tables(table, fit, published, level)
        table = table.add_column(0, "shift", pa.array([name] * len(table)))
        if parent is not None:
            gained = studies.relative_robustness_table(
                grid, name, studies.made_from(grid, parent, model), level=level
            )
            shown += show.relative_tables(gained, name, level)
            gained = gained.select(["model", "parent", "tau", "low", "high"])
            gained = gained.rename_columns(["model", "parent", "tau", "tau_low", "tau_high"])
            table = table.join(gained, "model").sort_by([("rho", "descending")])
        tables.append(table)
    _print(pa.concat_tables(tables), iter(shown), as_json, as_csv)


@study.command("place", epilog=examples("shiftbed study place imagenet-r 92.1 38.5"))
def place(
    shifted: Annotated[str, typer.Argument(help="A natural shift, like imagenet-r.")],
    accuracies: Annotated[
        tuple[float, float],
        typer.Argument(help="Accuracy on its clean setting and under the shift, in percent."),
    ],
    n: Annotated[
        tuple[int, int] | None,
        typer.Option("--n", help="How many pictures either accuracy was counted on."),
    ] = None,
    level: Level = 0.95,
) -> None:
    """Place one model by its two accuracies: its effective robustness, without any results."""
    from shiftbed import studies

    print(studies.placed(shifted, *accuracies, n=n, level=level))


@study.command(
    "correlate", epilog=examples("shiftbed study correlate results --natural imagenet-r")
)
def correlate(
    results: Folder,
    natural: Annotated[
        list[str] | None,
        typer.Option("--natural", help="Natural shifts; every known one, unless said."),
    ] = None,
    synthetic: Annotated[
        list[str] | None,
        typer.Option("--synthetic", help="Synthetic averages by name or wildcard; all."),
    ] = None,
    model: Models = None,
    method: Annotated[str, typer.Option("--method", help="pearson or spearman.")] = "pearson",
    fitted_to: Fitted = None,
    scale: Scale = "logit",
    resamples: Resamples = 1000,
    seed: Seed = 0,
    level: Level = 0.95,
    as_json: Json = False,
    as_csv: Csv = False,
) -> None:
    """Correlate effective robustness to synthetic shifts with that to natural ones."""
    from shiftbed import studies
    from shiftbed.studies import show

    grid = _grid(results)
    said: dict[str, Any] = {"scale": scale, "resamples": resamples, "seed": seed, "level": level}
    if model:
        said["models"] = model
    if fitted_to:
        said["baseline"] = fitted_to
    found = studies.synthetic_against_natural(
        grid,
        synthetic=studies.synthetic_averages(grid, synthetic) if synthetic else None,
        natural=natural,
        **said,
    )
    _print(found, show.correlation_tables(found, method, level), as_json, as_csv)


@study.command(
    "hypotheses", epilog=examples("shiftbed study hypotheses results --declare mine.toml --details")
)
def hypotheses(
    results: Annotated[
        Path | None,
        typer.Argument(help="The results directory; the paper's own tables, unless given."),
    ] = None,
    declare: Annotated[
        Path | None,
        typer.Option("--declare", help="A TOML file of hypotheses; the paper's seven."),
    ] = None,
    details: Annotated[
        bool, typer.Option("--details", help="With the numbers behind every sign.")
    ] = False,
    level: Level = 0.95,
    as_json: Json = False,
    as_csv: Csv = False,
) -> None:
    """Judge declared hypotheses: +, - or not established, with the numbers."""
    from shiftbed import studies
    from shiftbed.studies import show

    declared = studies.declaration(declare)
    grid = studies.many_faces_grid() if results is None else _grid(results)
    findings = studies.judge(grid, declared, level=level)
    _print(
        show.findings_table(findings),
        show.hypothesis_tables(findings, declared, details),
        as_json,
        as_csv,
    )


def _grid(results: Path) -> Any:
    """Return the grid of a results directory; what was left out of it is told on stderr."""
    import sys

    from shiftbed.results import Results
    from shiftbed.studies import Grid

    grid = Grid.from_cells(Results.open(results).cells())
    for sentence in grid.left_out:
        print(f"note: {sentence}", file=sys.stderr)
    return grid


def _print(table: Any, shown: Any, as_json: bool, as_csv: bool) -> None:
    if as_json or as_csv:
        from shiftbed.evaluation import print_table

        print_table(table, as_json, as_csv)
    else:
        from shiftbed._tables import print_parts

        print_parts(shown)
