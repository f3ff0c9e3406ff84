"""Effective robustness: accuracy under a shift beyond what clean accuracy predicts.

And relative robustness: what an intervention gained or lost under the shift, all told.

Intervals add up their parts by squares (Zou and Donner's MOVER): each end of a difference lies
as far from it as the hypotenuse of how far the matching ends of its two terms lie from them. The
terms' own intervals are Clopper-Pearson for accuracies and the bootstrap band for the baseline,
so they need not be symmetric, exist at 0% and 100%, and are the ones that figures show.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from shiftbed.errors import InputError
from shiftbed.metrics import Estimate, clopper_pearson
from shiftbed.studies.baseline import BaselineFit, shipped_baseline
from shiftbed.studies.grid import Grid

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "accuracy_interval",
    "difference",
    "effective_robustness",
    "effective_robustness_of",
    "effective_robustness_table",
    "made_from",
    "placed",
    "relative_robustness_table",
    "verdict",
]

FloatArray = npt.NDArray[np.float64]
Interval = tuple[FloatArray, FloatArray]


def accuracy_interval(accuracy: npt.ArrayLike, n: npt.ArrayLike, level: float = 0.95) -> Interval:
    """Return Clopper-Pearson ends of accuracies; NaN where the accuracy or n is not known.

    >>> low, high = accuracy_interval([0.5, 0.5], [100, np.nan])
    >>> low.round(3)
    array([0.398,   nan])
    """
    accuracy, n = np.broadcast_arrays(np.asarray(accuracy, float), np.asarray(n, float))
    known = np.isfinite(accuracy) & np.isfinite(n)
    low, high = clopper_pearson(np.where(known, accuracy * n, 0), np.where(known, n, 1), level)
    return np.where(known, low, np.nan), np.where(known, high, np.nan)


def difference(
    value: FloatArray, interval: Interval, other: FloatArray, other_interval: Interval
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return value - other and the ends of its interval, for independent terms.

    >>> difference(np.array(0.7), (np.array(0.67), np.array(0.73)),
    ...            np.array(0.5), (np.array(0.46), np.array(0.54)))[1].round(3)
    np.float64(0.15)
    """
    gained = value - other
    low = gained - np.hypot(value - interval[0], other_interval[1] - other)
    high = gained + np.hypot(interval[1] - value, other - other_interval[0])
    return gained, low, high


