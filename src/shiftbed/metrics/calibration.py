"""Whether a model's confidence is worth what it says."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.special import softmax

from shiftbed.errors import InputError, unknown
from shiftbed.metrics import _check
from shiftbed.metrics.estimate import (
    Estimate,
    bounded,
    check_level,
    clopper_pearson,
    normal_quantile,
)

__all__ = [
    "Reliability",
    "TemperatureScaling",
    "aurra",
    "calibration_error",
    "fit_temperature",
    "held_out_half",
    "most_likely",
    "reliability",
    "response_rate_accuracy",
    "temperature_scaling",
]

FloatArray = npt.NDArray[np.float64]
Norm = Literal["l2", "l1", "max"]


def most_likely(probabilities: npt.ArrayLike) -> tuple[npt.NDArray[np.intp], FloatArray]:
    """Return each picture's likeliest class and the confidence in it.

    >>> most_likely([[0.2, 0.8], [0.9, 0.1]])
    (array([1, 0]), array([0.8, 0.9]))
    """
    p = _check.probabilities(probabilities)
    return p.argmax(axis=1), p.max(axis=1)


@dataclass(frozen=True, slots=True)
class Reliability:
    """A reliability diagram: bins of pictures alike in confidence, least confident first.

    ``low`` and ``high`` are the ends of the accuracy's Clopper-Pearson interval.
    """

    confidence: FloatArray
    accuracy: FloatArray
    low: FloatArray
    high: FloatArray
    n: npt.NDArray[np.int64]


def reliability(
    confidence: npt.ArrayLike, correct: npt.ArrayLike, bin_size: int = 100, level: float = 0.95
) -> Reliability:
    """Return mean confidence and accuracy in bins of ``bin_size`` pictures.

    Pictures are binned in order of confidence. The last bin also takes what is left
    over. Pictures of equal confidence share their accuracy, so their order is free.

    >>> diagram = reliability([0.9, 0.2, 0.8, 0.3], [1, 0, 0, 1], bin_size=2)
    >>> diagram.confidence, diagram.accuracy
    (array([0.25, 0.85]), array([0.5, 0.5]))
    """
    sure, right = _answers(confidence, correct)
    starts, n = _bins(len(sure), bin_size)
    accuracy = np.minimum(np.add.reduceat(_tied_means(sure, right), starts) / n, 1.0)
    low, high = clopper_pearson(accuracy * n, n, level)
    return Reliability(np.add.reduceat(sure, starts) / n, accuracy, low, high, n)


def calibration_error(
    confidence: npt.ArrayLike,
    correct: npt.ArrayLike,
    norm: Norm = "l2",
    *,
    bin_size: int = 100,
    as_published: bool = False,
    level: float = 0.95,
    resamples: int = 1_000,
    seed: int = 0,
) -> Estimate:
    """Return how far confidence and accuracy lie apart, over bins of like confidence.

    ``norm`` is ``l2``, the root mean square over pictures of their bin's gap; ``l1``, its
    mean (an expected calibration error); or ``max``, the largest gap. The bins are those
    of `reliability`. With ``as_published``, the last bin, which has the most confident
    pictures, is left out of the sum but not of the count, as in the figures of the
    ImageNet-A paper: comparable with them, and wrong.

    Gaps of small bins are partly chance, so even a perfectly calibrated model has an
    error: some ``sqrt(c * (1 - c) / bin_size)`` at confidence c. The interval tells how
    far the value moves with the pictures, this part included: each bin's gap is redrawn
    from a normal distribution with its standard error, and the median put on the value.
    The error is no smaller than that of an accuracy with one right and one wrong answer
    more, so that a bin that is all right is not taken for certain.

    >>> sure, right = np.full(1000, 0.9), np.arange(1000) % 10 < 6
    >>> print(calibration_error(sure, right))
    30.0% [26.8, 32.9], n = 1,000
    >>> print(calibration_error(sure, right, as_published=True))
    28.5% [25.1, 31.4], n = 1,000
    """
    check_level(level)
    _check.at_least_one(resamples, "the number of resamples")
    if norm not in ("l2", "l1", "max"):
        raise unknown("calibration norm", norm, ("l2", "l1", "max"))
    sure, right = _answers(confidence, correct)
    starts, n = _bins(len(sure), bin_size)
    gap = np.add.reduceat(_tied_means(sure, sure - right), starts) / n
    square = np.add.reduceat(_tied_means(sure, (sure - right) ** 2), starts) / n
    accuracy = (np.add.reduceat(_tied_means(sure, right), starts) + 1) / (n + 2)
    spread = np.sqrt(np.maximum(square - gap**2, accuracy * (1 - accuracy)) / n)
    weight = n / len(sure)
    if as_published:
        if len(n) < 2:
            raise InputError(
                f"the published form leaves the last bin out, and {len(sure):,} pictures in bins "
                f"of {bin_size} have one alone"
            )
        gap, spread, weight = gap[:-1], spread[:-1], weight[:-1]

    def error(gaps: FloatArray) -> FloatArray:
        if norm == "l2":
            return np.asarray(np.sqrt(gaps**2 @ weight))
        return np.asarray(np.abs(gaps) @ weight if norm == "l1" else np.abs(gaps).max(axis=-1))

    value = float(error(gap))
    draws = error(gap + spread * _normal_draws(seed, resamples, len(gap)))
    tail = (1 - level) / 2
    low, high = value + np.quantile(draws, [tail, 1 - tail]) - np.median(draws)
    return Estimate(value, max(float(low), 0.0), min(float(high), 1.0), len(sure), level)


def response_rate_accuracy(
    confidence: npt.ArrayLike, correct: npt.ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """Return response rates, and the accuracy on the most confident share of that size.

    >>> rate, accuracy = response_rate_accuracy([0.9, 0.8, 0.7, 0.6], [1, 1, 0, 0])
    >>> rate, accuracy.round(3)
    (array([0.25, 0.5 , 0.75, 1.  ]), array([1.   , 1.   , 0.667, 0.5  ]))
    """
    sure, right = _answers(confidence, correct)
    n = np.arange(1, len(sure) + 1)
    return n / len(sure), np.cumsum(_tied_means(sure, right)[::-1]) / n


def aurra(confidence: npt.ArrayLike, correct: npt.ArrayLike, level: float = 0.95) -> Estimate:
    """Return the area under the response-rate accuracy curve: its mean over all rates.

    The interval is a logit one with the infinitesimal jackknife's standard error.

    >>> print(aurra(np.linspace(0.1, 0.9, 200), np.arange(200) >= 80))
    90.5% [86.4, 93.5], n = 200
    """
    sure, right = _answers(confidence, correct)
    if len(sure) < 2:
        raise InputError("an interval over pictures needs at least two pictures")
    _, curve = response_rate_accuracy(sure, right)
    value = float(curve.mean())
    # A picture moves the accuracy at its own rate and at every higher one.
    answered = np.arange(1, len(sure) + 1)
    reach = np.cumsum((1 / answered)[::-1])
    pull = np.cumsum((curve / answered)[::-1])
    reach, rest = (_tied_means(sure, part) for part in (reach, curve[::-1] - pull))
    influence = right * reach + rest - value
    standard_error = float(influence.std(ddof=1) / np.sqrt(len(sure)))
    return bounded(value, standard_error, len(sure), level, len(sure))


def fit_temperature(logits: npt.ArrayLike, labels: npt.ArrayLike, level: float = 0.95) -> Estimate:
    """Return the temperature that makes the labels likeliest under softmax(logits / T).

    The interval is a normal one for log T, with the sandwich standard error.

    >>> rng = np.random.default_rng(0)
    >>> logits = rng.normal(size=(2000, 5))
    >>> labels = (logits + rng.gumbel(size=(2000, 5))).argmax(axis=1)
    >>> print(f"{fit_temperature(3 * logits, labels):.1f}")
    3.0 [2.8, 3.2], n = 2,000
    """
    from scipy.optimize import brentq

    z = _check.logits(logits)
    truth = _check.classes(labels, "the labels")
    n = _check.same_length(logits=z, labels=truth)
    if truth.dtype.kind not in "iu" or truth.min() < 0 or truth.max() >= z.shape[1]:
        raise InputError(f"the labels must be columns of the logits, 0 to {z.shape[1] - 1}")
    z = z - z[np.arange(n), truth][:, None]

    def pull(log_t: float) -> float:
        """How much likelier the labels would become at a higher temperature."""
        return float((softmax(z / np.exp(log_t), axis=1) * z).sum(axis=1).mean())

    coldest, hottest = -7.0, 7.0
    if pull(coldest) <= 0:
        raise InputError("no temperature fits: (nearly) every label already has the largest logit")
    if pull(hottest) >= 0:
        raise InputError("no temperature fits: the logits say nothing about the labels")
    log_t = float(brentq(pull, coldest, hottest))
    p = softmax(z / np.exp(log_t), axis=1)
    mean = (p * z).sum(axis=1)
    curvature = float((p * z**2).sum(axis=1).mean() - (mean**2).mean()) / np.exp(log_t)
    reach = normal_quantile(level) * float(mean.std() / np.sqrt(n)) / curvature
    value, low, high = np.exp([log_t, log_t - reach, log_t + reach]).tolist()
    return Estimate(value, low, high, n, level)


def held_out_half(ids: Iterable[Any]) -> npt.NDArray[np.bool_]:
    """Return which pictures belong to the half that temperatures are fitted on.

    The half depends on each picture's id alone, not on the order or the other pictures.

    >>> held_out_half(["a.jpg", "b.jpg", "c.jpg", "d.jpg"])
    array([False, False, False,  True])
    """
    digests = (hashlib.blake2b(str(i).encode(), digest_size=1).digest()[0] for i in ids)
    return np.array([digest % 2 == 1 for digest in digests], bool)


@dataclass(frozen=True, slots=True)
class TemperatureScaling:
    """A fitted temperature, and the l2 calibration error without and with it."""

    temperature: Estimate
    before: Estimate
    after: Estimate


def temperature_scaling(
    logits: npt.ArrayLike,
    labels: npt.ArrayLike,
    ids: Iterable[Any],
    *,
    bin_size: int = 100,
    level: float = 0.95,
) -> TemperatureScaling:
    """Fit a temperature on a held-out half, and measure calibration on the other half.

    >>> rng = np.random.default_rng(0)
    >>> logits = rng.normal(size=(4000, 5))
    >>> labels = (logits + rng.gumbel(size=(4000, 5))).argmax(axis=1)
    >>> result = temperature_scaling(3 * logits, labels, range(4000))
    >>> result.after.value < result.before.value / 3
    True
    """
    z = _check.logits(logits)
    truth = _check.classes(labels, "the labels")
    fitted_on = held_out_half(ids)
    _check.same_length(logits=z, labels=truth, ids=fitted_on)
    if fitted_on.all() or not fitted_on.any():
        raise InputError("temperature scaling needs pictures in both halves; there are too few")
    temperature = fit_temperature(z[fitted_on], truth[fitted_on], level)
    z, truth = z[~fitted_on], truth[~fitted_on]

    def error(t: float) -> Estimate:
        predicted, sure = most_likely(softmax(z / t, axis=1))
        return calibration_error(sure, predicted == truth, bin_size=bin_size, level=level)

    return TemperatureScaling(temperature, error(1.0), error(temperature.value))


def _answers(confidence: npt.ArrayLike, correct: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return confidence and correctness in rising order of confidence."""
    sure = _check.fractions(confidence, "the confidences")
    right = _check.truths(correct, "the results").astype(float)
    _check.same_length(confidences=sure, results=right)
    order = np.argsort(sure, kind="stable")
    return sure[order], right[order]


def _bins(n: int, bin_size: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    _check.at_least_one(bin_size, "the bin size")
    starts = np.arange(max(n // bin_size, 1)) * min(bin_size, n)
    return starts, np.diff(np.append(starts, n))


@lru_cache(maxsize=1)
def _normal_draws(seed: int, resamples: int, bins: int) -> FloatArray:
    """Return standard normal numbers; those of the cell before, if it has as many pictures."""
    drawn = np.random.default_rng(seed).normal(size=(resamples, bins))
    drawn.flags.writeable = False
    return drawn


def _tied_means(sure: FloatArray, values: FloatArray) -> FloatArray:
    """Replace values by their mean over all pictures of the same confidence, which rises."""
    starts = np.flatnonzero(np.append(True, sure[1:] != sure[:-1]))
    if len(starts) == len(sure):
        return values
    n = np.diff(np.append(starts, len(sure)))
    member = np.repeat(np.arange(len(n)), n)
    return np.asarray((np.bincount(member, weights=values) / n)[member])
