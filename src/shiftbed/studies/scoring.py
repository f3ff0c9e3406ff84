"""Scores of models over results: one row per model and setting, or per benchmark."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import numpy as np

from shiftbed import _plugins, metrics, published
from shiftbed.errors import InputError, unknown
from shiftbed.metrics import CorruptionErrors, Estimate
from shiftbed.studies.grid import Grid
from shiftbed.studies.robustness import accuracy_interval
from shiftbed.studies.shifts import clean_of, stored, synthetic

if TYPE_CHECKING:
    import pyarrow as pa

    from shiftbed.results import Results

__all__ = [
    "ALEXNET",
    "METRICS",
    "Benchmark",
    "benchmarks",
    "corruption_errors",
    "counted",
    "score",
    "score_of_cell",
]

#: The baseline of an mCE that is nobody's cell: AlexNet on the stored ImageNet-C, as published.
ALEXNET = "alexnet (published)"

#: What its errors were counted on.
_PUBLISHED_PICTURES = 50_000

_SEVERITY = re.compile(r"(.+?)(?:\.(\d+))?")


@dataclass(frozen=True)
class Benchmark:
    """Corruptions of one image set, each at the same number of severities."""

    #: ``imagenet-c`` for the stored pictures, ``SET+`` for corruptions made in memory.
    name: str
    clean: str
    #: Corruption -> its settings, one per severity.
    settings: dict[str, tuple[str, ...]]

    @property
    def severities(self) -> int:
        """How many severities most corruptions have."""
        counts = [len(names) for names in self.settings.values()]
        return max(set(counts), key=counts.count)


@dataclass(frozen=True)
class _Request:
    results: Results
    grid: Grid
    cells: list[dict[str, Any]]
    baseline: str | None
    usual: str | None
    level: float


def score(
    results: Results,
    metric: Sequence[str] = ("accuracy", "mce"),
    *,
    models: Sequence[str] = (),
    settings: Sequence[str] = (),
    baseline: str | None = None,
    usual: str | None = None,
    level: float = 0.95,
) -> pa.Table:
    """Return scores with their intervals: columns model, metric, on, value, low, high, n, note.

    ``models`` and ``settings`` are names or patterns. ``baseline`` is the model that an mCE is
    relative to; see `corruption_errors` for what it is otherwise. ``usual`` is the setting whose
    pictures a detection score counts as not anomalous. Where a score cannot be had, its value is
    null and the note says why.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from shiftbed.results import Results, import_results
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "mine.csv").write_text("model,setting,accuracy,n\\nnet,photos,81.5,200\\n")
    >>> _ = import_results(folder / "mine.csv", folder)
    >>> [row] = score(Results(folder), ["accuracy"]).to_pylist()
    >>> round(row["low"], 3), round(row["high"], 3), row["note"]
    (0.754, 0.866, 'imported')
    """
    import pyarrow as pa

    _plugins.load()
    for name in metric:
        if name not in METRICS:
            raise unknown("metric", name, METRICS)
    results = results.snapshot()
    table = results.cells()
    grid = Grid.from_cells(table)
    if baseline is not None:
        grid.row(baseline)
    for kind, patterns, known in (
        ("model", models, grid.models),
        ("setting", settings, grid.settings),
    ):
        for pattern in patterns:
            if not any(fnmatchcase(name, pattern) or name == pattern for name in known):
                raise unknown(kind, pattern, known)
    cells = [
        cell
        for cell in table.to_pylist()
        if _chosen(cell["model"], models) and _chosen(cell["setting"], settings)
    ]
    request = _Request(results, grid, cells, baseline, usual, level)
    schema = pa.schema(
        [
            ("model", pa.string()),
            ("metric", pa.string()),
            ("on", pa.string()),
            ("value", pa.float64()),
            ("low", pa.float64()),
            ("high", pa.float64()),
            ("n", pa.int64()),
            ("note", pa.string()),
        ]
    )
    nothing = {"note": "there is no cell to compute it from"}
    chosen = {name: METRICS[name] for name in metric}
    of_cells = {name: one.compute for name, one in chosen.items() if isinstance(one, _OfCells)}
    computed = _of_cells(request, [*of_cells.values()]) if of_cells else []
    found = dict(zip(of_cells, computed, strict=True))
    found |= {name: list(one(request)) for name, one in chosen.items() if name not in found}
    rows = [{"metric": name, **row} for name in chosen for row in found[name] or [nothing]]
    return pa.Table.from_pylist(rows, schema=schema)


def _chosen(name: str, patterns: Sequence[str]) -> bool:
    return not patterns or any(fnmatchcase(name, p) or name == p for p in patterns)


def _row(model: str, on: str, estimate: Estimate, note: str | None = None) -> dict[str, Any]:
    return {
        "model": model,
        "on": on,
        "value": estimate.value,
        "low": None if np.isnan(estimate.low) else estimate.low,
        "high": None if np.isnan(estimate.high) else estimate.high,
        "n": estimate.n or None,
        "note": note,
    }


def _refused(model: str, on: str, problem: object) -> dict[str, Any]:
    return {"model": model, "on": on, "note": str(problem)}


# Per cell.


def _shares(column: str) -> Callable[[_Request], Iterator[dict[str, Any]]]:
    def rows(request: _Request) -> Iterator[dict[str, Any]]:
        cells = [cell for cell in request.cells if cell[column] is not None]
        values = np.array([cell[column] for cell in cells], float)
        n = np.array([cell["n"] if cell["n"] else np.nan for cell in cells], float)
        low, high = accuracy_interval(values, n, request.level)
        for i, cell in enumerate(cells):
            if cell["metric"] in ("aupr", "map"):  # these are no shares of pictures
                low[i], high[i] = _own_interval(request, cell)
        for cell, value, bottom, top in zip(cells, values, low, high, strict=True):
            notes = [] if cell["complete"] else ["incomplete"]
            notes += [cell["metric"]] if cell["metric"] != "top1" else []
            notes += ["imported"] if cell["origin"] == "imported" else []
            estimate = Estimate(value, bottom, top, cell["n"] or 0, request.level)
            yield _row(cell["model"], cell["setting"], estimate, ", ".join(notes) or None)

    return rows


def _own_interval(request: _Request, cell: dict[str, Any]) -> tuple[float, float]:
    found = None
    if cell["origin"] == "measured":
        found = request.results.estimate(cell["model"], cell["setting"], request.level)
    return (np.nan, np.nan) if found is None else (found.low, found.high)


@dataclass(frozen=True)
class _OfCells:
    """A score of single cells, from their pictures' answers."""

    compute: Callable[[dict[str, Any], float], Estimate]

    def __call__(self, request: _Request) -> list[dict[str, Any]]:
        return _of_cells(request, [self.compute])[0]