def effective_robustness(
    fit: BaselineFit,
    clean: npt.ArrayLike,
    shifted: npt.ArrayLike,
    n_clean: npt.ArrayLike = np.nan,
    n_shifted: npt.ArrayLike = np.nan,
    *,
    level: float = 0.95,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return rho = shifted - fit(clean) for arrays of models, and the ends of its interval.

    The interval carries the binomial error of both accuracies and the fit's uncertainty.
    Where n is not known it is NaN.

    >>> from shiftbed.studies import shipped_baseline
    >>> rho, low, high = effective_robustness(
    ...     shipped_baseline("imagenet-r"), 0.9189, 0.4671, n_clean=10_000, n_shifted=30_000
    ... )
    >>> f"{100 * rho:.1f} [{100 * low:.1f}, {100 * high:.1f}]"
    '10.4 [9.1, 11.7]'
    """
    clean, shifted = np.asarray(clean, float), np.asarray(shifted, float)
    for name, values in (("clean", clean), ("shifted", shifted)):
        beyond = ~((values >= 0) & (values <= 1))
        if beyond.any():
            raise InputError(
                f"a {name} accuracy is {values[beyond].flat[0]:g}; "
                "accuracies are fractions between 0 and 1"
            )
    clean_low, clean_high = accuracy_interval(clean, n_clean, level)
    expected, at_low, at_high = fit(np.stack([clean, clean_low, clean_high]))
    band_low, band_high = fit.band(clean, level)
    # A baseline need not rise, so its ends are taken by value.
    below = np.hypot(expected - np.minimum(at_low, at_high), expected - band_low)
    above = np.hypot(np.maximum(at_low, at_high) - expected, band_high - expected)
    return difference(
        shifted,
        accuracy_interval(shifted, n_shifted, level),
        expected,
        (expected - below, expected + above),
    )


def effective_robustness_of(
    fit: BaselineFit,
    clean: Estimate,
    shifted: Estimate,
) -> Estimate:
    """Return one model's effective robustness from its two accuracies.

    >>> from shiftbed.metrics import proportion
    >>> from shiftbed.studies import shipped_baseline
    >>> baseline = shipped_baseline("imagenet-v2-matched-frequency.format-val")
    >>> print(effective_robustness_of(
    ...     baseline, proportion(38_065, 50_000), proportion(6_315, 10_000)))
    -0.8% [-1.8, 0.3], n = 10,000
    """
    value, low, high = effective_robustness(
        fit, clean.value, shifted.value, clean.n, shifted.n, level=clean.level
    )
    return Estimate(float(value), float(low), float(high), shifted.n, clean.level)


def verdict(low: float, high: float) -> str:
    """Say whether a model is robust beyond its accuracy: ``yes``, ``no`` or ``cannot tell``.

    Yes, if the whole interval of its effective robustness lies above zero; no, if none of it
    does.

    >>> verdict(0.01, 0.05), verdict(-0.05, -0.01), verdict(-0.01, 0.02)
    ('yes', 'no', 'cannot tell')
    """
    if low > 0:
        return "yes"
    return "no" if high <= 0 else "cannot tell"


def effective_robustness_table(
    grid: Grid,
    fit: BaselineFit,
    *,
    models: Sequence[str] | None = None,
    level: float = 0.95,
) -> pa.Table:
    """Return one row per model that has both accuracies of a fit, the most robust first.

    ``ahead_of`` is the share of the fitted models that lie lower above the fit than this one:
    an ordinary model is ahead of about half of them. ``extrapolated`` says that no fitted
    model had such a clean accuracy.

    >>> from shiftbed.studies import shipped_baseline
    >>> fit = shipped_baseline("imagenet-sketch")
    >>> grid = Grid.of(["net"], [fit.clean, fit.shifted], [[0.8, 0.4]], n=[50_000, 50_889])
    >>> effective_robustness_table(grid, fit).to_pylist()[0]["verdict"]
    'yes'
    """
    import pyarrow as pa

    clean, shifted = grid.column(fit.clean), grid.column(fit.shifted)
    rows = np.flatnonzero(grid.mask(models) & np.isfinite(clean) & np.isfinite(shifted))
    if not len(rows):
        raise InputError(f"none of the models was measured on both {fit.clean} and {fit.shifted}")
    clean, shifted = clean[rows], shifted[rows]
    n_clean, n_shifted = grid.pictures(fit.clean)[rows], grid.pictures(fit.shifted)[rows]
    rho, low, high = effective_robustness(fit, clean, shifted, n_clean, n_shifted, level=level)
    clean_low, clean_high = accuracy_interval(clean, n_clean, level)
    shifted_low, shifted_high = accuracy_interval(shifted, n_shifted, level)
    ahead = np.searchsorted(fit.residuals, rho) / max(len(fit.residuals), 1)
    columns = {
        "model": [grid.models[i] for i in rows],
        "category": [grid.categories[i] for i in rows],
        "clean": clean,
        "clean_low": clean_low,
        "clean_high": clean_high,
        "n_clean": n_clean,
        "shifted": shifted,
        "shifted_low": shifted_low,
        "shifted_high": shifted_high,
        "n_shifted": n_shifted,
        "expected": fit(clean),
        "rho": rho,
        "low": low,
        "high": high,
        "verdict": [verdict(*ends) for ends in zip(low, high, strict=True)],
        "ahead_of": ahead if len(fit.residuals) else np.full(len(rows), np.nan),
        "extrapolated": (clean < fit.low) | (clean > fit.high),
    }
    return _table(columns).take(pa.array(np.argsort(-rho, kind="stable")))


def relative_robustness_table(
    grid: Grid, shifted: str, parents: Mapping[str, str], *, level: float = 0.95
) -> pa.Table:
    """Return tau, each model's shifted accuracy less that of the model it was made from.

    ``parents`` names the model without the intervention for each model with it. Both were
    shown the same pictures; since accuracies alone do not tell how often the two agree, the
    interval is that of two independent samples, and rather too wide.

    >>> grid = Grid.of(["net", "net+augmix"], ["fog"], [[0.5], [0.6]], n=1000)
    >>> relative_robustness_table(grid, "fog", {"net+augmix": "net"}).to_pylist()[0]["verdict"]
    'yes'
    """
    accuracy = grid.column(shifted)
    at = [(grid.row(model), grid.row(parent)) for model, parent in parents.items()]
    at = [pair for pair in at if np.isfinite(accuracy[[*pair]]).all()]
    if not at:
        raise InputError(
            f"there is no pair of models, with and without, both measured on {shifted}"
        )
    low, high = accuracy_interval(accuracy, grid.pictures(shifted), level)
    with_, without = np.array(at).T
    tau, tau_low, tau_high = difference(
        accuracy[with_],
        (low[with_], high[with_]),
        accuracy[without],
        (low[without], high[without]),
    )
    return _table(
        {
            "model": [grid.models[i] for i in with_],
            "parent": [grid.models[i] for i in without],
            "accuracy": accuracy[with_],
            "parent_accuracy": accuracy[without],
            "n": grid.pictures(shifted)[with_],
            "tau": tau,
            "low": tau_low,
            "high": tau_high,
            "verdict": [verdict(*ends) for ends in zip(tau_low, tau_high, strict=True)],
        }
    )


def made_from(grid: Grid, parent: str, models: Sequence[str] | None = None) -> dict[str, str]:
    """Return the chosen models, each with the model that it was made from.

    >>> made_from(Grid.of(["net", "net+augmix"], [], np.empty((2, 0))), "net")
    {'net+augmix': 'net'}
    """
    grid.row(parent)
    chosen = grid.mask(models)
    return {
        model: parent
        for model, wanted in zip(grid.models, chosen, strict=True)
        if wanted and model != parent
    }


def placed(
    shifted: str,
    clean_percent: float,
    shifted_percent: float,
    *,
    n: tuple[int, int] | None = None,
    level: float = 0.95,
) -> str:
    """Return a sentence that places two accuracies, in percent, by the published baseline.

    >>> print(placed("imagenet-r", 91.89, 46.71, n=(10_000, 30_000)))
    effective robustness on imagenet-r: +10.4 points [9.1, 11.7]: robust beyond its accuracy: yes
    (of a model with 91.89% on imagenet-val.imagenet-r-classes, 36.3% is expected)
    """
    fit = shipped_baseline(shifted)
    for percent in (clean_percent, shifted_percent):
        if not 0 <= percent <= 100:
            raise InputError(f"an accuracy is {percent:g}; in percent it lies between 0 and 100")
    pictures = n or (np.nan, np.nan)
    if n is not None and min(n) < 1:
        raise InputError(f"n is {n[0]} and {n[1]}; accuracies are counted on one picture at least")
    rho, low, high = effective_robustness(
        fit, clean_percent / 100, shifted_percent / 100, *pictures, level=level
    )
    if n is None:
        found = f"{100 * rho:+.1f} points (give --n for its interval)"
    else:
        found = (
            f"{100 * rho:+.1f} points [{100 * low:.1f}, {100 * high:.1f}]: "
            f"robust beyond its accuracy: {verdict(float(low), float(high))}"
        )
    beyond = ""
    if not fit.low <= clean_percent / 100 <= fit.high:
        beyond = (
            f"; no model of the baseline has such a clean accuracy, it was fitted from "
            f"{100 * fit.low:.1f}% to {100 * fit.high:.1f}%"
        )
    return (
        f"effective robustness on {shifted}: {found}\n(of a model with {clean_percent:g}% on "
        f"{fit.clean}, {100 * float(fit(clean_percent / 100)):.1f}% is expected{beyond})"
    )


def _table(columns: Mapping[str, object]) -> pa.Table:
    """Return an Arrow table with null for NaN, and whole numbers of pictures."""
    import pyarrow as pa

    return pa.table(
        {
            name: pa.array(values, pa.int64() if name.startswith("n") else None, from_pandas=True)
            for name, values in columns.items()
        }
    )
