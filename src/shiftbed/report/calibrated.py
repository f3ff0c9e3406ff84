"""What confidence is worth: reliability, answering less often, and telling anomalies apart."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from shiftbed import metrics
from shiftbed.errors import InputError
from shiftbed.metrics import Estimate, Reliability
from shiftbed.report.sources import Sources

__all__ = ["anomalies", "calibration", "estimated", "reliability_diagram"]

#: A diagram has about so many bins, each of at least that many pictures where there are enough.
_BINS, _LEAST = 15, 100
#: Places along a response-rate accuracy curve.
_RATES = 50
#: Bars of a histogram of confidences.
_BARS = 25


def estimated(estimate: Estimate) -> dict[str, float | int]:
    """Return an estimate as plain numbers.

    >>> estimated(Estimate(0.5, 0.4, 0.6, 100))
    {'value': 0.5, 'low': 0.4, 'high': 0.6, 'n': 100}
    """
    value, low, high = (float(end) for end in (estimate.value, estimate.low, estimate.high))
    return {"value": value, "low": low, "high": high, "n": estimate.n}


def reliability_diagram(sources: Sources, model: str, setting: str) -> Reliability | None:
    """Return the reliability diagram of a measured cell, or None where it has no labels."""
    found = sources.answers(model, setting)
    if found is None:
        return None
    sure, right = found
    size = max(min(_LEAST, len(sure) // 5), len(sure) // _BINS, 1)
    return metrics.reliability(sure, right, size, sources.level)


def calibration(sources: Sources) -> list[dict[str, Any]]:
    """Return, for each measured and labelled cell, its two curves and the numbers on them."""
    return [
        found
        for model, setting in sorted(sources.manifests)
        if (found := _calibrated(sources, model, setting)) is not None
    ]


def _calibrated(sources: Sources, model: str, setting: str) -> dict[str, Any] | None:
    found = sources.answers(model, setting)
    diagram = reliability_diagram(sources, model, setting)
    if found is None or diagram is None or len(found[0]) < 2:
        return None
    sure, right = found
    rate, accuracy = metrics.response_rate_accuracy(sure, right)
    at = np.unique(np.linspace(0, len(rate) - 1, _RATES).round().astype(int))
    answered = at + 1
    low, high = metrics.clopper_pearson(accuracy[at] * answered, answered, sources.level)
    columns = (diagram.confidence, diagram.accuracy, diagram.low, diagram.high, diagram.n)
    level = sources.level
    return {
        "model": model,
        "setting": setting,
        "reliability": [[float(value) for value in column] for column in columns],
        "response": [column.tolist() for column in (rate[at], accuracy[at], low, high, answered)],
        "error": estimated(metrics.calibration_error(sure, right, level=level)),
        "aurra": estimated(metrics.aurra(sure, right, level)),
    }


def anomalies(sources: Sources) -> list[dict[str, Any]]:
    """Return, for each measured cell of anomalous pictures, two histograms and the AUPR."""
    return list(_anomalies(sources))


def _anomalies(sources: Sources) -> Iterator[dict[str, Any]]:
    edges = np.linspace(0, 1, _BARS + 1)
    for (model, setting), manifest in sorted(sources.manifests.items()):
        if manifest.metric != "aupr":
            continue
        usual = str(manifest.spec.get("usual"))
        try:
            found = sources.results.detection(model, setting, level=sources.level)
        except InputError:
            continue
        counts = [
            np.histogram(sources.results.rows(one)["confidence"].to_numpy(), edges)[0].tolist()
            for one in (sources.manifests[model, usual], manifest)
        ]
        yield {
            "model": model,
            "setting": setting,
            "usual": usual,
            "edges": edges.tolist(),
            "counts": counts,
            "chance": found.prevalence,
            "aupr": estimated(found.aupr),
            "auroc": estimated(found.auroc),
            "fpr95": estimated(found.fpr95),
        }
