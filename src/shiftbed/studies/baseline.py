"""The baseline: what accuracy under a shift to expect of an ordinary model of given accuracy."""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from shiftbed import published
from shiftbed.errors import InputError, unknown
from shiftbed.metrics.estimate import check_level
from shiftbed.studies.grid import Grid
from shiftbed.studies.lines import (
    Scale,
    fit_hinges,
    from_scale,
    hinge,
    line,
    resample_counts,
    solve_resamples,
    to_scale,
)
from shiftbed.studies.shifts import NATURAL, clean_of, same_classes

__all__ = [
    "STANDARD",
    "BaselineFit",
    "Shape",
    "Source",
    "baseline_for",
    "fit_baseline",
    "fit_baselines",
    "shippable",
    "shipped_baseline",
]

FloatArray = npt.NDArray[np.float64]

#: A straight line, or two that meet at a knee.
Shape = Literal["line", "knee"]
#: Where a baseline comes from: a grid's own models, the package, or whichever is better.
Source = Literal["auto", "results", "published"]

#: The models that make a baseline unless others are chosen.
STANDARD = ("category:standard",)

#: As many models as make a baseline that is preferred to the published one.
_ENOUGH = 10

#: The parameters of each shape, in the order of the columns of ``draws``.
_PARAMETERS = {
    "line": ("intercept", "slope"),
    "knee": ("intercept", "slope", "slope_above", "knee"),
}


