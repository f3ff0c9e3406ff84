"""Corruption error: errors under corruption, measured against a baseline model's.

For a corruption c with severities s, ``CE = sum_s error(c, s) / sum_s baseline(c, s)``:
a ratio of sums, not a mean of ratios. The mCE is the plain mean of the CEs. The relative
CE first subtracts the clean error from every term, above and below the line.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import stdtr, stdtrit

from shiftbed import published
from shiftbed.errors import InputError
from shiftbed.metrics import _check
from shiftbed.metrics.estimate import Estimate, check_level, clopper_pearson

__all__ = [
    "CorruptionErrors",
    "corruption_error",
    "corruption_error_difference",
    "corruption_error_of_pictures",
    "relative_corruption_error",
]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class CorruptionErrors:
    """The (relative) corruption errors of a model, and their means.

    ``normalised`` and ``mean`` are in units of the baseline's error: CE and mCE.
    ``raw`` and ``raw_mean`` are the errors themselves, averaged over severities.
    Every ``n`` is the number of pictures that were shown at each severity.
    """

    normalised: dict[str, Estimate]
    mean: Estimate
    raw: dict[str, Estimate]
    raw_mean: Estimate


def corruption_error(
    errors: Mapping[str, npt.ArrayLike],
    n: int,
    *,
    baseline: Mapping[str, npt.ArrayLike] | None = None,
    severities: int = 5,
    level: float = 0.95,
) -> CorruptionErrors:
    """Return CE and mCE from the error at each severity of each corruption.

    ``errors`` maps a corruption to its error rates, one per severity, each counted on
    the same ``n`` pictures. ``baseline`` does the same for the model to normalise by, or
    gives its mean over severities alone; it is AlexNet as published if none is given.
    The mean is over the baseline's corruptions: one that is missing or incomplete is
    refused by name, and further ones are left out. For MNIST-C, with one severity, give
    ``severities=1`` and a baseline.

    The baseline counts as known. The same pictures are wrong together under many
    corruptions, in a way that error rates do not show, so the intervals assume the
    worst: they add up the Clopper-Pearson ends of all cells, and are wide rather than
    wrong. From every picture's result, `corruption_error_of_pictures` has narrower ones.

    >>> conv1 = {"shear": 0.0232, "fog": 0.0832}
    >>> capsule = {"shear": 0.0163, "fog": 0.8369}
    >>> scores = corruption_error(capsule, 10_000, baseline=conv1, severities=1)
    >>> print(f"{scores.mean:.2f}")
    5.38 [5.28, 5.48], n = 10,000
    """
    scale = _scale(baseline, severities)
    value, low, high = _over_severities(errors, scale, n, severities, level)
    return _summary(scale, value, low, high, n, level)


def relative_corruption_error(
    errors: Mapping[str, npt.ArrayLike],
    clean: float,
    n: int,
    *,
    baseline: Mapping[str, npt.ArrayLike] | None = None,
    baseline_clean: float | None = None,
    severities: int = 5,
    level: float = 0.95,
) -> CorruptionErrors:
    """Return relative CE and relative mCE: what corruption adds to the clean error.

    As `corruption_error`, with the model's and the baseline's error on clean pictures.
    A relative mCE says nothing of how good a model is: one that is always wrong has 0.

    >>> conv1 = {"shear": 0.0232, "fog": 0.0832}
    >>> capsule = {"shear": 0.0163, "fog": 0.8369}
    >>> scores = relative_corruption_error(
    ...     capsule, 0.0061, 10_000, baseline=conv1, baseline_clean=0.0078, severities=1
    ... )
    >>> print(f"{scores.mean:.2f}")
    5.84 [5.65, 6.03], n = 10,000
    """
    scale = _relative_scale(baseline, baseline_clean, severities)
    value, low, high = _over_severities(errors, scale, n, severities, level)
    clean = float(_check.fractions([clean], "the clean error")[0])
    clean_low, clean_high = (float(end) for end in clopper_pearson(clean * n, n, level))
    return _summary(scale, value - clean, low - clean_high, high - clean_low, n, level)


def corruption_error_of_pictures(
    wrong: Mapping[str, npt.ArrayLike],
    *,
    clean_wrong: npt.ArrayLike | None = None,
    baseline: Mapping[str, npt.ArrayLike] | None = None,
    baseline_clean: float | None = None,
    severities: int = 5,
    level: float = 0.95,
) -> CorruptionErrors:
    """Return CE and mCE, or the relative ones, from every picture's own result.

    ``wrong`` maps a corruption to an array with one row per severity and one column per
    picture, true where the model was wrong; all arrays show the same pictures in the
    same order. With ``clean_wrong``, the same for the clean pictures, the result is the
    relative one.

    The values are those of `corruption_error`. The intervals are Student's over pictures,
    each picture's errors under all corruptions taken together, so they have the
    dependence right that error rates alone cannot tell. Where all pictures have the same
    errors, the interval is that of a difference never seen in n pictures.

    >>> wrong = {"fog": np.arange(1000) % 10 < [[4], [6]]}
    >>> scores = corruption_error_of_pictures(wrong, baseline={"fog": 0.8}, severities=2)
    >>> print(f"{scores.mean:.3f}")
    0.625 [0.590, 0.660], n = 1,000
    """
    if clean_wrong is None:
        clean, scale = None, _scale(baseline, severities)
    else:
        clean = _check.truths(clean_wrong, "the results on clean pictures")
        scale = _relative_scale(baseline, baseline_clean, severities)
    _complete(wrong, scale)
    added = {}
    for name in scale:
        results = _check.truths(wrong[name], f"the results on {name}", ndim=2)
        _all_severities(name, len(results), severities)
        added[name] = results.mean(axis=0)
    n = _check.same_length(**added, **({} if clean is None else {"clean": clean}))
    if n < 2:
        raise InputError("an interval over pictures needs at least two pictures")
    if clean is not None:
        added = {name: row - clean for name, row in added.items()}

    least = 0.0 if clean is None else -1.0
    unit = {name: 1 / error for name, error in scale.items()}
    in_units = {name: row * unit[name] for name, row in added.items()}
    mean_unit = float(np.mean([*unit.values()]))
    return CorruptionErrors(
        {name: _mean(row, least, unit[name], level) for name, row in in_units.items()},
        _mean(np.mean([*in_units.values()], axis=0), least, mean_unit, level),
        {name: _mean(row, least, 1.0, level) for name, row in added.items()},
        _mean(np.mean([*added.values()], axis=0), least, 1.0, level),
    )


def corruption_error_difference(
    wrong: Mapping[str, npt.ArrayLike],
    other: Mapping[str, npt.ArrayLike],
    level: float = 0.95,
) -> tuple[Estimate, float]:
    """Return a model's mCE less another's, in units of the other's errors, and a p-value.

    Both map a corruption to what was wrong, one row per severity and one column per picture,
    of the same pictures in the same order. The other's mCE is 1 in these units, so that +0.05
    is five percent more errors. The test is Student's over pictures, each picture's errors
    under all corruptions of both models taken together.

    >>> before = {"fog": np.arange(1000) % 10 < [[4], [6]]}
    >>> after = {"fog": np.arange(1000) % 10 < [[3], [6]]}
    >>> change, p = corruption_error_difference(after, before)
    >>> print(f"{change:.3f}"), p < 0.001
    -0.100 [-0.119, -0.081], n = 1,000
    (None, True)
    """
    if wrong.keys() != other.keys() or not wrong:
        raise InputError("two models are compared over the same corruptions, at least one")
    changes, units = [], []
    for name in wrong:
        ours = _check.truths(wrong[name], f"the results on {name}", ndim=2)
        theirs = _check.truths(other[name], f"the other results on {name}", ndim=2)
        if ours.shape != theirs.shape:
            raise InputError(f"the two models saw {name} at other severities or pictures")
        if not theirs.any():
            raise InputError(f"the other model makes no error on {name}: nothing compares with it")
        units.append(1 / float(theirs.mean()))
        changes.append((ours.mean(axis=0) - theirs.mean(axis=0)) * units[-1])
    n = _check.same_length(**dict(zip(wrong, changes, strict=True)))
    if n < 2:
        raise InputError("a test over pictures needs at least two pictures")
    change = np.mean(changes, axis=0)
    found = _mean(change, -1.0, float(np.mean(units)), level)
    error = float(change.std(ddof=1)) / n**0.5
    if error == 0:
        return found, float(found.value == 0)
    return found, 2 * float(stdtr(n - 1, -abs(found.value) / error))


def _mean(per_picture: FloatArray, least: float, unit: float, level: float) -> Estimate:
    """Return the mean over pictures, each of them between ``least`` units and one."""
    check_level(level)
    n, value = len(per_picture), float(per_picture.mean())
    reach = float(stdtrit(n - 1, (1 + level) / 2)) * float(per_picture.std(ddof=1)) / n**0.5
    if np.ptp(per_picture) == 0:
        reach = float(clopper_pearson(0, n, level)[1]) * unit
    return Estimate(value, max(value - reach, least * unit), min(value + reach, unit), n, level)


def _scale(baseline: Mapping[str, npt.ArrayLike] | None, severities: int) -> dict[str, float]:
    """Return what one unit of CE is worth, by corruption: the baseline's mean error."""
    if baseline is None:
        if severities != 5:
            raise InputError("AlexNet's published errors are over 5 severities; give a baseline")
        return published.alexnet_errors()
    if not baseline:
        raise InputError("the baseline has no corruptions to average over")
    scale = {}
    for name, given in baseline.items():
        errors = _check.fractions(np.atleast_1d(given), f"the baseline's errors on {name}")
        if len(errors) != 1:
            _all_severities(f"the baseline's {name}", len(errors), severities)
        scale[name] = float(errors.mean())
        if scale[name] == 0:
            raise InputError(f"the baseline makes no error on {name}, so nothing compares with it")
    return scale


