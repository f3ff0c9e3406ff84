"""Telling anomalous pictures from usual ones.

The anomalous class is the positive one, and a higher score means more anomalous. Both are
settled by names rather than by order: every function takes ``usual=`` and ``anomalous=``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.special import log_softmax, logsumexp

from shiftbed.errors import InputError
from shiftbed.metrics import _check
from shiftbed.metrics._ranking import average_precision
from shiftbed.metrics.estimate import Estimate, bounded, check_level, clopper_pearson

__all__ = [
    "ANOMALY_SCORES",
    "Detection",
    "aupr",
    "auroc",
    "detection",
    "energy",
    "entropy",
    "fpr_at_recall",
    "max_logit",
    "max_softmax",
]

FloatArray = npt.NDArray[np.float64]


def max_softmax(logits: npt.ArrayLike) -> FloatArray:
    """Score pictures by the negative of their largest softmax probability.

    >>> max_softmax([[0.0, 0.0], [9.0, 0.0]]).round(4)
    array([-0.5   , -0.9999])
    """
    values = _check.logits(logits)
    return np.asarray(-np.exp(values.max(axis=1) - logsumexp(values, axis=1)))


def max_logit(logits: npt.ArrayLike) -> FloatArray:
    """Score pictures by the negative of their largest logit.

    >>> max_logit([[0.0, 0.0], [9.0, 0.0]])
    array([-0., -9.])
    """
    return np.asarray(-_check.logits(logits).max(axis=1))


def energy(logits: npt.ArrayLike) -> FloatArray:
    """Score pictures by their free energy, ``-log sum exp(logits)``.

    >>> energy([[0.0, 0.0], [9.0, 0.0]]).round(4)
    array([-0.6931, -9.0001])
    """
    return np.asarray(-logsumexp(_check.logits(logits), axis=1))


def entropy(logits: npt.ArrayLike) -> FloatArray:
    """Score pictures by the entropy of their softmax, in nats.

    >>> entropy([[0.0, 0.0], [9.0, 0.0]]).round(4)
    array([0.6931, 0.0012])
    """
    log_p = log_softmax(_check.logits(logits), axis=1)
    return np.asarray(-(np.exp(log_p) * log_p).sum(axis=1))


#: Every score by its name; each turns logits into one number per picture.
ANOMALY_SCORES: Final[dict[str, Callable[[npt.ArrayLike], FloatArray]]] = {
    "max-softmax": max_softmax,
    "max-logit": max_logit,
    "energy": energy,
    "entropy": entropy,
}


@dataclass(frozen=True, slots=True)
class Detection:
    """How well a score tells anomalous pictures from usual ones.

    ``prevalence`` is the share of anomalous pictures. It is also the AUPR of a score that
    knows nothing: an AUPR is only to be compared with another at the same prevalence.
    """

    aupr: Estimate
    auroc: Estimate
    fpr95: Estimate
    prevalence: float


def detection(*, usual: npt.ArrayLike, anomalous: npt.ArrayLike, level: float = 0.95) -> Detection:
    """Return AUPR, AUROC and FPR95, with the prevalence that the AUPR depends on.

    >>> found = detection(usual=[0.1, 0.2, 0.3, 0.5], anomalous=[0.4, 0.9])
    >>> print(f"{found.aupr.value:.3f}, by chance {found.prevalence:.3f}")
    0.833, by chance 0.333
    """
    low, high = _scores(usual, anomalous)
    return Detection(
        aupr(usual=low, anomalous=high, level=level),
        auroc(usual=low, anomalous=high, level=level),
        fpr_at_recall(usual=low, anomalous=high, level=level),
        len(high) / (len(low) + len(high)),
    )


def aupr(*, usual: npt.ArrayLike, anomalous: npt.ArrayLike, level: float = 0.95) -> Estimate:
    """Return the area under the precision-recall curve, as average precision.

    The interval is a logit one, with the infinitesimal jackknife's standard error over
    the two samples, each of a fixed size. If every anomalous picture scores above every
    usual one, it is that of as many right answers as the smaller sample has pictures.

    >>> print(aupr(usual=np.arange(0.0, 100), anomalous=np.arange(50.0, 150)))
    88.6% [83.9, 92.0], n = 200
    """
    low, high = _scores(usual, anomalous)
    n = len(low) + len(high)
    positive = np.arange(n) >= len(low)
    value, influence = average_precision(np.concatenate([low, high]), positive)
    parts = [influence[positive], influence[~positive]]
    standard_error = float(np.sqrt(sum(part.var(ddof=1) * len(part) for part in parts)) / n)
    return bounded(value, standard_error, n, level, min(len(low), len(high)))


def auroc(*, usual: npt.ArrayLike, anomalous: npt.ArrayLike, level: float = 0.95) -> Estimate:
    """Return the probability that an anomalous picture scores above a usual one.

    Equal scores count a half. The interval is a logit one with DeLong's standard error;
    with perfect separation, that of as many right answers as the smaller sample has.

    >>> print(auroc(usual=np.arange(0.0, 100), anomalous=np.arange(50.0, 150)))
    87.5% [82.3, 91.3], n = 200
    """
    low, high = _scores(usual, anomalous)
    above = _rank(low, high) / len(low)
    below = 1 - _rank(high, low) / len(high)
    variance = above.var(ddof=1) / len(high) + below.var(ddof=1) / len(low)
    smaller = min(len(low), len(high))
    n = len(low) + len(high)
    return bounded(float(above.mean()), float(np.sqrt(variance)), n, level, smaller)


def fpr_at_recall(
    *,
    usual: npt.ArrayLike,
    anomalous: npt.ArrayLike,
    recall: float = 0.95,
    level: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
) -> Estimate:
    """Return the share of usual pictures flagged when ``recall`` of the anomalous ones are.

    The threshold is the highest that still flags enough anomalous pictures; a score
    equal to it is flagged. The interval is the percentile one of the bootstrap over both
    samples, never narrower than Clopper-Pearson's at the found threshold.

    >>> print(fpr_at_recall(usual=np.arange(0.0, 100), anomalous=np.arange(50.0, 150)))
    45.0% [34.0, 55.3], n = 200
    """
    low, high = (np.sort(scores) for scores in _scores(usual, anomalous))
    check_level(level)
    _check.at_least_one(resamples, "the number of resamples")
    if not 0 < recall <= 1:
        raise InputError(f"the recall is {recall}; it must lie above 0 and up to 1, like 0.95")
    flagged = int(np.ceil(recall * len(high) - 1e-9))
    place = len(high) - flagged

    def share(threshold: npt.ArrayLike) -> FloatArray:
        return np.asarray(1 - np.searchsorted(low, threshold) / len(low))

    value = float(share(high[place]))
    # The threshold of a resample is one of the sorted scores, at a beta-distributed place;
    # what a resample of the usual pictures then flags is binomial.
    rng = np.random.default_rng(seed)
    places = (len(high) * rng.beta(place + 1, flagged, resamples)).astype(int)
    draws = rng.binomial(len(low), share(high[places])) / len(low)
    tail = (1 - level) / 2
    ends = np.quantile(draws, [tail, 1 - tail])
    at_threshold = clopper_pearson(value * len(low), len(low), level)
    return Estimate(
        value,
        float(min(ends[0], at_threshold[0])),
        float(max(ends[1], at_threshold[1])),
        len(low) + len(high),
        level,
    )


def _scores(usual: npt.ArrayLike, anomalous: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    low = _check.finite(usual, "the scores of usual pictures")
    high = _check.finite(anomalous, "the scores of anomalous pictures")
    if min(len(low), len(high)) < 2:
        raise InputError(
            "detection needs at least two usual and two anomalous pictures; "
            f"given are {len(low)} and {len(high)}"
        )
    return low, high


def _rank(reference: FloatArray, values: FloatArray) -> FloatArray:
    """Return how many of ``reference`` lie below each value, equal ones counting half."""
    ordered = np.sort(reference)
    left, right = (np.searchsorted(ordered, values, side) for side in ("left", "right"))
    return np.asarray((left + right) / 2)
