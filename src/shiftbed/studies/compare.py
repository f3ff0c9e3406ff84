"""Two models on the same pictures: which is better where, after looking everywhere."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import numpy as np

from shiftbed.errors import InputError, unknown
from shiftbed.metrics import (
    corruption_error_difference,
    holm,
    mcnemar,
    paired_difference,
    same_pictures,
)
from shiftbed.studies.grid import Grid
from shiftbed.studies.robustness import accuracy_interval, difference
from shiftbed.studies.scoring import benchmarks

if TYPE_CHECKING:
    import pyarrow as pa

    from shiftbed.results import Results

__all__ = ["compare", "compare_corruptions", "worse"]


def compare(
    results: Results,
    first: str,
    second: str,
    *,
    other: Results | None = None,
    settings: Sequence[str] = (),
    level: float = 0.95,
) -> pa.Table:
    """Return, for each setting that both models have, how they differ.

    Where both were measured the test is McNemar's exact one and the interval a paired
    bootstrap, over the same pictures; p-values are Holm's over all settings, so that one
    setting in many does not pass for a difference by chance. Imported cells have accuracies
    alone: no test, and the interval of two independent samples, which is rather too wide.

    ``other`` has the second model, unless it is in the same results. ``better`` is the model
    that is better at this ``level``, or null.
    """
    import pyarrow as pa

    other = results if other is None else other
    grid = Grid.from_cells(results.cells())
    other_grid = grid if other is results else Grid.from_cells(other.cells())
    row, other_row = grid.row(first), other_grid.row(second)
    if first == second and other is results:
        raise InputError(f"{first} is compared with itself; name two models")
    common = [
        setting
        for setting in grid.settings
        if setting in other_grid
        and np.isfinite(grid.column(setting)[row])
        and np.isfinite(other_grid.column(setting)[other_row])
    ]
    if not common:
        raise InputError(f"there is no setting that both {first} and {second} were measured on")
    for pattern in settings:
        if not any(fnmatchcase(setting, pattern) for setting in common):
            raise unknown(f"setting of both {first} and {second}", pattern, common)
    chosen = [s for s in common if not settings or any(fnmatchcase(s, p) for p in settings)]

    predicted, other_predicted = _labelled(results, first), _labelled(other, second)
    rows: list[dict[str, Any]] = []
    for setting in chosen:
        a, b = grid.column(setting)[row], other_grid.column(setting)[other_row]
        found: dict[str, Any] = {"setting": setting, "first": a, "second": b}
        if setting in predicted and setting in other_predicted:
            ours, theirs = _paired(results, first, other, second, setting)
            test = mcnemar(ours, theirs)
            gained = paired_difference(ours, theirs, level)
            found |= {
                "difference": gained.value,
                "low": gained.low,
                "high": gained.high,
                "n": gained.n,
                "only_first": test.only_first,
                "only_second": test.only_second,
                "p": test.p_value,
            }
        else:
            n, other_n = grid.pictures(setting)[row], other_grid.pictures(setting)[other_row]
            intervals = accuracy_interval(a, n, level), accuracy_interval(b, other_n, level)
            value, low, high = difference(a, intervals[0], b, intervals[1])
            found |= {
                "difference": float(value),
                "low": None if np.isnan(low) else float(low),
                "high": None if np.isnan(high) else float(high),
                "n": None if np.isnan(n) else int(n),
            }
        rows.append(found)

    tested = [found for found in rows if "p" in found]
    if tested:
        corrected = holm([found["p"] for found in tested])
        for found, p in zip(tested, corrected, strict=True):
            found["p_holm"] = float(p)
    for found in rows:
        if "p_holm" in found:
            apart = found["p_holm"] < 1 - level
        else:
            apart = found["low"] is not None and not found["low"] <= 0 <= found["high"]
        found["better"] = (first if found["difference"] > 0 else second) if apart else None
    numbers = ("first", "second", "difference", "low", "high", "p", "p_holm")
    counts = ("n", "only_first", "only_second")
    schema = pa.schema(
        [
            ("setting", pa.string()),
            *[(name, pa.float64()) for name in numbers],
            *[(name, pa.int64()) for name in counts],
            ("better", pa.string()),
        ]
    )
    return pa.Table.from_pylist(rows, schema=schema)


def compare_corruptions(
    results: Results,
    first: str,
    second: str,
    *,
    other: Results | None = None,
    level: float = 0.95,
) -> pa.Table:
    """Return, for each corruption benchmark that both models have, how their mCEs differ.

    ``mce`` is the first model's corruption error in units of the second's, averaged over
    corruptions; ``difference`` is that less 1, with an interval and a p-value over pictures,
    paired: what both models find hard counts for neither. Only cells with predictions count.
    """
    import pyarrow as pa

    other = results if other is None else other
    common = _labelled(results, first) & _labelled(other, second)
    rows: list[dict[str, Any]] = []
    for benchmark in benchmarks(sorted(common)):
        steps = benchmark.settings
        row: dict[str, Any] = {"on": benchmark.name, "corruptions": len(steps)}
        try:
            for name, settings in steps.items():
                if len(settings) != benchmark.severities:
                    raise InputError(
                        f"{name} has {len(settings)} of {benchmark.severities} severities"
                    )
            pairs = {
                name: [_paired(results, first, other, second, one) for one in settings]
                for name, settings in steps.items()
            }
            change, p = corruption_error_difference(
                {name: [~ours for ours, _ in both] for name, both in pairs.items()},
                {name: [~theirs for _, theirs in both] for name, both in pairs.items()},
                level,
            )
        except InputError as problem:
            rows.append({**row, "note": str(problem)})
            continue
        better = (first if change.value < 0 else second) if p < 1 - level else None
        rows.append(
            {
                **row,
                "mce": 1 + change.value,
                "difference": change.value,
                "low": change.low,
                "high": change.high,
                "n": change.n,
                "p": p,
                "better": better,
            }
        )
    numbers = ("mce", "difference", "low", "high", "p")
    schema = pa.schema(
        [
            ("on", pa.string()),
            ("corruptions", pa.int64()),
            *[(name, pa.float64()) for name in numbers],
            ("n", pa.int64()),
            ("better", pa.string()),
            ("note", pa.string()),
        ]
    )
    return pa.Table.from_pylist(rows, schema=schema)


def worse(compared: pa.Table, corruptions: pa.Table, second: str) -> list[str]:
    """Return where the second model is established to be better: what fails a pull request.

    That is on the corruption benchmarks by mCE, and on every setting that is in none of them
    by accuracy: single corruptions of a benchmark do not count twice.
    """
    judged = {row["on"] for row in corruptions.to_pylist() if row["note"] is None}
    found = [row["on"] for row in corruptions.to_pylist() if row["better"] == second]
    rows = compared.to_pylist()
    within = {
        name
        for benchmark in benchmarks([row["setting"] for row in rows])
        if benchmark.name in judged
        for names in benchmark.settings.values()
        for name in names
    }
    return found + [
        row["setting"] for row in rows if row["better"] == second and row["setting"] not in within
    ]


def _labelled(results: Results, model: str) -> set[str]:
    return {
        manifest.identity.setting
        for manifest in results.manifests()
        if manifest.identity.model == model and manifest.metric == "top1" and manifest.complete
    }


def _paired(results: Results, first: str, other: Results, second: str, setting: str) -> Any:
    """Return what each model got right, picture by picture."""
    a = results.predictions(first, setting).sort_by("picture")
    b = other.predictions(second, setting)
    try:
        order = same_pictures(a["picture"].to_pylist(), b["picture"].to_pylist())
    except InputError as problem:
        raise InputError(f"{first} and {second} on {setting}: {problem}") from None
    return a["rank_true"].to_numpy() == 1, b["rank_true"].to_numpy()[order] == 1
