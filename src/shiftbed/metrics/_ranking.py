"""Average precision, and what each picture contributes to it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


def average_precision(
    scores: FloatArray, positive: npt.NDArray[np.bool_]
) -> tuple[float, FloatArray]:
    """Return the average precision and its influence function at every picture.

    The precision at each distinct score is weighted by the share of positives that have
    it, as in scikit-learn: no interpolation, and equal scores are one step, so the order
    of the pictures cannot matter. The influences average zero, and their spread gives the
    standard error (the infinitesimal jackknife).
    """
    _, step = np.unique(-scores, return_inverse=True)
    n, hits = len(scores), np.bincount(step, weights=positive)
    total = hits.sum()
    taken = np.cumsum(np.bincount(step))
    precision = np.cumsum(hits) / taken
    value = float(hits @ precision / total)
    # A picture raises or lowers the precision at every score that is not above its own.
    reach = np.cumsum((hits / taken)[::-1])[::-1]
    pull = np.cumsum((hits * precision / taken)[::-1])[::-1]
    influence = positive * (precision[step] - value + reach[step]) - pull[step]
    return value, influence * n / total
