"""Does robustness to pictures changed on purpose go with robustness to pictures found in nature?"""

from __future__ import annotations

import contextlib
import itertools
import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from shiftbed import published
from shiftbed.errors import InputError, unknown
from shiftbed.metrics import Estimate
from shiftbed.metrics.estimate import check_level
from shiftbed.studies.baseline import STANDARD, BaselineFit, fit_baselines
from shiftbed.studies.grid import Grid
from shiftbed.studies.lines import Scale, resample_counts
from shiftbed.studies.shifts import clean_of, natural_shifts, severity_free, synthetic

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "NON_STANDARD",
    "correlation",
    "correlations",
    "synthetic_against_natural",
    "synthetic_averages",
]

FloatArray = npt.NDArray[np.float64]

#: The models that a correlation is over, unless others are chosen: those with an intervention
#: or more data. Standard models lie on the baseline by its making.
NON_STANDARD = ("*", "-category:standard", "-category:low-accuracy")

_AVERAGE = "average:"


def correlation(
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    method: str = "pearson",
    level: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> Estimate:
    """Return the Pearson or Spearman correlation of two columns, with a bootstrap interval.

    The interval resamples models. Its n is the number of models.

    >>> print(f"{correlation([1, 2, 3, 4, 5, 6], [1, 2, 4, 3, 6, 5]):.2f}")
    0.89 [0.56, 1.00], n = 6
    """
    x, y = np.asarray(x, float), np.asarray(y, float)
    if x.shape != y.shape or x.ndim != 1:
        raise InputError(f"a correlation needs two columns alike; got {x.shape} and {y.shape}")
    if not np.isfinite(x).all() or not np.isfinite(y).all():
        raise InputError("a correlation needs numbers; leave out the models that have a gap")
    if len(x) < 4:
        raise InputError(f"a correlation needs at least 4 models; there are {len(x)}")
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        raise InputError("a correlation needs columns that vary; one of the two is constant")
    found = correlations(
        x[:, None], y[:, None], method=method, level=level, resamples=resamples, seed=seed
    )
    value, low, high = (float(end[0, 0]) for end in found)
    return Estimate(value, low, high, len(x), level)


def correlations(
    xs: FloatArray,
    ys: FloatArray,
    *,
    method: str = "pearson",
    level: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the correlations of each column of ``xs`` with each of ``ys``, and their intervals.

    All share their resamples of the rows. The answers have shape (columns, columns).

    >>> x = np.array([[1.0, 5], [2, 4], [3, 3], [4, 4.5]])
    >>> correlations(x, x[:, :1], method="spearman")[0].round(3)
    array([[ 1. ],
           [-0.4]])
    """
    check_method(method)
    check_level(level)
    n = len(xs)
    # The very data first, then the resamples of it that hold two different x at least.
    spread = np.column_stack([np.ones(n), np.arange(n) - (n - 1) / 2])
    counts = resample_counts(spread, resamples, seed)
    place = _ranks if method == "spearman" else _repeated
    a, b = _standardised(place(xs, counts), counts), _standardised(place(ys, counts), counts)
    drawn = np.swapaxes(a, 1, 2) @ b
    # A resample in which a column is constant tells nothing of it.
    low, high = np.nanquantile(drawn[1:], [(1 - level) / 2, (1 + level) / 2], axis=0)
    return drawn[0], np.minimum(low, drawn[0]), np.maximum(high, drawn[0])


def check_method(method: str) -> None:
    """Refuse a correlation that is neither Pearson's nor Spearman's."""
    if method not in ("pearson", "spearman"):
        raise unknown("correlation", method, ["pearson", "spearman"])


def _repeated(columns: FloatArray, counts: FloatArray) -> FloatArray:
    return np.broadcast_to(columns, (len(counts), *columns.shape))


def _ranks(columns: FloatArray, counts: FloatArray) -> FloatArray:
    """Return everybody's rank in each resample, the mean rank for ties: (R, N, columns)."""
    ranks = np.empty((len(counts), *columns.shape))
    for column, values in enumerate(columns.T):
        distinct, place = np.unique(values, return_inverse=True)
        held = np.zeros((len(counts), len(distinct)))
        np.add.at(held.T, place, counts.T)
        ranks[:, :, column] = (np.cumsum(held, axis=1) - (held - 1) / 2)[:, place]
    return ranks


def _standardised(columns: FloatArray, counts: FloatArray) -> FloatArray:
    """Return columns such that sums of products are weighted correlations: (R, N, columns)."""
    weights = counts[:, :, None]
    size = weights.sum(axis=1, keepdims=True)
    mean = (weights * columns).sum(axis=1, keepdims=True) / size
    centred = (columns - mean) * np.sqrt(weights)
    length = np.sqrt((centred**2).sum(axis=1, keepdims=True))
    constant = length <= 1e-12 * (np.abs(mean) + 1) * np.sqrt(size)
    scaled: FloatArray = np.where(constant, np.nan, centred / np.where(constant, 1, length))
    return scaled


def synthetic_averages(grid: Grid, chosen: Sequence[str] | None = None) -> dict[str, list[str]]:
    """Return the synthetic averages that a grid allows, and the settings of each.

    There is one per shift over its severities, and one per kind over all its shifts: stored
    corruptions, corruptions in memory, attacks. Stored and in-memory ones are not mixed, and
    the four corruptions that ImageNet-C keeps for validation stay out of the averages.

    >>> settings = ["val", "val+fog.1", "val+fog.2", "val+pgd.l2.0.5", "imagenet-c.fog.1"]
    >>> grid = Grid.of(["net"], settings, [[0.5] * 5])
    >>> list(synthetic_averages(grid))
    ['imagenet-c', 'imagenet-c.fog', 'val+corruptions', 'val+fog', 'val+pgd', 'val+pgd.l2']
    >>> list(synthetic_averages(grid, ["*fog"]))
    ['imagenet-c.fog', 'val+fog']
    """
    averages: dict[str, list[str]] = {}
    extra = published.alexnet_errors(extra=True).keys() - published.alexnet_errors().keys()
    for setting in grid.settings:
        if not synthetic(setting):
            continue
        shift = severity_free(setting)
        if "+" in shift:
            images, what = shift.split("+", 1)
            attack = what.split(".")[0] if "." in what else None
            kind = f"{images}+{attack or 'corruptions'}"
            kind = shift if shift == setting else kind
        else:
            kind = shift.split(".")[0]
        if re.split(r"[.+]", shift)[-1] not in extra:
            averages.setdefault(kind, []).append(setting)
        if kind != shift:
            averages.setdefault(shift, []).append(setting)
    for pattern in chosen or ():
        if not any(fnmatchcase(name, pattern) for name in averages):
            raise unknown("synthetic average", pattern, averages)
    return {
        name: averages[name]
        for name in sorted(averages)
        if not chosen or any(fnmatchcase(name, pattern) for pattern in chosen)
    }


def synthetic_against_natural(
    grid: Grid,
    *,
    synthetic: Mapping[str, Sequence[str]] | None = None,
    natural: Sequence[str] | None = None,
    models: Sequence[str] = NON_STANDARD,
    baseline: Sequence[str] = STANDARD,
    scale: Scale = "logit",
    level: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> pa.Table:
    """Return the correlation of effective robustness for every synthetic and natural shift.

    Effective robustness, on either side, is accuracy less the ``baseline`` models' fit, so
    that two shifts do not correlate merely because better models are better at both.
    ``synthetic`` maps a name to the settings that it averages; by default all that
    `synthetic_averages` finds. ``natural`` defaults to all known natural shifts of the grid.
    What is not named is left out where too few models were measured.

    >>> settings = ["imagenet-val", "imagenet-val+fog.1", "imagenet-sketch"]
    >>> accuracy = np.random.default_rng(0).uniform(0.3, 0.7, (9, 3))
    >>> grid = Grid.of("abcdefghi", settings, accuracy, n=1000)
    >>> table = synthetic_against_natural(grid, models=["*"], baseline=["*"])
    >>> [(row["synthetic"], row["natural"], row["models"]) for row in table.to_pylist()][1]
    ('imagenet-val+fog', 'imagenet-sketch', 9)
    """
    import pyarrow as pa

    averages = dict(synthetic_averages(grid) if synthetic is None else synthetic)
    found = natural_shifts(grid) if natural is None else natural
    if not averages or not found:
        side = "natural" if averages else "synthetic"
        raise InputError(f"there is no {side} shift among the settings; a correlation needs both")
    extended = grid
    pairs: list[tuple[str, str]] = []
    for name, members in averages.items():
        cleans = {clean_of(member, grid) for member in members}
        if len(cleans) > 1:
            raise InputError(
                f"the average {name!r} mixes pictures of {' and '.join(sorted(cleans))}"
            )
        extended = extended.with_average(_AVERAGE + name, members)
        pairs.append((cleans.pop(), _AVERAGE + name))
    shifts = [(clean_of(shift, grid), shift) for shift in found]
    ours = _fits(extended, pairs, synthetic is not None, baseline, scale)
    theirs = _fits(extended, shifts, natural is not None, baseline, scale)
    names = [fit.shifted.removeprefix(_AVERAGE) for fit in ours]
    shifted = [fit.shifted for fit in theirs]
    xs, ys = (
        np.column_stack(
            [extended.column(fit.shifted) - fit(extended.column(fit.clean)) for fit in fits]
        )
        for fits in (ours, theirs)
    )
    chosen = extended.mask(models)
    # Pairs with the same models are computed together.
    blocks: dict[bytes, list[tuple[int, int]]] = {}
    for i, j in itertools.product(range(len(names)), range(len(shifted))):
        both = chosen & np.isfinite(xs[:, i]) & np.isfinite(ys[:, j])
        blocks.setdefault(both.tobytes(), []).append((i, j))
    rows: dict[tuple[int, int], dict[str, object]] = {}
    too_few = ""
    for mask, block in blocks.items():
        both = np.frombuffer(mask, bool)
        left, right = (sorted({pair[side] for pair in block}) for side in (0, 1))
        a, b = xs[both][:, left], ys[both][:, right]
        if len(a) < 4 or (np.ptp(a, axis=0) == 0).any() or (np.ptp(b, axis=0) == 0).any():
            i, j = block[0]
            too_few = (
                f"a correlation needs at least 4 models that differ; {names[i]} and {shifted[j]} "
                f"have {len(a)} in common"
            )
            continue
        measured = {
            method: correlations(a, b, method=method, level=level, resamples=resamples, seed=seed)
            for method in ("pearson", "spearman")
        }
        for i, j in block:
            at = left.index(i), right.index(j)
            row: dict[str, object] = {
                "synthetic": names[i],
                "settings": len(averages[names[i]]),
                "natural": shifted[j],
                "models": len(a),
            }
            for method, (value, low, high) in measured.items():
                row[method] = float(value[at])
                row[f"{method}_low"] = float(low[at])
                row[f"{method}_high"] = float(high[at])
            rows[i, j] = row
    if too_few and (not rows or (synthetic is not None and natural is not None)):
        raise InputError(too_few)
    return pa.Table.from_pylist([rows[at] for at in sorted(rows)])


def _fits(
    grid: Grid,
    pairs: Sequence[tuple[str, str]],
    named: bool,
    models: Sequence[str],
    scale: Scale,
) -> list[BaselineFit]:
    """Return the baselines of (clean, shifted) pairs; unless named, of those that have one."""

    def fit(some: Sequence[tuple[str, str]]) -> list[BaselineFit]:
        return fit_baselines(grid, some, models=models, scale=scale, resamples=1)

    fits: list[BaselineFit] = []
    for pair in () if named else pairs:
        with contextlib.suppress(InputError):
            fits += fit([pair])
    return fits or fit(pairs)  # which says what is wrong, if there is no baseline at all
