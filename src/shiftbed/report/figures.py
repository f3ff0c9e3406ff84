"""Figures for papers: vector graphics of a column's width, from the same numbers as the page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from shiftbed.errors import InputError, unknown
from shiftbed.report.calibrated import reliability_diagram
from shiftbed.report.corrupted import MEAN, matrix_of
from shiftbed.report.drawing import (
    INK,
    SOFT,
    STYLES,
    drawing,
    legend,
    limits,
    line,
    place,
    points,
    short,
    ticks,
)
from shiftbed.report.sources import Sources
from shiftbed.results import Results
from shiftbed.studies.lines import Scale
from shiftbed.studies.scoring import Benchmark

__all__ = ["COLUMN", "Measure", "plot_curves", "plot_matrix", "plot_reliability", "plot_scatter"]

FloatArray = npt.NDArray[np.float64]
Measure = Literal["accuracy", "error", "ce"]

#: The width of a paper's column, in inches.
COLUMN = 3.3
#: At most so many models have a line of their own.
_LINES = 8


def plot_scatter(
    results: Results | str | Path,
    output: str | Path,
    shifted: str,
    *,
    clean: str | None = None,
    models: Sequence[str] = (),
    label: Sequence[str] = (),
    axes: Scale = "logit",
    width: float = COLUMN,
    level: float = 0.95,
) -> Path:
    """Draw accuracy under a shift against clean accuracy, with the baseline and its band.

    ``models`` and ``label`` are names, patterns or ``category:NAME``; the labelled ones are
    named in the figure: by default those that were measured here, if they are few. The
    baseline is the study's, fitted in logit scale; ``axes`` lays out the figure.

    >>> import tempfile
    >>> from shiftbed.results import import_results
    >>> folder = Path(tempfile.mkdtemp())
    >>> rows = "model,setting,accuracy,n\\na,photos,81,200\\na,photos+fog,70,200\\n"
    >>> _ = (folder / "mine.csv").write_text(rows)
    >>> _ = import_results(folder / "mine.csv", folder)
    >>> plot_scatter(folder, folder / "scatter.svg", "photos+fog").name
    'scatter.svg'
    """
    if axes not in get_args(Scale):
        raise unknown("kind of axes", axes, get_args(Scale))
    sources = _sources(results, level)
    grid = sources.grid
    grid.at(shifted)
    clean = clean or sources.cleans.get(shifted)
    if clean is None:
        raise InputError(
            f"{shifted} does not say what its clean setting is; name it, like --clean imagenet-val"
        )
    x, y = grid.column(clean), grid.column(shifted)
    shown = grid.mask(models or None) & np.isfinite(x) & np.isfinite(y)
    if not shown.any():
        raise InputError(f"none of the models was measured on both {clean} and {shifted}")
    mine = np.isin(grid.models, sources.measured)
    named = grid.mask(label) if label else mine & (mine.sum() <= _LINES)
    with drawing(output, width, width * 0.92) as figure:
        panel = figure.add_subplot()
        drawn = sources.drawn(clean, shifted)
        if drawn is not None:
            at = [place(column, axes) for column in (drawn.x, drawn.y, drawn.low, drawn.high)]
            panel.fill_between(at[0], at[2], at[3], color=SOFT, alpha=0.22, lw=0)
            panel.plot(at[0], at[1], color=INK, lw=1, label=f"baseline, r² = {drawn.fit.r2:.2f}")
        groups = [("measured here", mine)] if mine.any() else []
        found = [c for c, m in zip(grid.categories, mine, strict=True) if not m]
        for name in sorted(set(found), key=lambda one: -found.count(one)):
            own = np.array([category == name for category in grid.categories]) & ~mine
            groups.append((name or "no category", own))
        for number, (name, members) in enumerate(groups):
            chosen = members & shown
            if chosen.any():
                star = name == "measured here"
                ink, marker, _ = STYLES[(number - bool(mine.any())) % len(STYLES)]
                if star:
                    ink, marker = INK, "*"
                places = [
                    [place(column, axes) for column in _ends(sources, chosen, setting)]
                    for setting in (clean, shifted)
                ]
                points(panel, places, (ink, marker), f"{name} ({chosen.sum()})", star=star)
        rightmost = float(np.max(place(x[shown], axes)))
        span = rightmost - float(np.min(place(x[shown], axes)))
        for row in np.flatnonzero(shown & named):
            here, up = place([x[row], y[row]], axes).tolist()
            # At the right edge, names stand on the left.
            late = rightmost - here < 0.15 * span
            said: dict[str, Any] = {"ha": "right" if late else "left", "zorder": 5}
            said |= {"textcoords": "offset points", "va": "top", "fontsize": 5.5}
            off = (-3, -3) if late else (3, -3)
            text = panel.annotate(short(grid.models[row]), (here, up), off, **said)
            text.set_in_layout(False)
        ends = place(np.array([np.min([x[shown], y[shown]]), np.max([x[shown], y[shown]])]), axes)
        panel.plot(ends, ends, color=SOFT, lw=0.7, ls=":", label="no loss", zorder=1)
        for axis, values in ((panel.xaxis, x[shown]), (panel.yaxis, y[shown])):
            ticks(axis, values, axes)
        limits(panel, place(x[shown], axes), place(y[shown], axes))
        panel.set_xlabel(clean)
        panel.set_ylabel(shifted)
        legend(panel)
    return Path(output)


def plot_curves(
    results: Results | str | Path,
    output: str | Path,
    *,
    benchmark: str | None = None,
    corruptions: Sequence[str] = (),
    models: Sequence[str] = (),
    width: float = 2 * COLUMN,
    level: float = 0.95,
) -> Path:
    """Draw accuracy by severity, a panel for each corruption, with error bars."""
    sources = _sources(results, level)
    one = _benchmark(sources, benchmark)
    for name in corruptions:
        if name not in one.settings:
            raise unknown(f"corruption of {one.name}", name, one.settings)
    names = list(corruptions) or list(one.settings)
    lines = _lines(sources, models, [s for name in names for s in one.settings[name]])
    first = 0 if one.clean in sources.grid else 1
    across = min(len(names), max(1, round(width / 1.3)))
    down = -(-len(names) // across)
    with drawing(output, width, 1.25 * down + 0.45) as figure:
        panels = figure.subplots(down, across, sharex=True, sharey=True, squeeze=False).ravel()
        for panel, name in zip(panels, names, strict=False):
            panel.set_title(name.replace("_", " "), fontsize=6.5, pad=2)
            steps = [*([] if first else [one.clean]), *one.settings[name]]
            for number, model in enumerate(lines):
                cells = [sources.by_name.get((model, setting)) for setting in steps]
                there = [
                    (first + step, cell)
                    for step, cell in enumerate(cells)
                    if cell and cell["accuracy"] is not None and cell["complete"]
                ]
                counts = sorted({cell["n"] for _, cell in there if cell["n"]})
                n = " to ".join(f"{count:,}" for count in dict.fromkeys(counts[:1] + counts[-1:]))
                line(
                    panel,
                    number,
                    f"{short(model)} (n = {n or 'not known'})",
                    np.array([step for step, _ in there], float),
                    *_columns([cell for _, cell in there]),
                )
            panel.set(ylim=(0, 1.02), xticks=range(first, len(steps) + first))
            panel.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f}%")
        for panel in panels[len(names) :]:
            panel.set_axis_off()
        for panel in panels[max(len(names) - across, 0) : len(names)]:
            panel.set_xlabel("severity" if first else "severity (0: clean)", fontsize=6)
            panel.tick_params(labelbottom=True)
        handles, texts = panels[0].get_legend_handles_labels()
        figure.legend(handles, texts, loc="outside lower center", ncols=3, frameon=False)
    return Path(output)


def plot_matrix(
    results: Results | str | Path,
    output: str | Path,
    *,
    benchmark: str | None = None,
    measure: Measure = "accuracy",
    baseline: str | Sequence[str] = (),
    models: Sequence[str] = (),
    width: float = 2 * COLUMN,
    level: float = 0.95,
) -> Path:
    """Draw models by corruptions as a heat map, in percent, the best model first."""
    if measure not in get_args(Measure):
        raise unknown("measure", measure, get_args(Measure))
    baselines = [baseline] if isinstance(baseline, str) else baseline
    sources = _sources(results, level, baselines)
    one = _benchmark(sources, benchmark)
    chosen = sources.grid.mask(models or None)
    wanted = {name for name, is_in in zip(sources.grid.models, chosen, strict=True) if is_in}
    matrix = matrix_of(sources, one)
    table = matrix["ce" if measure == "ce" else "error"]
    rows = {model: entries for model, entries in table.items() if model in wanted}
    if not rows:
        refused = next((matrix["refused"][m] for m in wanted & matrix["refused"].keys()), None)
        raise InputError(refused or f"none of the models has a whole corruption of {one.name}")
    columns = [MEAN, *one.settings]
    values = np.array([[rows[m].get(c, [np.nan])[0] for c in columns] for m in rows], dtype=float)
    shown = 1 - values if measure == "accuracy" else values
    order = np.argsort(np.where(np.isnan(values[:, 0]), np.inf, values[:, 0]), kind="stable")
    names = list(rows)
    with drawing(output, width, 0.17 * len(rows) + 1.1) as figure:
        panel = figure.add_subplot()
        better = -values[order]
        panel.imshow(better, aspect="auto", cmap="viridis")
        span = [float(np.nanmin(better)), float(np.nanmax(better))]
        for (row, column), value in np.ndenumerate(shown[order]):
            light = (better[row, column] - span[0]) / (span[1] - span[0] or 1) > 0.6
            text = "" if np.isnan(value) else f"{100 * value:.0f}"
            ink = INK if light else "white"
            panel.text(column, row, text, ha="center", va="center", fontsize=4.6, color=ink)
        panel.set_xticks(range(len(columns)), [name.replace("_", " ") for name in columns])
        panel.set_yticks(range(len(rows)), [short(names[row]) for row in order])
        panel.tick_params(length=0, labelsize=5.5)
        for tick in panel.get_xticklabels():
            tick.set(rotation=45, ha="right", rotation_mode="anchor")
        counts = sorted({entry[3] for entries in rows.values() for entry in entries.values()})
        unit = f" of {matrix['baseline']}'s error" if measure == "ce" else ""
        n = " to ".join(f"{count:,}" for count in dict.fromkeys([counts[0], counts[-1]]))
        panel.set_title(f"{one.name}: {measure} in percent{unit}, n = {n}", fontsize=6.5)
    return Path(output)


def plot_reliability(
    results: Results | str | Path,
    output: str | Path,
    setting: str,
    *,
    models: Sequence[str] = (),
    width: float = COLUMN,
    level: float = 0.95,
) -> Path:
    """Draw the reliability diagram of measured models on a setting, with error bars."""
    sources = _sources(results, level)
    sources.grid.at(setting)
    diagrams = {
        model: found
        for model in _lines(sources, models, [setting], measured=True)
        if (found := reliability_diagram(sources, model, setting)) is not None
    }
    if not diagrams:
        raise InputError(
            f"no model was measured here on {setting} with labelled pictures; a reliability "
            "diagram needs predictions"
        )
    with drawing(output, width, width * 0.92) as figure:
        panel = figure.add_subplot()
        panel.plot([0, 1], [0, 1], color=SOFT, lw=0.7, ls=":")
        for number, (model, found) in enumerate(diagrams.items()):
            label = f"{short(model)} (n = {found.n.sum():,})"
            line(panel, number, label, found.confidence, found.accuracy, found.low, found.high)
        panel.set(xlim=(0, 1.02), ylim=(0, 1.02), ylabel="accuracy")
        panel.set_xlabel(f"confidence on {setting}")
        for axis in (panel.xaxis, panel.yaxis):
            axis.set_major_formatter(lambda value, _: f"{100 * value:.0f}%")
        legend(panel)
    return Path(output)


def _sources(results: Results | str | Path, level: float, baselines: Sequence[str] = ()) -> Sources:
    if not isinstance(results, Results):
        results = Results.open(results)
    return Sources(results, baselines=baselines, level=level)


def _benchmark(sources: Sources, name: str | None) -> Benchmark:
    known = {one.name: one for one in sources.benchmarks}
    if not known:
        raise InputError("none of the settings is a corruption, so there is nothing to draw")
    if name is None:
        # The one that most models have, rather with labels.
        def weight(one: Benchmark) -> tuple[bool, int]:
            settings = [setting for steps in one.settings.values() for setting in steps]
            cells = sum(int(np.isfinite(sources.grid.column(s)).sum()) for s in settings)
            return sources.metrics[settings[0]] == "top1", cells

        return max(known.values(), key=weight)
    if name not in known:
        raise unknown("benchmark", name, known)
    return known[name]


def _lines(
    sources: Sources, models: Sequence[str], settings: Sequence[str], *, measured: bool = False
) -> list[str]:
    """Return the models to draw lines of: those chosen, or measured here, or else the best."""
    grid = sources.grid
    there = np.isfinite(grid.accuracy[:, [grid.at(setting) for setting in settings]]).any(axis=1)
    mine = np.isin(grid.models, sources.measured)
    chosen = grid.mask(models or None) & there
    if measured or (not models and (chosen & mine).any()):
        chosen &= mine
    if not chosen.any():
        raise InputError(f"none of the models was measured on {settings[0]}")
    columns = grid.accuracy[chosen][:, [grid.at(setting) for setting in settings]]
    best = np.argsort(-np.nanmean(columns, axis=1), kind="stable")[:_LINES]
    return [grid.models[row] for row in np.flatnonzero(chosen)[best]]


def _ends(
    sources: Sources, chosen: npt.NDArray[np.bool_], setting: str
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the accuracies of chosen models on a setting, and the ends of their intervals."""
    models = [sources.grid.models[row] for row in np.flatnonzero(chosen)]
    return _columns([sources.by_name[model, setting] for model in models])


def _columns(cells: Sequence[dict[str, Any]]) -> tuple[FloatArray, FloatArray, FloatArray]:
    names = ("accuracy", "low", "high")
    value, low, high = (
        np.array([[cell[n] for n in names] for cell in cells], float).reshape(-1, 3).T
    )
    return value, low, high