def _of_cells(
    request: _Request, computes: Sequence[Callable[[dict[str, Any], float], Estimate]]
) -> list[list[dict[str, Any]]]:
    """Return the rows of several scores of single cells, each of which is read once.

    Cells are judged beside each other: reading, decoding and sorting let other threads work.
    """
    from shiftbed.run.threads import cores

    def rows(cell: dict[str, Any]) -> list[dict[str, Any]]:
        model, setting = cell["model"], cell["setting"]
        try:
            columns = _answers(request, cell)
        except InputError as problem:
            return [_refused(model, setting, problem)] * len(computes)
        found = []
        for compute in computes:
            try:
                found.append(_row(model, setting, compute(columns, request.level)))
            except InputError as problem:
                found.append(_refused(model, setting, problem))
        return found

    with ThreadPoolExecutor(cores()) as pool:
        cells = list(pool.map(rows, request.cells))
    return [[found[place] for found in cells] for place in range(len(computes))]


def _answers(request: _Request, cell: dict[str, Any]) -> dict[str, Any]:
    """Return a measured cell's columns as arrays, of labelled pictures."""
    if cell["origin"] == "imported":
        raise InputError("imported cells have no predictions")
    if not cell["complete"]:
        raise InputError("the cell is incomplete; run the evaluation again")
    if cell["metric"] != "top1":
        raise InputError("its pictures have no single label each")
    table = request.results.answers(cell["model"], cell["setting"])
    columns = {name: table[name].to_numpy() for name in ("label", "class1", "confidence")}
    return {**columns, "correct": table["rank_true"].to_numpy() == 1}


def _balanced(columns: dict[str, Any], level: float) -> Estimate:
    return metrics.balanced_accuracy(columns["class1"], columns["label"], level=level)


def _calibration(norm: Any) -> Callable[[dict[str, Any], float], Estimate]:
    def compute(columns: dict[str, Any], level: float) -> Estimate:
        return metrics.calibration_error(
            columns["confidence"], columns["correct"], norm, level=level
        )

    return compute


def _aurra(columns: dict[str, Any], level: float) -> Estimate:
    return metrics.aurra(columns["confidence"], columns["correct"], level)


