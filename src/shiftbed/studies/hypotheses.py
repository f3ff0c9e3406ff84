"""Hypotheses declared as comparisons of models, and what the cells say to each.

A comparison sets one or more models *with* something against one or more *without*. Its
difference, under a measure of robustness, has an interval from the numbers of pictures. The rule
by which a hypothesis gets its sign on a data set is `sign`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from shiftbed import published
from shiftbed.data import read_toml
from shiftbed.errors import InputError, unknown
from shiftbed.studies.baseline import BaselineFit, baseline_for
from shiftbed.studies.grid import Grid
from shiftbed.studies.robustness import accuracy_interval, difference, effective_robustness

__all__ = [
    "Compared",
    "Comparison",
    "Dataset",
    "Declaration",
    "Expectation",
    "Finding",
    "Hypothesis",
    "Measure",
    "Sign",
    "declaration",
    "judge",
    "many_faces_grid",
    "sign",
]

#: ``accuracy`` under the shift; ``gap``: that less clean accuracy; ``effective`` robustness.
Measure = Literal["accuracy", "gap", "effective"]
#: What is claimed of the models *with*, by more than the margin.
Expectation = Literal["better", "worse", "same"]
Sign = Literal["+", "-", "not established", "not measured"]

_MAX_BYTES = 2**20
_Ends = tuple[float, float, float]


@dataclass(frozen=True)
class Dataset:
    """A column of the table: shifted settings, whose mean counts, and their clean one."""

    name: str
    clean: str
    shifted: tuple[str, ...]


@dataclass(frozen=True)
class Comparison:
    """Models with something and models without it; none without: the baseline itself.

    With ``each``, every single model is compared, not their mean.
    """

    with_: tuple[str, ...]
    without: tuple[str, ...] = ()
    each: bool = False


@dataclass(frozen=True)
class Hypothesis:
    """A row of the table: a claim, and the comparisons that bear on it."""

    name: str
    claim: str
    expect: Expectation
    measures: tuple[Measure, ...]
    compare: tuple[Comparison, ...]
    #: Differences up to it do not count.
    margin: float = 0.0
    #: The data sets that the claim is about; None: all.
    datasets: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Declaration:
    """What a file declares: data sets and hypotheses."""

    title: str
    datasets: tuple[Dataset, ...]
    hypotheses: tuple[Hypothesis, ...]


@dataclass(frozen=True)
class Compared:
    """One comparison's outcome: models with, less models without, under a measure.

    The interval holds for all comparisons of its hypothesis and data set at once (Bonferroni).
    """

    measure: Measure
    with_: tuple[str, ...]
    without: tuple[str, ...]
    difference: float
    low: float
    high: float


@dataclass(frozen=True)
class Finding:
    """What the cells say to one hypothesis on one data set, and the numbers behind it."""

    hypothesis: str
    dataset: str
    sign: Sign
    #: The mean difference of the comparisons, for each measure, and its interval.
    means: dict[Measure, tuple[float, float, float]]
    comparisons: tuple[Compared, ...]


def sign(
    expect: Expectation,
    margin: float,
    mean: tuple[float, float],
    each: Sequence[tuple[float, float]],
) -> Sign:
    """Decide by the intervals of the mean difference and of each comparison.

    ``better``: + if the mean's whole interval lies above the margin and no comparison's lies
    below; - if the mean's lies below and no comparison's above. ``worse`` is its mirror image.
    ``same`` claims that there never is a difference: - if any comparison's whole interval lies
    outside the margin on either side, + if all of them lie inside. What is neither + nor - is
    not established.

    >>> sign("better", 0.0, (0.01, 0.04), [(0.02, 0.05), (-0.01, 0.04)])
    '+'
    >>> sign("better", 0.0, (0.01, 0.04), [(0.02, 0.05), (-0.04, -0.01)])
    'not established'
    >>> sign("same", 0.02, (0.0, 0.05), [(-0.01, 0.01), (0.03, 0.05)])
    '-'
    """
    if expect == "same":
        if any(low > margin or high < -margin for low, high in each):
            return "-"
        if all(low > -margin and high < margin for low, high in each):
            return "+"
        return "not established"
    if expect == "worse":
        mean, each = (-mean[1], -mean[0]), [(-high, -low) for low, high in each]
    if mean[0] > margin and not any(high < margin for _, high in each):
        return "+"
    if mean[1] < margin and not any(low > margin for low, _ in each):
        return "-"
    return "not established"


def judge(
    grid: Grid, declared: Declaration | None = None, *, level: float = 0.95
) -> tuple[Finding, ...]:
    """Return what a grid's cells say to every hypothesis on every data set.

    Comparisons that lack a model are passed over; with none left, the hypothesis is not
    measured there. With several measures the claim is that all hold: + needs + from each, and
    one - is enough for -.

    >>> findings = judge(many_faces_grid())
    >>> [f.sign for f in findings if (f.hypothesis, f.dataset) == ("Larger Models", "ImageNet-R")]
    ['+']
    """
    declared = declaration() if declared is None else declared
    views = {dataset.name: _view(grid, dataset) for dataset in declared.datasets}
    findings = []
    for hypothesis in declared.hypotheses:
        for dataset in declared.datasets:
            if hypothesis.datasets is None or dataset.name in hypothesis.datasets:
                findings.append(_finding(hypothesis, dataset, views[dataset.name], level))
    return tuple(findings)


@dataclass(frozen=True)
class _View:
    """A grid with one setting for all of a data set's shifted ones, and its baseline."""

    grid: Grid
    clean: str
    shifted: str
    fit: BaselineFit | None