def _relative_scale(
    baseline: Mapping[str, npt.ArrayLike] | None, baseline_clean: float | None, severities: int
) -> dict[str, float]:
    if (baseline is None) != (baseline_clean is None):
        raise InputError("a relative CE needs the baseline's errors and its clean error together")
    clean = published.alexnet_clean_error() if baseline_clean is None else baseline_clean
    clean = float(_check.fractions([clean], "the baseline's clean error")[0])
    scale = {name: error - clean for name, error in _scale(baseline, severities).items()}
    for name, added in scale.items():
        if added <= 0:
            raise InputError(
                f"the baseline loses nothing under {name}, so a relative CE on it has no meaning"
            )
    return scale


def _over_severities(
    errors: Mapping[str, npt.ArrayLike],
    wanted: Iterable[str],
    n: int,
    severities: int,
    level: float,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return each corruption's mean error, and the means of the ends of its cells."""
    _complete(errors, wanted)
    rates = []
    for name in wanted:
        given = np.atleast_1d(_check.numbers(errors[name], f"the errors on {name}"))
        _all_severities(name, len(given), severities)
        for index in np.flatnonzero(np.isnan(given)):
            raise InputError(f"{name} is incomplete: its severity number {index + 1} is missing")
        rates.append(_check.fractions(given, f"the errors on {name}"))
    cells = np.array(rates)
    low, high = clopper_pearson(cells * n, n, level)
    return cells.mean(axis=1), low.mean(axis=1), high.mean(axis=1)


def _complete(given: Iterable[str], wanted: Iterable[str]) -> None:
    missing = [name for name in wanted if name not in set(given)]
    if missing:
        raise InputError(
            f"the mean over corruptions misses {', '.join(missing)}: measure them, "
            "or give a baseline of the others alone"
        )


def _all_severities(name: str, given: int, severities: int) -> None:
    if given != severities:
        raise InputError(f"{name} is incomplete: it has {given} of {severities} severities")


def _summary(
    scale: Mapping[str, float],
    value: FloatArray,
    low: FloatArray,
    high: FloatArray,
    n: int,
    level: float,
) -> CorruptionErrors:
    ends = np.array([value, low, high])
    in_units = ends / np.array([*scale.values()])

    def estimate(three: FloatArray) -> Estimate:
        middle, low, high = three.tolist()
        return Estimate(middle, low, high, int(n), level)

    return CorruptionErrors(
        {name: estimate(three) for name, three in zip(scale, in_units.T, strict=True)},
        estimate(in_units.mean(axis=1)),
        {name: estimate(three) for name, three in zip(scale, ends.T, strict=True)},
        estimate(ends.mean(axis=1)),
    )