def _detection(request: _Request) -> Iterator[dict[str, Any]]:
    cells = request.cells
    if request.usual is not None:
        request.grid.at(request.usual)
    else:
        cells = [cell for cell in cells if cell["metric"] == "aupr"]
        if not cells:
            raise InputError(
                "detection tells anomalous pictures from usual ones; say which setting is usual, "
                "like --usual imagenet-val"
            )
    for cell in cells:
        model, setting = cell["model"], cell["setting"]
        if setting == request.usual:
            continue
        try:
            if cell["origin"] == "imported":
                raise InputError("imported cells have no predictions")
            found = request.results.detection(model, setting, request.usual, request.level)
            chance = f"AUPR; by chance {100 * found.prevalence:.1f}%"
            yield _row(model, setting, found.aupr, chance)
            yield _row(model, setting, found.auroc, "AUROC; by chance 50%")
            yield _row(model, setting, found.fpr95, "FPR95; by chance 95%")
        except InputError as problem:
            yield _refused(model, setting, problem)


def _frames(request: _Request) -> Iterator[dict[str, Any]]:
    for cell in request.cells:
        if not cell["metric"].startswith("pm"):
            continue
        model, setting = cell["model"], cell["setting"]
        for k in dict.fromkeys((0, int(cell["metric"].removeprefix("pm")))):
            try:
                found = request.results.frames(model, setting, k, request.level)
                yield _row(model, setting, found, f"pm-{k}, over frame sets")
            except InputError as problem:
                yield _refused(model, setting, problem)


# Per benchmark.


def benchmarks(settings: Sequence[str]) -> list[Benchmark]:
    """Return the corruption benchmarks among settings, each with its corruptions.

    >>> [found] = benchmarks(["photos", "photos+fog.1", "photos+fog.2", "photos+snow.1"])
    >>> found.name, found.severities
    ('photos+', 1)
    >>> found.settings["fog"]
    ('photos+fog.1', 'photos+fog.2')
    """
    known = {name for variant in _VARIANTS for name in _corruptions(variant)}
    found: dict[str, dict[str, list[tuple[int, str]]]] = {}
    for setting in settings:
        if not synthetic(setting):
            continue
        mark = "." if stored(setting) else "+"
        family, _, shift = setting.partition(mark)
        matched = _SEVERITY.fullmatch(shift)
        if matched is None or matched[1] not in known:
            continue
        severity = int(matched[2] or 0)
        name = family if stored(setting) else f"{family}+"
        found.setdefault(name, {}).setdefault(matched[1], []).append((severity, setting))
    return [
        Benchmark(
            name,
            clean_of(next(iter(shifts.values()))[0][1], settings),
            {
                corruption: tuple(setting for _, setting in sorted(steps))
                for corruption, steps in sorted(shifts.items())
            },
        )
        for name, shifts in sorted(found.items())
    ]


_VARIANTS = ("imagenet-c", "mnist-c")


def _corruptions(variant: str, extra: bool = True) -> tuple[str, ...]:
    from shiftbed.corruptions import corruption_names

    return corruption_names(variant, extra=extra)


def counted(benchmark: Benchmark) -> tuple[str, ...]:
    """Return the corruptions that a mean must be over: those of the benchmark it comes nearest."""
    lists = (_corruptions(variant, extra=False) for variant in _VARIANTS)
    return max(lists, key=lambda names: len(benchmark.settings.keys() & set(names)))


def _alexnet(grid: Grid, benchmark: Benchmark) -> str | None:
    """Return the AlexNet among the models, if it was measured on the whole benchmark."""
    for model in grid.models:
        if re.fullmatch(r"(?:.*[:/])?alexnet", model):
            steps = benchmark.settings.values()
            row = grid.row(model)
            if all(np.isfinite(grid.column(s)[row]) for names in steps for s in names):
                return model
    return None


