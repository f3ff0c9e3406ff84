"""The tables that a person reads after a run, 80 columns wide."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from shiftbed.errors import InputError, unknown

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.console import Console, RenderableType

    from shiftbed.evaluation.evaluate import Evaluation
    from shiftbed.evaluation.summary import Score
    from shiftbed.metrics import Estimate
    from shiftbed.results import Results

__all__ = ["accuracy_tables", "as_text", "print_table", "show", "show_results"]

#: How many models fit beside each other.
MODELS_ABREAST = 3
#: How many cells are listed as the worst.
WORST = 5
#: How many rows of a table are printed for a person.
ROWS = 200
_LEFT: dict[str, Any] = {"title_justify": "left", "title_style": "bold"}


def as_text(run: Evaluation) -> str:
    """Return the tables as plain text."""
    from rich.console import Console

    sink = io.StringIO()
    show(run, Console(file=sink, width=80, no_color=True, legacy_windows=False))
    return sink.getvalue()


def show(run: Evaluation, console: Console) -> None:
    """Print every setting's accuracy, the summaries, the worst cells, and what was left out."""
    rows = run.table().to_pylist()
    for part in [*accuracy_tables(rows), *_score_tables(run), *_worst(rows), *_notes(run)]:
        console.print(part)


def accuracy_tables(rows: Sequence[dict[str, Any]]) -> Iterator[RenderableType]:
    """Yield tables of shifts by models, from rows with an accuracy and its interval."""
    from rich.table import Table

    models = list(dict.fromkeys(row["model"] for row in rows))
    sets: dict[str, dict[str, dict[str, dict[str, Any]]]] = {}
    for row in rows:
        images, _, shift = row["setting"].partition("+")
        sets.setdefault(images, {}).setdefault(shift or "clean", {})[row["model"]] = row
    for images, shifts in sets.items():
        for start in range(0, len(models), MODELS_ABREAST):
            abreast = models[start : start + MODELS_ABREAST]
            table = Table(title=f"{images}: accuracy in percent [95% interval]", **_LEFT)
            table.add_column("shift", overflow="fold")
            for model in abreast:
                table.add_column(model, justify="right", overflow="fold")
            table.add_column("n", justify="right")
            for shift, cells in shifts.items():
                counts = {cells[model]["n"] or 0 for model in abreast if model in cells}
                most, least = max(counts, default=0), min(counts, default=0)
                n = f"{most:,}" if most == least else f"{least:,} to {most:,}"
                table.add_row(shift, *(_percent(cells.get(model)) for model in abreast), n)
            yield table


def _percent(row: dict[str, Any] | None) -> str:
    if row is None:
        return ""
    if row["accuracy"] is None:
        return "not labelled" if row["metric"] == "agreement" else "-"
    agreed = "~" if row["metric"] == "agreement" else ""
    if row["low"] is None:
        return f"{agreed}{100 * row['accuracy']:.1f}"
    value, low, high = (100 * row[name] for name in ("accuracy", "low", "high"))
    return f"{agreed}{value:.1f} [{low:.1f}, {high:.1f}]"


def _score_tables(run: Evaluation) -> Iterator[RenderableType]:
    from rich.table import Table

    groups: dict[tuple[str, str], list[Score]] = {}
    for score in run.scores():
        groups.setdefault((score.images, score.variant), []).append(score)
    for (images, variant), group in groups.items():
        first = group[0]
        count = len(first.corruptions)
        which = f"{variant}, all {count} corruptions" if first.whole else f"{count} of {variant}"
        labelled = first.metric == "top1"
        against = f", errors against {run.baseline}'s" if run.baseline and labelled else ""
        table = Table(title=f"{images} under {which}{against}", **_LEFT)
        table.add_column("model", overflow="fold")
        if labelled:
            table.add_column("clean", justify="right")
        table.add_column("corrupted" if labelled else "agreement", justify="right")
        if run.baseline and labelled:
            table.add_column("mCE" if first.whole else "mean CE", justify="right")
            table.add_column("relative", justify="right")
        for score in group:
            texts = [_estimate(score.clean)] if labelled else []
            texts.append(_estimate(score.shifted))
            if run.baseline and labelled:
                texts += [_estimate(score.mce), _estimate(score.relative_mce)]
            table.add_row(score.model, *texts)
        yield table
        yield from {score.note: f"No mCE: {score.note}." for score in group if score.note}.values()
        width = max(score.shifted.high - score.shifted.low for score in group)
        if width > 0.1:
            yield (
                f"These are {first.shifted.n:,} pictures: the intervals are up to "
                f"{100 * width:.0f} points wide, so differences inside them say nothing."
            )


