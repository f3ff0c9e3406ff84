"""The corruption matrix: every model's error on every corruption, with intervals."""

from __future__ import annotations

from typing import Any

import numpy as np

from shiftbed.errors import InputError
from shiftbed.metrics import CorruptionErrors, Estimate
from shiftbed.report.sources import Sources
from shiftbed.studies.scoring import ALEXNET, Benchmark, corruption_errors, counted

__all__ = ["MEAN", "matrices", "matrix_of"]

#: The column that has the mean over all corruptions.
MEAN = "mean"


def matrices(sources: Sources) -> list[dict[str, Any]]:
    """Return one matrix per benchmark: errors, and corruption errors where there is a baseline.

    An entry is (value, low, high, n). A model that lacks a corruption has no mean, and a note
    says why.
    """
    return [matrix_of(sources, benchmark) for benchmark in sources.benchmarks]


def matrix_of(sources: Sources, benchmark: Benchmark) -> dict[str, Any]:
    """Return the matrix of one benchmark.

    Means are over the benchmark's own corruptions; extra ones have their column alone.
    """
    errors: dict[str, dict[str, list[float | None]]] = {}
    relative: dict[str, dict[str, list[float | None]]] = {}
    notes: dict[str, str] = {}
    refused: dict[str, str] = {}
    baseline = sources.baseline_of(benchmark)
    steps = [setting for names in benchmark.settings.values() for setting in names]
    agreement = {sources.metrics[setting] for setting in steps} == {"agreement"}
    own = [name for name in counted(benchmark) if name in benchmark.settings]
    whole = len(own) == len(counted(benchmark))
    for model in sources.grid.models:
        there = _there(sources, benchmark, model)
        lacking = [name for name in own if name not in there]
        if not there:
            continue
        if lacking:
            notes[model] = f"not measured at every severity of {', '.join(lacking)}"
        try:
            # In units of its own, an error is the error itself.
            found = _errors(sources, benchmark, model, model, there)
            errors[model] = {name: _entry(one) for name, one in found.raw.items()}
            if own and not lacking:
                mean = _errors(sources, benchmark, model, model, own).raw_mean
                errors[model][MEAN] = _entry(mean)
        except InputError as problem:
            notes[model] = str(problem)
            continue
        if agreement:
            refused[model] = "its pictures have no labels, so a change of answer is no error"
            continue
        try:
            # The published baseline needs all of the benchmark's corruptions.
            ours = None if whole or baseline is None else own
            found = _errors(sources, benchmark, model, baseline, ours)
            relative[model] = {name: _entry(one) for name, one in found.normalised.items()}
            relative[model][MEAN] = _entry(found.mean)
        except InputError as problem:
            refused[model] = str(problem)
    return {
        "name": benchmark.name,
        "clean": benchmark.clean,
        "corruptions": list(benchmark.settings),
        "averaged": own,
        "whole": whole,
        "settings": {name: list(steps) for name, steps in benchmark.settings.items()},
        "severities": benchmark.severities,
        "error": errors,
        "ce": relative,
        "baseline": baseline or ALEXNET,
        "counts": "agreement" if agreement else "accuracy",
        "notes": notes,
        "refused": refused,
    }


def _errors(
    sources: Sources,
    benchmark: Benchmark,
    model: str,
    baseline: str | None,
    corruptions: list[str] | None,
) -> CorruptionErrors:
    return corruption_errors(
        sources.results,
        sources.grid,
        benchmark,
        model,
        baseline=baseline,
        corruptions=corruptions,
        level=sources.level,
    )


def _there(sources: Sources, benchmark: Benchmark, model: str) -> list[str]:
    """Return the corruptions that a model was measured on at every severity."""
    row = sources.grid.accuracy[sources.grid.row(model)]
    return [
        name
        for name, steps in benchmark.settings.items()
        if len(steps) == benchmark.severities
        and all(np.isfinite(row[sources.grid.at(setting)]) for setting in steps)
    ]


def _entry(estimate: Estimate) -> list[float | None]:
    ends = (estimate.value, estimate.low, estimate.high)
    return [*(None if np.isnan(end) else float(end) for end in ends), estimate.n]
