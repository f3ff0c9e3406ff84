"""Comparing two models on the same pictures."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import bdtr

from shiftbed.errors import InputError
from shiftbed.metrics import _check
from shiftbed.metrics.estimate import Estimate, check_level, clopper_pearson

__all__ = ["McNemar", "holm", "mcnemar", "paired_difference", "same_pictures"]


@dataclass(frozen=True, slots=True)
class McNemar:
    """McNemar's exact test: on how many pictures only one of two models is right.

    ``p_value`` is two-sided, for the hypothesis that neither is right more often.
    """

    only_first: int
    only_second: int
    n: int
    p_value: float


def mcnemar(first: npt.ArrayLike, second: npt.ArrayLike) -> McNemar:
    """Test whether two models differ in accuracy, from what each got right.

    >>> mcnemar([1, 1, 1, 1, 1, 1, 0], [0, 0, 0, 0, 0, 0, 0]).p_value
    0.03125
    """
    ours, theirs = _pair(first, second)
    only_first, only_second = int((ours & ~theirs).sum()), int((theirs & ~ours).sum())
    apart = only_first + only_second
    p_value = min(1.0, 2 * float(bdtr(min(only_first, only_second), apart, 0.5)))
    return McNemar(only_first, only_second, len(ours), p_value)


def paired_difference(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    level: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
) -> Estimate:
    """Return the accuracy of the first model minus the second's, from what each got right.

    The interval is the percentile one of the bootstrap over pictures. Where the models
    never differ it is that of a difference never seen in n pictures.

    >>> print(paired_difference(np.arange(1000) < 760, np.arange(1000) < 740))
    2.0% [1.2, 2.9], n = 1,000
    """
    check_level(level)
    _check.at_least_one(resamples, "the number of resamples")
    ours, theirs = _pair(first, second)
    n = len(ours)
    only_first, only_second = int((ours & ~theirs).sum()), int((theirs & ~ours).sum())
    if only_first == only_second == 0:
        unseen = float(clopper_pearson(0, n, level)[1])
        return Estimate(0.0, -unseen, unseen, n, level)
    # Resampling pictures is resampling the counts of the three kinds of them.
    shares = np.array([only_first, only_second, n - only_first - only_second]) / n
    draws = np.random.default_rng(seed).multinomial(n, shares, resamples)
    tail = (1 - level) / 2
    low, high = np.quantile(draws[:, 0] - draws[:, 1], [tail, 1 - tail]) / n
    return Estimate((only_first - only_second) / n, float(low), float(high), n, level)


def holm(p_values: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return p-values corrected for having looked at all of them, by Holm's method.

    Calling those below 0.05 different keeps the chance of any false call below 5%.

    >>> holm([0.01, 0.04, 0.03]).round(3)
    array([0.03, 0.06, 0.06])
    """
    p = _check.fractions(p_values, "the p-values")
    order = np.argsort(p)
    steps = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    corrected = np.empty_like(p)
    corrected[order] = np.minimum(steps, 1)
    return corrected


def same_pictures(ids: npt.ArrayLike, others: npt.ArrayLike) -> npt.NDArray[np.intp]:
    """Return the places in ``others`` of ``ids``, or refuse if they are other pictures.

    Results on the same pictures may come in any order; ``values[same_pictures(a, b)]``
    brings what belongs to ``b`` into the order of ``a``.

    >>> same_pictures(["x", "y", "z"], ["z", "x", "y"])
    array([1, 2, 0])
    """
    first, second = np.asarray(ids), np.asarray(others)
    orders = []
    for given, which in ((first, "first"), (second, "second")):
        names, counts = np.unique(given, return_counts=True)
        if not len(names):
            raise InputError(f"there are no pictures: the {which} results are empty")
        if counts.max() > 1:
            twice = names[np.argmax(counts)]
            raise InputError(f"the {which} results have the picture {twice} more than once")
        orders.append(np.argsort(given, kind="stable"))
    if not np.array_equal(first[orders[0]], second[orders[1]]):
        lone = np.setxor1d(first, second)
        raise InputError(
            f"the two results are not of the same pictures: {len(lone):,} are in only one "
            f"of them, like {lone[0]}"
        )
    places = np.empty(len(first), np.intp)
    places[orders[0]] = orders[1]
    return places


def _pair(
    first: npt.ArrayLike, second: npt.ArrayLike
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    ours = _check.truths(first, "what the first model got right")
    theirs = _check.truths(second, "what the second model got right")
    _check.same_length(first=ours, second=theirs)
    return ours, theirs
