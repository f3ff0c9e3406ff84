"""Scoring pictures that have several labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from shiftbed.errors import InputError
from shiftbed.metrics import _check
from shiftbed.metrics._ranking import average_precision
from shiftbed.metrics.estimate import Estimate, bounded

__all__ = ["MeanAveragePrecision", "mean_average_precision"]


@dataclass(frozen=True, slots=True)
class MeanAveragePrecision:
    """The mean over classes of average precision, and each class's own."""

    mean: Estimate
    each: tuple[Estimate, ...]


def mean_average_precision(
    scores: npt.ArrayLike, labels: npt.ArrayLike, level: float = 0.95
) -> MeanAveragePrecision:
    """Return the mAP: the mean over classes of average precision over pictures.

    Both arrays have one row per picture and one column per class: the score, and whether
    the picture has the label. Average precision does not exist for a class that no
    picture has, so such a column is refused: leave it out. The intervals are logit ones
    with the infinitesimal jackknife's standard error over pictures.

    >>> result = mean_average_precision(
    ...     [[0.9, 0.2], [0.8, 0.7], [0.1, 0.6], [0.3, 0.1]],
    ...     [[1, 0], [0, 1], [1, 0], [0, 0]],
    ... )
    >>> [f"{estimate.value:.2f}" for estimate in (*result.each, result.mean)]
    ['0.75', '1.00', '0.88']
    """
    given = _check.finite(scores, "the scores", ndim=2)
    truth = _check.truths(labels, "the labels", ndim=2)
    n = _check.same_length(scores=given, labels=truth)
    if given.shape != truth.shape:
        raise InputError(
            f"scores and labels must have the same classes; given are {given.shape[1]} and "
            f"{truth.shape[1]} columns"
        )
    if n < 2:
        raise InputError("an interval over pictures needs at least two pictures")
    positives = truth.sum(axis=0)
    absent = np.flatnonzero(positives == 0)
    if len(absent) or not len(positives):
        named = f"class {absent[0]} has none" if len(absent) else "there are no classes"
        raise InputError(f"average precision needs a picture with each label; {named}")
    values, influences = zip(
        *(average_precision(given[:, c], truth[:, c]) for c in range(given.shape[1])), strict=True
    )

    def estimate(value: float, influence: npt.NDArray[np.float64], trials: int) -> Estimate:
        return bounded(value, float(influence.std(ddof=1) / np.sqrt(n)), n, level, trials)

    each = tuple(map(estimate, values, influences, (int(p) for p in positives)))
    overall = np.mean(influences, axis=0)
    return MeanAveragePrecision(
        estimate(float(np.mean(values)), overall, int(positives.min())), each
    )
