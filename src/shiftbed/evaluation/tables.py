"""The tables that a person reads after a run, 80 columns wide."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from shiftbed._tables import HEADING, ROWS, add, add_column, grid, print_parts
from shiftbed.errors import InputError, unknown

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.console import Console, RenderableType

    from shiftbed.evaluation.job import Evaluation
    from shiftbed.evaluation.summary import Score
    from shiftbed.metrics import Estimate
    from shiftbed.results import Results
    from shiftbed.run import Plan
from shiftbed.settings import Shift

__all__ = ["accuracy_tables", "as_text", "assumptions", "print_table", "show", "show_results"]

#: How many cells are listed as the worst.
WORST = 5


def as_text(run: Evaluation) -> str:
    """Return the tables as plain text."""
    from rich.console import Console

    sink = io.StringIO()
    show(run, Console(file=sink, width=80, no_color=True, legacy_windows=False))
    return sink.getvalue()


def show(run: Evaluation, console: Console) -> None:
    """Print every setting's accuracy, the summaries, the worst cells, and what was left out.

    Where corruptions have several severities, the mean over these; `show_results` has each.
    """
    rows = run.table().to_pylist()
    scores = run.scores()
    averaged = {(score.images, score.variant) for score in scores if score.severities > 1}
    plain = {
        cell.setting.name
        for cell in run.plan.cells
        if not isinstance(cell.setting.shift, Shift)
        or (cell.setting.clean, cell.setting.shift.variant) not in averaged
    }
    shown = [row for row in rows if row["setting"] in plain]
    for score in scores:
        if score.severities > 1:
            shown += _averaged(score)
    parts = [
        *accuracy_tables(shown, console.width),
        *_score_tables(scores, run.baseline),
        *_worst(rows),
        *_notes(run),
    ]
    if averaged:
        parts.append(
            f"Corruptions are averaged over severities; 'shiftbed results show "
            f"{run.results.path}' has each cell."
        )
    print_parts(parts, console)


def _averaged(score: Score) -> Iterator[dict[str, Any]]:
    """Yield rows as of cells, for corruptions averaged over severities."""
    for corruption, estimate in score.each.items():
        yield {
            "model": score.model,
            "setting": f"{score.images}+{corruption}",
            "metric": score.metric,
            "accuracy": estimate.value,
            "low": estimate.low,
            "high": estimate.high,
            "n": estimate.n,
        }


def accuracy_tables(rows: Sequence[dict[str, Any]], width: int = 80) -> Iterator[RenderableType]:
    """Yield tables of shifts by models, from rows with an accuracy and its interval."""
    sets: dict[str, dict[str, dict[str, dict[str, Any]]]] = {}
    for row in rows:
        images, _, shift = row["setting"].partition("+")
        shift = shift or "clean"
        if shift != "clean" or row["metric"] != "agreement":
            sets.setdefault(images, {}).setdefault(shift, {})[row["model"]] = row
    for images, shifts in sets.items():
        everything = [row for cells in shifts.values() for row in cells.values()]
        models = list(dict.fromkeys(row["model"] for row in everything))
        room = width - max(map(len, shifts)) - 2
        heading = min(HEADING, max(map(len, models)))
        each = max(heading, *(len(_percent(row)) for row in everything)) + 2
        abreast = max(1, room // each)
        # As evenly as possible over the tables.
        abreast = -(-len(models) // -(-len(models) // abreast))
        for start in range(0, len(models), abreast):
            yield _table(images, shifts, models[start : start + abreast])


def _table(
    images: str, shifts: dict[str, dict[str, dict[str, Any]]], models: Sequence[str]
) -> RenderableType:
    cells = [row for cells in shifts.values() for row in cells.values() if row["model"] in models]
    counts = {row["n"] for row in cells}
    what = " and ".join(dict.fromkeys(_called(row["metric"]) for row in cells))
    fixed = f", n = {next(iter(counts)):,}" if len(counts) == 1 and None not in counts else ""
    more = [] if fixed else ["n"]
    table = grid(f"{images}: {what} in percent [95% interval]{fixed}", ["shift"], [*models, *more])
    for shift, row in shifts.items():
        texts = [_percent(row.get(model)) for model in models]
        if not fixed:
            known = {row[model]["n"] for model in models if model in row} - {None}
            ends = [f"{n:,}" for n in (min(known, default=0), max(known, default=0))]
            texts.append(" to ".join(dict.fromkeys(ends)) if known else "")
        add(table, shift, *texts)
    return table


def _called(metric: str) -> str:
    """Return what a table calls a metric.

    >>> _called("pm10"), _called("top1")
    ('frame sets right on every frame within 10', 'accuracy')
    """
    if metric.startswith("pm"):
        return f"frame sets right on every frame within {metric.removeprefix('pm')}"
    names = {
        "agreement": "agreement with the unshifted answer",
        "aupr": "AUPR of telling them from usual pictures",
        "map": "mean average precision",
    }
    return names.get(metric, "accuracy")


def _percent(row: dict[str, Any] | None) -> str:
    if row is None or row["accuracy"] is None:
        return "-"
    if row["low"] is None:
        return f"{100 * row['accuracy']:.1f}"
    return _interval(row["accuracy"], row["low"], row["high"])


def _interval(value: float, low: float, high: float) -> str:
    return f"{100 * value:.1f} [{100 * low:.1f}, {100 * high:.1f}]"


def _score_tables(scores: Sequence[Score], baseline: str | None) -> Iterator[RenderableType]:
    groups: dict[tuple[str, str], list[Score]] = {}
    for score in scores:
        groups.setdefault((score.images, score.variant), []).append(score)
    for (images, variant), group in groups.items():
        first = group[0]
        count = len(first.corruptions)
        which = f"all {count} corruptions of"
        if not first.whole:
            which = f"{count} corruption{'' if count == 1 else 's'} of"
        measured = baseline is not None and first.metric == "top1"
        columns = ["accuracy" if first.metric == "top1" else "agreement"]
        if measured:
            columns += ["mCE" if first.whole else "mean CE", "relative"]
        table = grid(f"{images}, mean over {which} {variant}", ["model"], columns)
        for score in group:
            texts = [_estimate(score.shifted)]
            if measured and score.model == baseline:  # over itself
                texts += ["100", "100"]
            elif measured:
                texts += [_estimate(score.mce), _estimate(score.relative_mce)]
            add(table, score.model, *texts)
        yield table
        if measured:
            yield f"mCE and relative mCE: errors over those of {baseline}, in percent."
        for note, mce in {score.note: score.mce for score in group if score.note}.items():
            yield f"No {'mCE' if mce is None else 'relative mCE'}: {note}."
        widest = max(score.shifted.high - score.shifted.low for score in group)
        if widest > 0.1:
            yield (
                f"These are {first.shifted.n:,} pictures: the intervals are up to "
                f"{100 * widest:.0f} points wide, so smaller differences say little."
            )


def _estimate(estimate: Estimate | None) -> str:
    return "-" if estimate is None else _interval(estimate.value, estimate.low, estimate.high)


def _worst(rows: Sequence[dict[str, Any]]) -> Iterator[RenderableType]:
    known = sorted(
        (row for row in rows if row["accuracy"] is not None), key=lambda row: row["accuracy"]
    )
    if len(known) > WORST:
        table = grid("The worst cells", ["model", "setting"], ["percent"])
        for row in known[:WORST]:
            add(table, row["model"], row["setting"], _percent(row))
        yield table


def assumptions(plan: Plan) -> Iterator[str]:
    """Say of which models nobody said what their outputs mean, and how they are read."""
    read: dict[tuple[str, ...], dict[str, dict[str, None]]] = {}
    for cell in plan.cells:
        if cell.space is not None and cell.space.assumed and cell.setting.labels is not None:
            found = read.setdefault(cell.space.classes, {"models": {}, "sets": {}})
            found["models"][cell.model.name] = found["sets"][cell.setting.images.name] = None
    for classes, found in read.items():
        order = ", ".join(classes[:6]) + (", ..." if len(classes) > 6 else "")
        yield (
            f"Nothing says what the outputs of {', '.join(found['models'])} mean: they are read as "
            f"the classes of {', '.join(found['sets'])} in this order: {order}. If another was "
            "trained, say which: --classes FILE."
        )


def _notes(run: Evaluation) -> Iterator[str]:
    yield from (f"IN DOUBT: {doubt}." for doubt in run.doubts())
    yield from assumptions(run.plan)
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
        shown = grid("")
        for field in table.schema:
            kind = str(field.type)
            number = kind.startswith(("int", "uint", "float", "double", "decimal"))
            add_column(shown, field.name, number=number)
        for row in table.slice(0, ROWS).to_pylist():
            add(shown, *(_plain(value) for value in row.values()))
        more = len(table) - ROWS
        print_parts(
            [shown, *([f"and {more:,} more rows: --csv prints them all"] if more > 0 else [])]
        )


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
    from shiftbed.evaluation.job import with_intervals

    cells = results.cells().to_pylist()
    chosen = [
        cell
        for cell in cells
        if (not models or any(fnmatchcase(cell["model"], one) for one in models))
        and (not settings or any(fnmatchcase(cell["setting"], one) for one in settings))
    ]
    if not chosen:
        raise _none_chosen(results, models, settings, cells)
    print_parts(accuracy_tables(with_intervals(results, chosen), console.width), console)
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
