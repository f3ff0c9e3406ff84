"""shiftbed results: look at, ask, check and tidy a results directory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from shiftbed.cli._app import app, examples
from shiftbed.cli.import_ import import_

results_app = typer.Typer(
    no_args_is_help=True, help="Look at, ask, export, import, check and tidy results."
)
app.add_typer(results_app, name="results")

Folder = Annotated[Path, typer.Argument(help="The results directory.")]
Json = Annotated[bool, typer.Option("--json", help="As JSON.")]
Csv = Annotated[bool, typer.Option("--csv", help="As CSV.")]


@results_app.command("ls", epilog=examples("shiftbed results ls results"))
def ls(folder: Folder = Path("results"), as_json: Json = False, as_csv: Csv = False) -> None:
    """List the cells: model, setting, accuracy, n."""
    from shiftbed.evaluation import print_table
    from shiftbed.results import Results

    cells = Results.open(folder).cells()
    columns = ["model", "setting", "accuracy", "n", "complete"]
    print_table(cells if as_json or as_csv else cells.select(columns), as_json, as_csv)


@results_app.command(
    "show", epilog=examples("shiftbed results show results --model mine --setting photos+fog.3")
)
def show(
    folder: Folder = Path("results"),
    model: Annotated[list[str] | None, typer.Option("--model", "-m")] = None,
    setting: Annotated[
        list[str] | None, typer.Option("--setting", "-s", help="A name, or a wildcard.")
    ] = None,
) -> None:
    """Show accuracies with their intervals; for one cell, its whole record too."""
    from rich.console import Console

    from shiftbed.evaluation import show_results
    from shiftbed.results import Results

    show_results(Results.open(folder), model or [], setting or [], Console())


@results_app.command(
    "sql",
    epilog=examples(
        "shiftbed results sql 'select model, avg(confidence) from predictions group by 1' results"
    ),
)
def sql(
    query: Annotated[str, typer.Argument(help="Of the tables 'cells' and 'predictions'.")],
    folder: Folder = Path("results"),
    as_json: Json = False,
    as_csv: Csv = False,
) -> None:
    """Ask DuckDB: shiftbed results sql 'select model, avg(confidence) from predictions ...'."""
    from shiftbed.evaluation import print_table
    from shiftbed.results import Results

    print_table(Results.open(folder).sql(query), as_json, as_csv)


@results_app.command(
    "export", epilog=examples("shiftbed results export results predictions.parquet")
)
def export(
    folder: Folder,
    file: Annotated[Path, typer.Argument(help="Ends in .csv, .parquet, .arrow or .json.")],
    query: Annotated[
        str, typer.Option("--query", help="What to export; all cells, unless said.")
    ] = "select * from cells",
    imagenet_x: Annotated[
        tuple[str, str] | None,
        typer.Option(
            "--imagenet-x",
            metavar="MODEL SETTING",
            help="Instead: the answers of one cell, as ImageNet-X reads them.",
        ),
    ] = None,
) -> None:
    """Write the cells, or a query's answer, to a file."""
    from shiftbed.results import Results
    from shiftbed.results import export as write

    if imagenet_x is not None:
        from shiftbed.bridges import write_imagenet_x

        print(f"predictions in {write_imagenet_x(Results.open(folder), *imagenet_x, file)}")
        return
    table = Results.open(folder).sql(query)
    write(table, file)
    print(f"{table.num_rows:,} rows in {file}")


results_app.command(
    "import", epilog=examples("shiftbed results import accuracies.csv --results results")
)(import_)


@results_app.command("gc", epilog=examples("shiftbed results gc results --model old"))
def gc(
    folder: Folder = Path("results"),
    model: Annotated[
        list[str] | None, typer.Option("--model", "-m", help="Remove this model's cells.")
    ] = None,
    setting: Annotated[
        list[str] | None, typer.Option("--setting", "-s", help="Remove this setting's cells.")
    ] = None,
    cell: Annotated[
        list[str] | None, typer.Option("--cell", help="Remove the cell with this key.")
    ] = None,
) -> None:
    """Remove leftovers of killed runs, and the cells named."""
    from shiftbed.results import Results, collect_garbage

    removed = collect_garbage(
        Results.open(folder).path, models=model or (), settings=setting or (), cells=cell or ()
    )
    for path in removed:
        print(f"removed {path}")
    print(f"{len(removed)} removed")


@results_app.command("verify", epilog=examples("shiftbed results verify results --repair"))
def verify(
    folder: Folder = Path("results"),
    repair: Annotated[
        bool, typer.Option("--repair", help="Remove what is damaged, to be made again.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Check every file against its record. Exit status 1 if something is wrong."""
    from shiftbed.results import Results
    from shiftbed.results import verify as check

    faults = check(Results.open(folder).path, repair=repair)
    if as_json:
        print(json.dumps([{"path": str(one.path), "problem": one.problem} for one in faults]))
    else:
        for fault in faults:
            print(f"{fault.path} {fault.problem}")
        done = ", removed; evaluate again to make it again" if repair and faults else ""
        print(f"{len(faults)} damaged{done}" if faults else "all is as it was written")
    if faults and not repair:
        raise typer.Exit(1)
