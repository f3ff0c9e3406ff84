"""How far two people agree beyond what chance would have them agree."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
import numpy.typing as npt

from shiftbed.errors import InputError
from shiftbed.metrics.estimate import Estimate, check_level, clopper_pearson

__all__ = ["cohen_kappa"]

FloatArray = npt.NDArray[np.float64]


def cohen_kappa(
    first: Sequence[Hashable],
    second: Sequence[Hashable],
    *,
    level: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
) -> Estimate | None:
    """Return Cohen's kappa of two people's judgements of the same pictures, in their order.

    1 is full agreement, 0 what chance gives, and below 0 is less. The interval is the
    percentile one of the bootstrap over pictures. None where both gave all pictures one and
    the same judgement: then chance alone agrees fully, and kappa has no value.

    >>> ann, ben = ["yes"] * 45 + ["no"] * 55, ["yes"] * 40 + ["no"] * 60
    >>> print(f"{cohen_kappa(ann, ben):.3f}")
    0.898 [0.801, 0.979], n = 100
    """
    check_level(level)
    if len(first) != len(second) or not first:
        raise InputError(
            f"kappa needs two judgements of each picture; given are {len(first)} and {len(second)}"
        )
    place = {one: index for index, one in enumerate(dict.fromkeys([*first, *second]))}
    pairs = [place[a] * len(place) + place[b] for a, b in zip(first, second, strict=True)]
    counts = np.bincount(pairs, minlength=len(place) ** 2)
    [value], [chance] = _kappa(counts[None].astype(float), len(place))
    if np.isnan(value):
        return None
    n = len(first)
    if value == 1:  # no resample would differ: as many agreements as there are pictures
        agreed = float(clopper_pearson(n, n, level)[0])
        return Estimate(1.0, float((agreed - chance) / (1 - chance)), 1.0, n, level)
    draws = np.random.default_rng(seed).multinomial(n, counts / n, resamples)
    found, _ = _kappa(draws.astype(float), len(place))
    found = np.where(np.isnan(found), 1.0, found)  # a resample in which all is one judgement
    tail = (1 - level) / 2
    low, high = np.quantile(found, [tail, 1 - tail])
    return Estimate(float(value), min(float(low), value), max(float(high), value), n, level)


def _kappa(counts: FloatArray, kinds: int) -> tuple[FloatArray, FloatArray]:
    """Return kappa of each row, a flattened table of counts (NaN where it has none); and chance."""
    table = counts.reshape(-1, kinds, kinds)
    n = table.sum(axis=(1, 2))
    observed = np.trace(table, axis1=1, axis2=2) / n
    expected = (table.sum(axis=1) * table.sum(axis=2)).sum(axis=1) / n**2
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(expected < 1, (observed - expected) / (1 - expected), np.nan), expected