def _estimate(estimate: Estimate | None) -> str:
    if estimate is None:
        return "-"
    value, low, high = (100 * end for end in (estimate.value, estimate.low, estimate.high))
    return f"{value:.1f} [{low:.1f}, {high:.1f}]"


def _worst(rows: Sequence[dict[str, Any]]) -> Iterator[RenderableType]:
    from rich.table import Table

    known = sorted(
        (row for row in rows if row["accuracy"] is not None), key=lambda row: row["accuracy"]
    )
    if len(known) <= WORST:
        return
    table = Table(title="The worst cells", **_LEFT)
    for name in ("model", "setting"):
        table.add_column(name, overflow="fold")
    table.add_column("accuracy", justify="right")
    for row in known[:WORST]:
        table.add_row(row["model"], row["setting"], _percent(row))
    yield table


def _notes(run: Evaluation) -> Iterator[str]:
    if any(cell.setting.metric == "agreement" for cell in run.plan.cells):
        yield (
            "~ Pictures without labels: how often the answer is the same as on the unshifted "
            "picture."
        )
    seen = set()
    for manifest in run.manifests():
        images = manifest.spec.get("images")
        if manifest.skipped and manifest.counts is not None and images not in seen:
            seen.add(images)
            listed = "; ".join(f"{name}: {reason}" for name, reason in manifest.skipped[:3])
            more = f"; and {len(manifest.skipped) - 3} more" if len(manifest.skipped) > 3 else ""
            yield (
                f"{len(manifest.skipped)} of {manifest.counts.pictures:,} pictures of {images} "
                f"could not be read and are not in n ({listed}{more})."
            )
    for name in dict.fromkeys(setting.images.name for setting in run.settings):
        if "[limit=" in name:
            yield f"{name} is a sample: its numbers are not those of the whole set."


def print_table(table: pa.Table, as_json: bool = False, as_csv: bool = False) -> None:
    """Print any table: for a person, or as JSON or CSV for a program."""
    import json
    import sys

    if as_json:
        print(json.dumps(table.to_pylist(), indent=1))
    elif as_csv:
        import pyarrow.csv

        sink = io.BytesIO()
        pyarrow.csv.write_csv(table, sink)
        sys.stdout.write(sink.getvalue().decode())
    else:
        from rich.console import Console
        from rich.table import Table

        grid = Table()
        for field in table.schema:
            numeric = str(field.type).startswith(("int", "uint", "float", "double", "decimal"))
            grid.add_column(field.name, justify="right" if numeric else "left", overflow="fold")
        for row in table.slice(0, ROWS).to_pylist():
            grid.add_row(*(_plain(value) for value in row.values()))
        console = Console()
        console.print(grid)
        if len(table) > ROWS:
            console.print(f"and {len(table) - ROWS:,} more rows: --csv prints them all")


def _plain(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def show_results(
    results: Results, models: Sequence[str], settings: Sequence[str], console: Console
) -> None:
    """Print accuracies with intervals of what is stored; of one cell alone, its record too."""
    from shiftbed.evaluation.evaluate import with_intervals

    cells = results.cells().to_pylist()
    chosen = [
        cell
        for cell in cells
        if (not models or any(fnmatchcase(cell["model"], one) for one in models))
        and (not settings or any(fnmatchcase(cell["setting"], one) for one in settings))
    ]
    if not chosen:
        raise _none_chosen(results, models, settings, cells)
    for part in accuracy_tables(with_intervals(chosen)):
        console.print(part)
    unfinished = [cell for cell in chosen if not cell["complete"]]
    if unfinished:
        console.print(
            f"{len(unfinished)} of these {len(chosen)} cells are incomplete: their numbers are of "
            "the pictures done so far. Run the same evaluation again to complete them."
        )
    if len(chosen) == 1 and chosen[0]["origin"] == "measured":
        manifest = next(one for one in results.manifests() if one.key == chosen[0]["source"])
        console.print_json(manifest.to_json())


def _none_chosen(
    results: Results,
    models: Sequence[str],
    settings: Sequence[str],
    cells: Sequence[dict[str, Any]],
) -> InputError:
    for kind, patterns in (("model", models), ("setting", settings)):
        known = {cell[kind] for cell in cells}
        for pattern in patterns:
            if not any(fnmatchcase(name, pattern) for name in known):
                return unknown(f"{kind} in {results.path}", pattern, known)
    return InputError(f"{results.path} has no cell of these models on these settings")
