"""A number with its interval, and the interval of a proportion."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv, expit, logit

from shiftbed.errors import InputError

__all__ = ["Estimate", "clopper_pearson", "proportion"]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number, its interval at ``level``, and how many pictures it was counted on.

    Rates are fractions everywhere in the code (0.767, also for an mCE that a paper
    prints as 76.7); they turn into percent where they are shown. A format
    specification is applied to the numbers, and is ``.1%`` if none is given.

    >>> accuracy = Estimate(0.761, 0.757, 0.765, n=50_000)
    >>> print(accuracy)
    76.1% [75.7, 76.5], n = 50,000
    >>> print(f"{accuracy:.3f}")
    0.761 [0.757, 0.765], n = 50,000
    """

    value: float
    low: float
    high: float
    n: int
    level: float = 0.95

    def __format__(self, spec: str) -> str:
        value, low, high = (format(x, spec or ".1%") for x in (self.value, self.low, self.high))
        confidence = "" if self.level == 0.95 else f" at {100 * self.level:g}%"
        return f"{value} [{low.rstrip('%')}, {high.rstrip('%')}]{confidence}, n = {self.n:,}"

    def __str__(self) -> str:
        return format(self, "")


def clopper_pearson(
    successes: npt.ArrayLike, n: npt.ArrayLike, level: float = 0.95
) -> tuple[FloatArray, FloatArray]:
    """Return the ends of the Clopper-Pearson intervals of ``successes`` out of ``n``.

    The interval covers the true proportion at least ``level`` of the time, for every
    ``n``. Both arguments may be arrays. Successes need not be whole, since published
    accuracies are rounded.

    >>> low, high = clopper_pearson([0, 5, 10], 10)
    >>> low.round(3), high.round(3)
    (array([0.   , 0.187, 0.692]), array([0.308, 0.813, 1.   ]))
    """
    check_level(level)
    k, n = np.broadcast_arrays(np.asarray(successes, float), np.asarray(n, float))
    if not np.all(np.isfinite(k) & np.isfinite(n) & (n >= 1)):
        raise InputError("a proportion needs finite counts and at least one picture")
    if np.any((k < 0) | (k > n)):
        raise InputError("a proportion needs between 0 and n successes out of n")
    tail = (1 - level) / 2
    # The beta distribution is undefined at the two corners, where the end is 0 or 1.
    low = np.where(k > 0, betaincinv(np.where(k > 0, k, 1.0), n - k + 1, tail), 0.0)
    high = np.where(k < n, betaincinv(k + 1, np.where(k < n, n - k, 1.0), 1 - tail), 1.0)
    return np.minimum(low, k / n), np.maximum(high, k / n)


def proportion(successes: float, n: int, level: float = 0.95) -> Estimate:
    """Return ``successes`` out of ``n`` with its Clopper-Pearson interval.

    >>> print(proportion(38_050, 50_000))
    76.1% [75.7, 76.5], n = 50,000
    """
    low, high = clopper_pearson(successes, n, level)
    return Estimate(float(successes / n), float(low), float(high), int(n), level)


def check_level(level: float) -> None:
    """Refuse a confidence level that is not strictly between 0 and 1."""
    if not 0 < level < 1:
        raise InputError(f"the confidence level is {level}; it must lie between 0 and 1, like 0.95")


def normal_quantile(level: float) -> float:
    """Return how many standard errors an interval at ``level`` reaches to either side."""
    check_level(level)
    return NormalDist().inv_cdf((1 + level) / 2)


def bounded(
    value: float, standard_error: float, n: int, level: float, independent: int
) -> Estimate:
    """Return an estimate between 0 and 1 from its standard error.

    The interval is symmetric in the logit, so it stays inside. A value of exactly 0 or 1
    has no useful standard error: its interval is the Clopper-Pearson one of that many
    ``independent`` trials.
    """
    z = normal_quantile(level)
    if value <= 0 or value >= 1:
        value = float(value >= 1)
        low, high = clopper_pearson(value * independent, independent, level)
        return Estimate(value, float(low), float(high), n, level)
    centre, reach = logit(value), z * standard_error / (value * (1 - value))
    low, high = expit(centre - reach), expit(centre + reach)
    return Estimate(float(value), min(float(low), value), max(float(high), value), n, level)