def _view(grid: Grid, dataset: Dataset) -> _View | None:
    try:
        members = grid.matching_settings(dataset.shifted)
    except InputError:
        return None
    members = [member for member in members if member != dataset.clean]
    if not members:
        return None
    grid = grid.with_setting(dataset.clean)
    shifted = members[0] if len(members) == 1 else f"average of {dataset.name}"
    if len(members) > 1:
        grid = grid.with_average(shifted, members)
    try:
        fit = baseline_for(grid, shifted, clean=dataset.clean)[0]
    except InputError:
        fit = None
    return _View(grid, dataset.clean, shifted, fit)


def _finding(hypothesis: Hypothesis, dataset: Dataset, view: _View | None, level: float) -> Finding:
    nothing = Finding(hypothesis.name, dataset.name, "not measured", {}, ())
    if view is None:
        return nothing
    needed = (
        {view.shifted} if set(hypothesis.measures) == {"accuracy"} else {view.shifted, view.clean}
    )
    pairs = [
        pair for comparison in hypothesis.compare for pair in _expand(view.grid, comparison, needed)
    ]
    if not pairs:
        return nothing
    strict = 1 - (1 - level) / len(pairs)
    means: dict[Measure, _Ends] = {}
    compared: list[Compared] = []
    signs: list[Sign] = []
    for measure in hypothesis.measures:
        if measure == "effective" and view.fit is None:
            return nothing
        plain = np.array([_compare(view, measure, *pair, level) for pair in pairs])
        each = [_compare(view, measure, *pair, strict) for pair in pairs]
        # The comparisons share pictures, and often models: their errors may all go one way.
        value, low, high = (float(end) for end in plain.mean(axis=0))
        means[measure] = value, low, high
        compared += [
            Compared(measure, *_named(view, pair), *ends)
            for pair, ends in zip(pairs, each, strict=True)
        ]
        signs.append(
            sign(hypothesis.expect, hypothesis.margin, (low, high), [ends[1:] for ends in each])
        )
    together: Sign = "not established"
    if "-" in signs:
        together = "-"
    elif set(signs) == {"+"}:
        together = "+"
    return Finding(hypothesis.name, dataset.name, together, means, tuple(compared))


_Rows = tuple[int, ...]


def _expand(grid: Grid, comparison: Comparison, needed: set[str]) -> list[tuple[_Rows, _Rows]]:
    """Return the comparison's models as rows that were measured; nothing if a side lacks."""
    with_ = _measured(grid, comparison.with_, needed)
    without = _measured(grid, comparison.without, needed)
    if not with_ or (comparison.without and not without):
        return []
    return [((row,), without) for row in with_] if comparison.each else [(with_, without)]


def _measured(grid: Grid, patterns: Sequence[str], needed: set[str]) -> _Rows:
    mask = grid.mask(patterns, lenient=True)
    for setting in needed:
        mask &= np.isfinite(grid.column(setting))
    return tuple(int(row) for row in np.flatnonzero(mask))