@dataclass(frozen=True, eq=False)
class BaselineFit:
    """A fit of accuracy on a shifted setting to accuracy on its clean setting.

    In the fit's scale it is ``intercept + slope * x``; with a knee it is
    ``intercept + slope * (x - knee)`` below it, and ``slope_above`` takes over above.

    >>> x = np.array([0.6, 0.7, 0.75, 0.8])
    >>> grid = Grid.of("abcd", ["clean", "fog"], np.column_stack([x, x - 0.1]))
    >>> fit = fit_baseline(grid, "fog", clean="clean", models=["*"], scale="linear")
    >>> print(fit)
    fog = -0.100 + 1.000 clean (linear, r2 = 1.000, 4 models)
    >>> fit([0.65]).round(6)
    array([0.55])
    """

    clean: str
    shifted: str
    scale: Scale
    intercept: float
    slope: float
    #: The share of the variance that the fit explains, in its scale.
    r2: float
    #: How many models it was fitted to.
    models: int
    #: The clean accuracies that were fitted: beyond them it extrapolates.
    low: float
    high: float
    #: The parameters of each resample: intercept and slope, and with a knee slope_above and knee.
    draws: FloatArray
    #: Where two lines meet, in the fit's scale.
    knee: float | None = None
    slope_above: float | None = None
    #: What the fitted models are above the fit, sorted; empty for shipped fits.
    residuals: FloatArray = field(default_factory=lambda: np.empty(0))

    @property
    def knee_accuracy(self) -> float | None:
        """The clean accuracy at the knee."""
        return None if self.knee is None else float(from_scale(self.knee, self.scale))

    @property
    def parameters(self) -> dict[str, float]:
        """The fitted parameters by name."""
        if self.knee is None or self.slope_above is None:
            return {"intercept": self.intercept, "slope": self.slope}
        return {
            "intercept": self.intercept,
            "slope": self.slope,
            "slope_above": self.slope_above,
            "knee": self.knee,
        }

    def __call__(self, clean: npt.ArrayLike) -> FloatArray:
        """Return the expected shifted accuracies at clean accuracies."""
        expected: FloatArray = _expected(
            np.array([[*self.parameters.values()]]), clean, self.scale
        )[0]
        return expected

    def band(self, clean: npt.ArrayLike, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Return the ends of the bootstrap band at clean accuracies."""
        expected = _expected(self.draws, clean, self.scale)
        check_level(level)
        low, high = np.quantile(expected, [(1 - level) / 2, (1 + level) / 2], axis=0)
        return low, high

    def interval(self, parameter: str, level: float = 0.95) -> tuple[float, float]:
        """Return the bootstrap interval of a parameter, in the fit's scale."""
        names = [*self.parameters]
        if parameter not in names:
            raise unknown("parameter of this fit", parameter, names)
        check_level(level)
        values = self.draws[:, names.index(parameter)]
        low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
        return float(low), float(high)

    def __str__(self) -> str:
        if self.knee_accuracy is None:
            formula = f"{self.intercept:.3f} + {self.slope:.3f} {self.clean}"
        else:
            formula = (
                f"slope {self.slope:.3f} below {100 * self.knee_accuracy:.1f}% "
                f"of {self.clean}, {self.slope_above:.3f} above"
            )
        return (
            f"{self.shifted} = {formula} ({self.scale}, r2 = {self.r2:.3f}, {self.models} models)"
        )


def _expected(parameters: FloatArray, clean: npt.ArrayLike, scale: Scale) -> FloatArray:
    """Return the curves of R sets of parameters at any array of accuracies: (R, ...)."""
    x = to_scale(clean, scale)
    columns = [column.reshape(-1, *(1,) * x.ndim) for column in parameters.T]
    if len(columns) == len(_PARAMETERS["line"]):
        intercept, slope = columns
        return from_scale(intercept + slope * x, scale)
    level, below, above, knee = columns
    x = x - knee
    return from_scale(level + below * np.minimum(x, 0) + above * np.maximum(x, 0), scale)


def fit_baseline(
    grid: Grid,
    shifted: str,
    *,
    clean: str | None = None,
    models: Sequence[str] = STANDARD,
    scale: Scale = "logit",
    shape: Shape | None = None,
    resamples: int = 1000,
    seed: int = 0,
) -> BaselineFit:
    """Fit the baseline of one shifted setting; see `fit_baselines`.

    >>> grid = Grid.of("abc", ["photos", "photos+fog.1"], [[0.5, 0.4], [0.6, 0.5], [0.7, 0.6]])
    >>> fit_baseline(grid, "photos+fog.1", models=["*"], scale="linear")(0.8).round(6)
    np.float64(0.7)
    """
    return fit_baselines(
        grid,
        [(clean or clean_of(shifted, grid), shifted)],
        models=models,
        scale=scale,
        shape=shape,
        resamples=resamples,
        seed=seed,
    )[0]


def fit_baselines(
    grid: Grid,
    pairs: Sequence[tuple[str, str]],
    *,
    models: Sequence[str] = STANDARD,
    scale: Scale = "logit",
    shape: Shape | None = None,
    resamples: int = 1000,
    seed: int = 0,
    mixed_classes: bool = False,
) -> list[BaselineFit]:
    """Fit a baseline for each (clean, shifted) pair of settings, over the chosen models.

    ``models`` takes names, patterns and ``category:NAME``. ``shape`` is a line, but for
    adversarially filtered sets a line with a knee, wherever that fits best; there the model
    that the set was filtered against is left out, since it fails by construction. A model at
    exactly 0% or 100% counts as half a picture away from it.

    Each resample draws as many models as there are, with replacement; pairs that have the
    same models share their draws, and a pair's numbers do not depend on the other pairs.
    Accuracies over different classes are refused unless ``mixed_classes`` says otherwise.

    >>> rng = np.random.default_rng(0)
    >>> clean = rng.uniform(0.5, 0.9, 20)
    >>> grid = Grid.of([*"abcdefghijklmnopqrst"], ["c", "s"], np.stack([clean, clean**2], 1))
    >>> [fit] = fit_baselines(grid, [("c", "s")], models=["*"])
    >>> fit.models, round(fit.r2, 3)
    (20, 0.999)
    """
    if shape is not None and shape not in get_args(Shape):
        raise unknown("shape", shape, get_args(Shape))
    if resamples < 1:
        raise InputError(f"{resamples} resamples are none; the default is 1000")
    for setting in itertools.chain(*pairs):
        grid.at(setting)
    chosen, measured = grid.mask(models), np.isfinite(grid.accuracy)
    groups: dict[tuple[str, bytes, bool], list[int]] = {}
    for index, (clean, shifted) in enumerate(pairs):
        if not mixed_classes and not same_classes(clean, shifted):
            raise InputError(
                f"{clean} and {shifted} are scored over different classes, so neither predicts "
                "the other; name a clean setting with the same classes"
            )
        used = chosen & measured[:, grid.at(clean)] & measured[:, grid.at(shifted)]
        natural = NATURAL.get(shifted)
        if natural is not None and natural.adversary in grid.models:
            used[grid.row(natural.adversary)] = False
        bends = natural is not None and natural.kind == "filtered"
        with_knee = bends if shape is None else shape == "knee"
        groups.setdefault((clean, used.tobytes(), with_knee), []).append(index)

    fits: dict[int, BaselineFit] = {}
    for (clean, mask, with_knee), members in groups.items():
        shifts = [pairs[index][1] for index in members]
        used = np.frombuffer(mask, bool)
        found = _fit_group(grid, used, clean, shifts, scale, with_knee, resamples, seed)
        fits.update(zip(members, found, strict=True))
    return [fits[index] for index in range(len(pairs))]


def _fit_group(
    grid: Grid,
    used: npt.NDArray[np.bool_],
    clean: str,
    shifts: Sequence[str],
    scale: Scale,
    with_knee: bool,
    resamples: int,
    seed: int,
) -> list[BaselineFit]:
    """Fit all shifts that the same models have to the same clean setting."""
    _check_models(grid, used, clean, shifts[0], 8 if with_knee else 3)
    settings = [grid.at(name) for name in (clean, *shifts)]
    accuracy, n = grid.accuracy[used][:, settings], grid.n[used][:, settings]
    if scale != "linear":
        _check_ends(grid, used, (clean, *shifts), accuracy, n, scale)
    places = to_scale(accuracy, scale, n)
    x, ys = places[:, 0], places[:, 1:]
    fit = _fit_knees if with_knee else _fit_lines
    best, draws, curves = fit(x, ys, resamples, seed)
    errors = ((ys - curves) ** 2).sum(axis=0)
    spread = ((ys - ys.mean(axis=0)) ** 2).sum(axis=0)
    explained = 1 - errors / np.where(spread > 0, spread, np.nan)
    residuals = np.sort(accuracy[:, 1:] - from_scale(curves, scale), axis=0)
    low, high = float(accuracy[:, 0].min()), float(accuracy[:, 0].max())
    return [
        BaselineFit(
            clean=clean,
            shifted=shifted,
            scale=scale,
            r2=float(explained[at]),
            models=len(x),
            low=low,
            high=high,
            draws=draws[:, :, at],
            residuals=residuals[:, at],
            **dict(zip(_PARAMETERS["knee"], best[:, at].tolist(), strict=False)),
        )
        for at, shifted in enumerate(shifts)
    ]


def _check_models(
    grid: Grid, used: npt.NDArray[np.bool_], clean: str, shifted: str, least: int
) -> None:
    names = [grid.models[i] for i in np.flatnonzero(used)]
    if len(names) < least:
        found = f"there is only {', '.join(names)}" if names else "there is none"
        raise InputError(
            f"a baseline needs at least {least} models measured on both {clean} and {shifted}; "
            f"{found}; choose other models, or take the published baseline"
        )
    distinct = len(np.unique(grid.column(clean)[used]))
    if distinct < least:
        raise InputError(
            f"the {len(names)} models have {distinct} different accuracies on {clean}; "
            f"a baseline needs at least {least}"
        )


def _check_ends(
    grid: Grid,
    used: npt.NDArray[np.bool_],
    settings: Sequence[str],
    accuracy: FloatArray,
    n: FloatArray,
    scale: Scale,
) -> None:
    for row, at in np.argwhere(((accuracy == 0) | (accuracy == 1)) & np.isnan(n)):
        raise InputError(
            f"{grid.models[np.flatnonzero(used)[row]]} has exactly {100 * accuracy[row, at]:.0f}% "
            f"on {settings[at]}, which has no place in {scale} scale unless n is known; "
            "give n, leave it out or fit in linear scale"
        )


def _fit_lines(
    x: FloatArray, ys: FloatArray, resamples: int, seed: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return parameters (2, S), their draws (R, 2, S) and the curves at x (N, S)."""
    # Around their means the sums lose no digits.
    centre, level = x.mean(), ys.mean(axis=0)
    terms, ys = line(x - centre), ys - level
    solved = solve_resamples(terms, ys, resample_counts(terms, resamples, seed))
    curves = terms @ solved[0] + level
    solved[:, 0] += level - solved[:, 1] * centre
    return solved[0], solved[1:], curves


def _fit_knees(
    x: FloatArray, ys: FloatArray, resamples: int, seed: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the same with a knee: parameters (4, S), draws (R, 4, S) and curves (N, S)."""
    counts = resample_counts(line(x - x.mean()), resamples, seed)
    found = np.stack([fit_hinges(x, y, counts) for y in ys.T], axis=2)
    curves = [hinge(x, knee) @ level for *level, knee in found[0].T]
    return found[0], found[1:], np.stack(curves, axis=1)


def shipped_baseline(shifted: str) -> BaselineFit:
    """Return the baseline that ships with the package for a natural shift.

    It was fitted to the standard models of the ImageNet testbed, so one model's accuracies
    on a shift and its clean setting are enough to place it. The draws are normal, with the
    covariance of the bootstrap.

    >>> print(shipped_baseline("imagenet-r"))
    imagenet-r = -2.110 + 0.637 imagenet-val.imagenet-r-classes (logit, r2 = 0.888, 82 models)
    """
    rows = {str(row["shifted"]): row for row in published.baseline_fits()}
    if shifted not in rows:
        raise unknown("published baseline for", shifted, rows)
    row = rows[shifted]
    number = {key: value for key, value in row.items() if isinstance(value, float)}
    names = _PARAMETERS["knee" if "knee" in number else "line"]
    covariance = [[number[_covariance_name(a, b)] for b in names] for a in names]
    draws = np.random.default_rng(0).multivariate_normal(
        [number[name] for name in names], covariance, 1000, method="cholesky"
    )
    return BaselineFit(
        clean=str(row["clean"]),
        shifted=shifted,
        scale="logit",
        r2=number["r2"],
        models=int(number["models"]),
        low=number["low"],
        high=number["high"],
        draws=draws,
        intercept=number["intercept"],
        slope=number["slope"],
        slope_above=number.get("slope_above"),
        knee=number.get("knee"),
    )


def baseline_for(
    grid: Grid,
    shifted: str,
    *,
    clean: str | None = None,
    source: Source = "auto",
    models: Sequence[str] = STANDARD,
    scale: Scale = "logit",
    shape: Shape | None = None,
    resamples: int = 1000,
    seed: int = 0,
) -> tuple[BaselineFit, bool]:
    """Return the baseline to judge a grid's models by, and whether it is the published one.

    With ``auto`` it is the grid's own where the grid has ten of the baseline's ``models``, and
    the published one otherwise.

    >>> grid = Grid.of(["net"], ["imagenet-val", "imagenet-sketch"], [[0.8, 0.4]])
    >>> baseline_for(grid, "imagenet-sketch")[1]
    True
    """
    if source not in get_args(Source):
        raise unknown("baseline", source, get_args(Source))
    clean = clean or clean_of(shifted, grid)
    if source == "auto":
        standard = grid.mask(models, lenient=True)
        for setting in (clean, shifted):
            standard &= np.isfinite(grid.with_setting(setting).column(setting))
        shipped = any(
            (row["shifted"], row["clean"]) == (shifted, clean) for row in published.baseline_fits()
        )
        own = standard.sum() >= _ENOUGH or not shipped
        source = "results" if own or models != STANDARD else "published"
    if source == "published":
        return shipped_baseline(shifted), True
    return (
        fit_baseline(
            grid,
            shifted,
            clean=clean,
            models=models,
            scale=scale,
            shape=shape,
            resamples=resamples,
            seed=seed,
        ),
        False,
    )


def shippable(grid: Grid) -> str:
    """Return the fits that ship with the package, as CSV, from the ImageNet testbed's grid."""
    names = _PARAMETERS["knee"]
    pairs = list(itertools.combinations_with_replacement(names, 2))
    covariances = list(dict.fromkeys(_covariance_name(a, b) for a, b in pairs))
    columns = ["shifted", "clean", "scale", "models", "r2", "low", "high", *names, *covariances]
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    for shifted, shift in NATURAL.items():
        if shifted.endswith(".class-1-of-8"):
            continue
        fit = fit_baseline(grid, shifted)
        names = tuple(fit.parameters)
        covariance = np.cov(fit.draws, rowvar=False)
        numbers = {
            "r2": fit.r2,
            "low": fit.low,
            "high": fit.high,
            **fit.parameters,
            **{
                _covariance_name(names[i], names[j]): covariance[i, j]
                for i, j in itertools.product(range(len(names)), repeat=2)
            },
        }
        writer.writerow(
            {
                "shifted": shifted,
                "clean": shift.clean,
                "scale": fit.scale,
                "models": fit.models,
                **{name: f"{value:.9g}" for name, value in numbers.items()},
            }
        )
    return text.getvalue()


def _covariance_name(a: str, b: str) -> str:
    return "cov_" + "_".join(sorted((a, b)))