def corruption_errors(
    results: Results,
    grid: Grid,
    benchmark: Benchmark,
    model: str,
    *,
    baseline: str | None = None,
    relative: bool = False,
    corruptions: Sequence[str] | None = None,
    level: float = 0.95,
) -> CorruptionErrors:
    """Return a model's (relative) corruption errors on a benchmark.

    The baseline is a model of the same results: the one named, or else their AlexNet. Without
    either it is AlexNet as published, which was measured on the stored ImageNet-C and is
    refused elsewhere. A measured model's intervals are over pictures; an imported one's, from
    accuracies alone, are wider.

    >>> from shiftbed.results import Results
    >>> settings = ["imagenet-c.fog.1", "imagenet-c.snow.1"]
    >>> grid = Grid.of(["net", "base"], settings, [[0.7, 0.6], [0.4, 0.2]], n=1000)
    >>> errors = corruption_errors(
    ...     Results("nowhere"), grid, benchmarks(settings)[0], "net", baseline="base",
    ...     corruptions=["fog", "snow"],
    ... )
    >>> print(errors.mean)
    50.0% [45.7, 54.4], n = 1,000
    """
    clean_known: float | None
    baseline = baseline or _alexnet(grid, benchmark)
    if baseline is None:
        if benchmark.name != "imagenet-c":
            raise InputError(
                f"the published AlexNet errors are of the stored ImageNet-C, not of "
                f"{benchmark.name}; name a model of these results with --baseline"
            )
        known: dict[str, Any] = dict(published.alexnet_errors())
        clean_known = published.alexnet_clean_error()
        severities = 5
    else:
        severities = benchmark.severities
        known = {
            corruption: _errors(grid, benchmark, baseline, corruption, severities)
            for corruption in corruptions or counted(benchmark)
        }
        clean_known = _clean_error(grid, benchmark, baseline) if relative else None
    errors = {
        corruption: _errors(grid, benchmark, model, corruption, severities) for corruption in known
    }
    _check_pictures(grid, benchmark, model, baseline, list(errors))
    wrong = _wrong(results, benchmark, model, list(errors), relative)
    if wrong is not None:
        clean_wrong = wrong.pop("", None)
        return metrics.corruption_error_of_pictures(
            wrong,
            clean_wrong=clean_wrong,
            baseline=known,
            baseline_clean=clean_known,
            severities=severities,
            level=level,
        )
    at = grid.row(model)
    every = [setting for name in errors for setting in benchmark.settings[name]]
    n = np.array([grid.pictures(setting)[at] for setting in every])
    if np.isnan(n).any():
        raise InputError(f"n is not known for {model} on {every[int(np.isnan(n).argmax())]}")
    if relative:
        return metrics.relative_corruption_error(
            errors,
            _clean_error(grid, benchmark, model),
            int(n.min()),
            baseline=known,
            baseline_clean=clean_known,
            severities=severities,
            level=level,
        )
    return metrics.corruption_error(
        errors, int(n.min()), baseline=known, severities=severities, level=level
    )


def _errors(
    grid: Grid, benchmark: Benchmark, model: str, corruption: str, severities: int
) -> list[float]:
    if corruption not in benchmark.settings:
        raise InputError(
            f"{corruption} is missing from {benchmark.name}, so there is no mean over corruptions"
        )
    settings = benchmark.settings[corruption]
    errors = [1 - float(grid.column(setting)[grid.row(model)]) for setting in settings]
    gaps = [s for s, error in zip(settings, errors, strict=True) if np.isnan(error)]
    if gaps or len(settings) != severities:
        lacks = gaps[0] if gaps else f"{len(settings)} of {severities} severities"
        raise InputError(
            f"{corruption} is incomplete for {model} on {benchmark.name} ({lacks}), so there is "
            "no mean over corruptions"
        )
    return errors


def _check_pictures(
    grid: Grid, benchmark: Benchmark, model: str, baseline: str | None, corruptions: Sequence[str]
) -> None:
    """Refuse to divide errors on some pictures by errors on others, as far as n tells."""
    for setting in (name for one in corruptions for name in benchmark.settings[one]):
        n = grid.pictures(setting)[grid.row(model)]
        known = _PUBLISHED_PICTURES
        if baseline is not None:
            known = grid.pictures(setting)[grid.row(baseline)]
        if n != known and not np.isnan([n, known]).any():
            raise InputError(
                f"{model} was scored on {n:,.0f} pictures of {setting} and its baseline "
                f"{baseline or ALEXNET} on {known:,.0f}; a ratio of errors needs the same pictures"
            )


def _clean_error(grid: Grid, benchmark: Benchmark, model: str) -> float:
    error = np.nan
    if benchmark.clean in grid:
        error = 1 - float(grid.column(benchmark.clean)[grid.row(model)])
    if np.isnan(error):
        raise InputError(f"{model} was not measured on {benchmark.clean}, the clean pictures")
    return error