def _named(view: _View, pair: tuple[_Rows, _Rows]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    with_, without = (tuple(view.grid.models[row] for row in rows) for rows in pair)
    return with_, without


def _compare(view: _View, measure: Measure, with_: _Rows, without: _Rows, level: float) -> _Ends:
    value, low, high = _mean(view, measure, with_, level)
    if not without:
        return value, low, high
    base, base_low, base_high = _mean(view, measure, without, level)
    found = difference(
        np.array(value),
        (np.array(low), np.array(high)),
        np.array(base),
        (np.array(base_low), np.array(base_high)),
    )
    gained, gained_low, gained_high = (float(end) for end in found)
    return gained, gained_low, gained_high


def _mean(view: _View, measure: Measure, rows: _Rows, level: float) -> _Ends:
    """Return the mean of a measure over models, with the mean of the intervals' ends."""
    grid, at = view.grid, np.array(rows)
    clean, shifted = grid.column(view.clean)[at], grid.column(view.shifted)[at]
    n_clean, n_shifted = grid.pictures(view.clean)[at], grid.pictures(view.shifted)[at]
    if measure == "effective":
        assert view.fit is not None
        found = effective_robustness(view.fit, clean, shifted, n_clean, n_shifted, level=level)
    else:
        interval = accuracy_interval(shifted, n_shifted, level)
        found = (shifted, *interval)
        if measure == "gap":
            found = difference(shifted, interval, clean, accuracy_interval(clean, n_clean, level))
    value, low, high = (float(end.mean()) for end in found)
    return value, low, high


# Declarations.


def declaration(path: str | Path | None = None) -> Declaration:
    """Read a declaration from TOML; by default the seven of "The Many Faces of Robustness".

    >>> [hypothesis.name for hypothesis in declaration().hypotheses][:2]
    ['Larger Models', 'Self-Attention']
    """
    if path is None:
        text = (resources.files("shiftbed.studies") / "many-faces.toml").read_text("utf-8")
        return _declared(tomllib.loads(text), "many-faces.toml")
    path = Path(path)
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise InputError(f"{path} is too large for a declaration of hypotheses")
    except OSError as problem:
        raise InputError(f"cannot read {path} ({problem.strerror})") from None
    return _declared(read_toml(path), path.name)


def _declared(content: Mapping[str, Any], file: str) -> Declaration:
    _only(content, {"title", "dataset", "hypothesis"}, file)
    datasets = []
    for entry in _entries(content, "dataset", file):
        where = f"{file}, dataset {entry.get('name', '?')!r}"
        _only(entry, {"name", "clean", "shifted"}, where)
        datasets.append(
            Dataset(
                _text(entry, "name", where),
                _text(entry, "clean", where),
                _texts(entry, "shifted", where),
            )
        )
    hypotheses = []
    for entry in _entries(content, "hypothesis", file):
        where = f"{file}, hypothesis {entry.get('name', '?')!r}"
        _only(entry, {"name", "claim", "expect", "measure", "margin", "datasets", "compare"}, where)
        expect = _choice(_text(entry, "expect", where), get_args(Expectation), where)
        measures = tuple(
            _choice(measure, get_args(Measure), where)
            for measure in _texts({"measure": "accuracy", **entry}, "measure", where)
        )
        margin = entry.get("margin", 0.0)
        if isinstance(margin, bool) or not isinstance(margin, int | float) or not 0 <= margin < 1:
            raise InputError(f"{where}: margin is {margin!r}; expected a fraction, like 0.01")
        if expect == "same" and margin == 0:
            raise InputError(
                f"{where}: nothing is ever exactly the same; give the margin up to which a "
                "difference does not count, like margin = 0.01"
            )
        about = None
        if "datasets" in entry:
            about = _texts(entry, "datasets", where)
            for name in about:
                if name not in {dataset.name for dataset in datasets}:
                    raise unknown("dataset", name, [dataset.name for dataset in datasets])
        hypotheses.append(
            Hypothesis(
                _text(entry, "name", where),
                str(entry.get("claim", "")),
                expect,
                measures,
                _comparisons(entry, measures, where),
                float(margin),
                about,
            )
        )
    return Declaration(str(content.get("title", file)), tuple(datasets), tuple(hypotheses))


def _comparisons(
    entry: Mapping[str, Any], measures: Sequence[str], where: str
) -> tuple[Comparison, ...]:
    comparisons = []
    for item in _entries(entry, "compare", where):
        _only(item, {"with", "each", "without"}, where)
        if ("with" in item) == ("each" in item):
            raise InputError(
                f"{where}: a comparison names models with something, either their mean "
                "(with = ...) or every one (each = ...)"
            )
        key = "with" if "with" in item else "each"
        without = _texts(item, "without", where) if "without" in item else ()
        if not without and set(measures) != {"effective"}:
            raise InputError(
                f"{where}: a comparison needs models without; only effective robustness is "
                "measured against the baseline"
            )
        comparisons.append(Comparison(_texts(item, key, where), without, key == "each"))
    return tuple(comparisons)


def _only(entry: Mapping[str, Any], known: set[str], where: str) -> None:
    for key in entry:
        if key not in known:
            raise InputError(f"{where}: {unknown('key', key, known)}")


def _entries(content: Mapping[str, Any], key: str, where: str) -> list[Mapping[str, Any]]:
    entries = content.get(key)
    if (
        not isinstance(entries, list)
        or not entries
        or not all(isinstance(entry, dict) for entry in entries)
    ):
        raise InputError(f"{where} declares no {key}; expected at least one table of that name")
    return entries


def _text(entry: Mapping[str, Any], key: str, where: str) -> str:
    value = entry.get(key)
    if not isinstance(value, str) or not value:
        raise InputError(f"{where}: {key} is {value!r}; expected a text")
    return value


def _texts(entry: Mapping[str, Any], key: str, where: str) -> tuple[str, ...]:
    value = entry.get(key)
    values = [value] if isinstance(value, str) else value
    if (
        not isinstance(values, list)
        or not values
        or not all(isinstance(item, str) and item for item in values)
    ):
        raise InputError(f"{where}: {key} is {value!r}; expected a text or a list of texts")
    return tuple(values)


def _choice(value: str, choices: tuple[Any, ...], where: str) -> Any:
    if value not in choices:
        raise InputError(f"{where}: {unknown('choice', value, choices)}")
    return value


# The paper's own tables.


def many_faces_grid() -> Grid:
    """Return the results that "The Many Faces of Robustness" prints, as a grid.

    ImageNet-C's are printed as corruption errors without decimals; AlexNet's errors turn them
    back into accuracies, to half a point. DeepFashion Remixed has mAP, which has no n.

    >>> grid = many_faces_grid()
    >>> round(1 - grid.column("imagenet-r")[grid.row("ResNet-152")], 3)
    np.float64(0.587)
    """
    cells: dict[tuple[str, str], tuple[float, float]] = {}

    def add(table: str, column: str, setting: str, n: float, scale: float = -1.0) -> None:
        for row in published.table(table).rows:
            value = row[column]
            if isinstance(value, float):
                accuracy = (value if scale > 0 else 100 + scale * value) / 100
                cells[str(row["model"]), setting] = accuracy, n

    add("many-faces-table-7", "imagenet_200_error", "imagenet-val.imagenet-r-classes", 10_000)
    add("many-faces-table-7", "imagenet_r_error", "imagenet-r", 30_000)
    add("many-faces-table-8", "clean_error", "imagenet-val", 50_000)
    for corruption, error in published.alexnet_errors().items():
        add("many-faces-table-8", corruption, f"imagenet-c.{corruption}", 50_000, -error)
    add("many-faces-table-5", "real_blurry_images", "real-blurry-images", 1_000)
    for column, setting in {
        "iid": "svsf.iid",
        "old_hardware": "svsf.old-camera",
        "year_2017": "svsf.2017",
        "year_2018": "svsf.2018",
        "france": "svsf.france",
    }.items():
        add("many-faces-table-2", column, setting, 10_000)
    fashion = published.table("many-faces-table-3")
    for column in fashion.columns[2:]:
        if column != "ood":
            name = f"deepfashion-remixed.{column.replace('_', '-')}"
            add(fashion.name, column, name, np.nan, scale=1.0)
    add("many-faces-table-9", "imagenet_a_accuracy", "imagenet-a", 7_500, scale=1.0)

    models = list(dict.fromkeys(model for model, _ in cells))
    settings = list(dict.fromkeys(setting for _, setting in cells))
    at = [
        [cells.get((model, setting), (np.nan, np.nan)) for setting in settings] for model in models
    ]
    accuracy, n = np.array(at).transpose(2, 0, 1)
    return Grid.of(models, settings, accuracy, n)
