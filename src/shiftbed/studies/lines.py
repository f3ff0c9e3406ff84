"""Least squares and its bootstrap, for many lines at once.

A resample of m models is m counts, how often each was drawn. A least-squares coefficient is a
weighted sum of the y, with weights that depend on the x and the counts alone. So a thousand
resamples of two hundred lines through the same x cost a thousand inverses of 2 x 2 matrices and
one matrix product.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit, ndtr, ndtri

from shiftbed.errors import unknown

__all__ = [
    "Scale",
    "drawn_rows",
    "fit_hinges",
    "from_scale",
    "hinge",
    "line",
    "resample_counts",
    "solve_resamples",
    "to_scale",
]

FloatArray = npt.NDArray[np.float64]

#: How accuracies are laid out before a line is fitted: as they are, by the logarithm of their
#: odds, or by the normal distribution's quantile.
Scale = Literal["linear", "logit", "probit"]

#: Accuracies this close to 0 or 1 stay finite in every scale.
_EDGE = 1e-12

#: More places than this for a knee would tell it no better than the models do.
_MOST_KNEES = 96


def to_scale(
    accuracy: npt.ArrayLike, scale: Scale, n: npt.ArrayLike | float = np.inf
) -> FloatArray:
    """Lay out accuracies in a scale.

    0 and 1 have no finite place in logit and probit scale. With ``n`` known, an accuracy
    stays half a picture away from both: 0 of n counts as 0.5/n. Others are not moved.

    >>> to_scale([0.5, 0.0], "logit", n=1000).round(2)
    array([ 0. , -7.6])
    """
    if scale not in get_args(Scale):
        raise unknown("scale", scale, get_args(Scale))
    values = np.asarray(accuracy, float)
    if scale == "linear":
        return values
    edge = np.maximum(_EDGE, 0.5 / np.where(np.isnan(n), np.inf, n))
    inside: FloatArray = np.clip(values, edge, 1 - edge)
    placed: FloatArray = logit(inside) if scale == "logit" else ndtri(inside)
    return placed


def from_scale(values: npt.ArrayLike, scale: Scale) -> FloatArray:
    """Return accuracies from their places in a scale.

    >>> from_scale(to_scale([0.25, 0.9], "probit"), "probit").round(6)
    array([0.25, 0.9 ])
    """
    values = np.asarray(values, float)
    if scale == "linear":
        return values
    back: FloatArray = expit(values) if scale == "logit" else ndtr(values)
    return back


def line(x: FloatArray) -> FloatArray:
    """Return the terms of a straight line at x: (N, 2)."""
    return np.column_stack([np.ones_like(x), x])


def hinge(x: FloatArray, knee: float) -> FloatArray:
    """Return the terms of two lines that meet at ``knee``: level there, slopes below and above.

    >>> hinge(np.array([1.0, 4.0]), knee=3.0)
    array([[ 1., -2.,  0.],
           [ 1.,  0.,  1.]])
    """
    return np.column_stack([np.ones_like(x), np.minimum(x - knee, 0), np.maximum(x - knee, 0)])


def resample_counts(terms: FloatArray, resamples: int, seed: int) -> FloatArray:
    """Return how often each row is in the data itself, then in bootstrap resamples of it.

    The answer is (1 + resamples, N), with ones in the first row. A resample through which no
    line can be laid, such as one model drawn N times, is drawn again; otherwise the draws depend
    on nothing but N and ``seed``.

    >>> resample_counts(line(np.array([0.0, 1.0, 2.0])), resamples=2, seed=0)
    array([[1., 1., 1.],
           [0., 2., 1.],
           [0., 1., 2.]])
    """
    m = len(terms)
    counts = _first_counts(m, resamples, seed)
    stuck = np.flatnonzero(_degenerate(terms, counts))
    if len(stuck):
        counts = counts.copy()
        again = np.random.default_rng([seed, 1])
    while len(stuck):
        counts[stuck] = _counts(again.integers(0, m, (len(stuck), m)))
        stuck = stuck[_degenerate(terms, counts[stuck])]
    return counts


def drawn_rows(m: int, resamples: int, seed: int) -> npt.NDArray[np.int64]:
    """Return the rows that each resample of m rows draws, before any redraw."""
    return np.random.default_rng(seed).integers(0, m, (resamples, m))


@lru_cache(maxsize=8)
def _first_counts(m: int, resamples: int, seed: int) -> FloatArray:
    counts = np.vstack([np.ones(m), _counts(drawn_rows(m, resamples, seed))])
    counts.flags.writeable = False
    return counts


def _counts(drawn: npt.NDArray[np.int64]) -> FloatArray:
    resamples, m = drawn.shape
    flat = (drawn + m * np.arange(resamples)[:, None]).ravel()
    return np.bincount(flat, minlength=resamples * m).reshape(resamples, m).astype(float)


def _degenerate(terms: FloatArray, counts: FloatArray) -> npt.NDArray[np.bool_]:
    # The determinant of the correlations of the terms, which no change of units moves.
    gram = _gram(terms, counts)
    size = np.sqrt(np.einsum("rpp->rp", gram))
    safe = np.where(size > 0, size, 1)
    determinant = np.linalg.det(gram / safe[:, :, None] / safe[:, None, :])
    result: npt.NDArray[np.bool_] = (size == 0).any(axis=1) | (determinant < 1e-10)
    return result


def _gram(terms: FloatArray, counts: FloatArray) -> FloatArray:
    m, p = terms.shape
    products = (terms[:, :, None] * terms[:, None, :]).reshape(m, p * p)
    gram: FloatArray = (counts @ products).reshape(len(counts), p, p)
    return gram


def solve_resamples(terms: FloatArray, y: FloatArray, counts: FloatArray) -> FloatArray:
    """Return the least-squares coefficients of each resample for each column of ``y``.

    ``terms`` is (N, p), ``y`` (N, S), ``counts`` (R, N); the answer is (R, p, S). A single
    resample of all ones is the fit itself.

    >>> x = np.array([0.0, 1.0, 2.0])
    >>> solve_resamples(line(x), np.array([[1.0], [3.0], [5.0]]), np.ones((1, 3))).round(9)[0, :, 0]
    array([1., 2.])
    """
    products = (terms[:, :, None] * y[:, None, :]).reshape(len(terms), -1)
    moments = (counts @ products).reshape(len(counts), terms.shape[1], y.shape[1])
    return np.asarray(np.linalg.solve(_gram(terms, counts), moments), np.float64)


def fit_hinges(x: FloatArray, y: FloatArray, counts: FloatArray) -> FloatArray:
    """Return each resample's best level at the knee, slopes below and above, and knee: (R, 4).

    The knee is sought among the places of the data and half-way between them, with at least
    two different x on either side.

    >>> x = np.arange(10.0)
    >>> fit_hinges(x, np.maximum(x - 6, 0) * 3, np.ones((1, 10))).round(6) + 0.0
    array([[0., 0., 3., 6.]])
    """
    places = np.unique(x)
    candidates = np.sort(np.concatenate([places, (places[1:] + places[:-1]) / 2]))[3:-3]
    if len(candidates) > _MOST_KNEES:
        thinned = np.linspace(0, len(candidates) - 1, _MOST_KNEES).round().astype(int)
        candidates = candidates[thinned]
    # A resample that bends nowhere is a line: a knee at 0 that changes nothing.
    straight = solve_resamples(line(x), y[:, None], counts)[:, :, 0]
    best = np.column_stack([straight, straight[:, 1], np.zeros(len(counts))])
    least = _squared_errors(line(x), y, counts, straight)
    for knee in candidates:
        terms = hinge(x, knee)
        sound = ~_degenerate(terms, counts)
        solved = solve_resamples(terms, y[:, None], counts[sound])[:, :, 0]
        errors = np.full(len(counts), np.inf)
        errors[sound] = _squared_errors(terms, y, counts[sound], solved)
        better = errors < least
        least[better] = errors[better]
        best[better] = np.column_stack([solved, np.full(len(solved), knee)])[better[sound]]
    return best


def _squared_errors(
    terms: FloatArray, y: FloatArray, counts: FloatArray, coefficients: FloatArray
) -> FloatArray:
    total: FloatArray = (counts * (y - coefficients @ terms.T) ** 2).sum(axis=1)
    return total