def _wrong(
    results: Results, benchmark: Benchmark, model: str, corruptions: Sequence[str], relative: bool
) -> dict[str, Any] | None:
    """Return what a measured model got wrong, per corruption; under "" on clean pictures."""
    measured = {
        manifest.identity.setting: manifest
        for manifest in results.manifests()
        if manifest.identity.model == model
    }
    needed = {setting for name in corruptions for setting in benchmark.settings[name]}
    if relative:
        needed.add(benchmark.clean)
    if not needed <= measured.keys():
        return None
    names: dict[str, tuple[Any, Any]] = {}

    def judged(setting: str) -> tuple[Any, Any]:
        """Return the pictures' names in rising order, and which of them are wrong."""
        manifest = measured[setting]
        table = results.rows(manifest)
        if table["rank_true"].null_count:  # some picture has no label
            return None, None
        shown = manifest.identity.pictures
        if shown not in names:
            ids = np.array(results.pictures(manifest)["picture"].to_pylist(), object)
            names[shown] = ids, np.argsort(ids)
        ids, order = names[shown]
        row = np.full(len(ids), -1, np.int8)
        row[table["index"].to_numpy()] = table["rank_true"].to_numpy() != 1
        there = order[row[order] >= 0]
        return ids[there], row[there] == 1

    steps = {name: list(benchmark.settings[name]) for name in corruptions}
    if relative:
        steps[""] = [benchmark.clean]
    pictures = None
    wrong: dict[str, Any] = {}
    for name, settings in steps.items():
        rows = []
        for setting in settings:
            shown, row = judged(setting)
            if row is None or (pictures is not None and not np.array_equal(shown, pictures)):
                return None
            pictures = shown
            rows.append(row)
        wrong[name] = rows[0] if name == "" else np.array(rows)
    return wrong


def _mean_errors(
    relative: bool, raw: bool = False
) -> Callable[[_Request], Iterator[dict[str, Any]]]:
    def rows(request: _Request) -> Iterator[dict[str, Any]]:
        chosen = {cell["setting"] for cell in request.cells}
        for benchmark in benchmarks(request.grid.settings):
            names = {name for steps in benchmark.settings.values() for name in steps}
            if not names & chosen:
                continue
            for model in dict.fromkeys(
                cell["model"] for cell in request.cells if cell["setting"] in names
            ):
                baseline = model if raw else request.baseline or _alexnet(request.grid, benchmark)
                present = [c for c in counted(benchmark) if c in benchmark.settings]
                try:
                    found = corruption_errors(
                        request.results,
                        request.grid,
                        benchmark,
                        model,
                        baseline=baseline,
                        relative=relative,
                        # A mean of errors may be over fewer, if it says so.
                        corruptions=present if raw else None,
                        level=request.level,
                    )
                except InputError as problem:
                    yield _refused(model, benchmark.name, problem)
                    continue
                count, whole = len(found.raw), len(counted(benchmark))
                note = (
                    f"{count} corruptions" if count == whole else f"{count} of {whole} corruptions"
                )
                if raw:
                    yield _row(model, benchmark.name, found.raw_mean, note)
                else:
                    note += f" against {baseline or ALEXNET}"
                    yield _row(model, benchmark.name, found.mean, note)

    return rows


#: Every score by its name.
METRICS: dict[str, Callable[[_Request], Iterable[dict[str, Any]]]] = {
    "accuracy": _shares("accuracy"),
    "top5": _shares("top5"),
    "balanced-accuracy": _OfCells(_balanced),
    "corruption-error": _mean_errors(relative=False, raw=True),
    "mce": _mean_errors(relative=False),
    "relative-mce": _mean_errors(relative=True),
    "calibration": _OfCells(_calibration("l2")),
    "ece": _OfCells(_calibration("l1")),
    "aurra": _OfCells(_aurra),
    "detection": _detection,
    "frames": _frames,
}


def score_of_cell(
    name: str,
) -> Callable[[Callable[[dict[str, Any], float], Estimate]], Callable[..., Estimate]]:
    """Register a function as a metric of single cells, for ``score`` and ``shiftbed score``.

    It is given a labelled cell's columns as arrays, one value per picture: ``label``,
    ``class1``, ``confidence`` and ``correct``; and the level of the interval to return. It is
    called for several cells at once, from as many threads.

    >>> @score_of_cell("doubt")
    ... def doubt(columns, level):
    ...     unsure = columns["confidence"] < 0.5
    ...     return metrics.proportion(int(unsure.sum()), len(unsure), level)
    >>> "doubt" in METRICS
    True
    >>> del METRICS["doubt"]
    """

    def register(compute: Callable[[dict[str, Any], float], Estimate]) -> Callable[..., Estimate]:
        METRICS[name] = _OfCells(compute)
        return compute

    return register
