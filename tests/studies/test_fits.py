"""Fits and their bootstrap, against plain loops, other libraries and known truths."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from shiftbed.errors import InputError
from shiftbed.studies import Grid, fit_baseline, fit_baselines
from shiftbed.studies.lines import (
    Scale,
    drawn_rows,
    fit_hinges,
    from_scale,
    hinge,
    line,
    resample_counts,
    to_scale,
)

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "fits.py"


def toy(models: int = 40, gaps: bool = True, seed: int = 0) -> Grid:
    """A grid of three shifted settings, with gaps, and one model at exactly 0%."""
    rng = np.random.default_rng(seed)
    clean = rng.uniform(0.5, 0.9, models)
    shifted = from_scale(
        to_scale(clean, "logit")[:, None] * [0.9, 1.1, 0.7]
        - [0.4, 1.0, 2.0]
        + rng.normal(0, 0.1, (models, 3)),
        "logit",
    )
    shifted = (shifted * 1000).round() / 1000
    if gaps:
        shifted[3, 0] = shifted[7, 1] = np.nan
        shifted[5, 2] = 0
    return Grid.of(
        [f"m{i}" for i in range(models)],
        ["clean", "a", "b", "c"],
        np.column_stack([clean, shifted]),
        n=1000,
        categories=["standard"] * models,
    )


@pytest.mark.parametrize("scale", get_args(Scale))
def test_fit_is_least_squares_in_its_scale(scale: Scale) -> None:
    grid = toy()
    for shifted in "abc":
        fit = fit_baseline(grid, shifted, clean="clean", scale=scale)
        known = np.isfinite(grid.column(shifted))
        y = np.clip(grid.column(shifted)[known], 0.0005, 0.9995)
        place = {
            "linear": lambda p: p,
            "logit": lambda p: np.log(p / (1 - p)),
            "probit": stats.norm.ppf,
        }[scale]
        if scale == "linear":
            y = grid.column(shifted)[known]
        expected = stats.linregress(place(grid.column("clean")[known]), place(y))
        assert fit.slope == pytest.approx(expected.slope, rel=1e-10)
        assert fit.intercept == pytest.approx(expected.intercept, rel=1e-10)
        assert fit.r2 == pytest.approx(expected.rvalue**2, rel=1e-10)
        assert fit.models == known.sum()


def test_bootstrap_has_the_numbers_of_a_plain_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """The very loop that the benchmark times, on a small grid."""
    monkeypatch.syspath_prepend(BENCHMARK.parent)  # where it finds what benchmarks share
    spec = importlib.util.spec_from_file_location("benchmark_of_fits", BENCHMARK)
    assert spec is not None
    assert spec.loader is not None
    benchmark: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(benchmark)
    grid = toy()
    pairs = [("clean", shifted) for shifted in "abc"]
    loops = benchmark.plain(grid, pairs, seed=3, resamples=200)
    for fit, loop in zip(fit_baselines(grid, pairs, resamples=200, seed=3), loops, strict=True):
        np.testing.assert_allclose(fit.draws, loop, atol=1e-11)
        grown = np.linspace(0.5, 0.9, 5)
        curves = from_scale(loop[:, :1] + loop[:, 1:] * to_scale(grown, "logit"), "logit")
        low, high = fit.band(grown, level=0.9)
        np.testing.assert_allclose(low, np.quantile(curves, 0.05, axis=0), atol=1e-11)
        np.testing.assert_allclose(high, np.quantile(curves, 0.95, axis=0), atol=1e-11)


def test_a_fit_does_not_depend_on_its_company() -> None:
    grid = toy()
    together = fit_baselines(grid, [("clean", s) for s in "abc"], resamples=50)
    for shifted, fit in zip("abc", together, strict=True):
        alone = fit_baseline(grid, shifted, clean="clean", resamples=50)
        np.testing.assert_allclose(alone.draws, fit.draws, atol=1e-12)
        np.testing.assert_allclose(alone.residuals, fit.residuals, atol=1e-12)
    again = fit_baseline(grid, "a", clean="clean", resamples=50)
    assert (again.draws == fit_baseline(grid, "a", clean="clean", resamples=50).draws).all()
    other = fit_baseline(grid, "a", clean="clean", resamples=50, seed=1)
    assert (other.draws != again.draws).any()


def test_resamples_of_few_models_always_hold_a_line() -> None:
    x = np.array([0.1, 0.2, 0.9])
    counts = resample_counts(line(x - x.mean()), 500, seed=0)
    assert (counts.sum(axis=1) == 3).all()
    assert ((counts > 0).sum(axis=1) >= 2).all()
    # A third of two-model resamples and a ninth of all would have been one model alone.
    assert (np.bincount(drawn_rows(3, 500, 0)[:, 0]) > 100).all()


def test_knee_is_found_where_it_is() -> None:
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(0, 1, 80))
    y = 0.1 + 0.2 * np.minimum(x - 0.6, 0) + 3 * np.maximum(x - 0.6, 0)
    y += rng.normal(0, 0.02, 80)
    counts = resample_counts(line(x - x.mean()), 300, seed=0)
    found = fit_hinges(x, y, counts)
    level, below, above, knee = found[0]
    assert (level, knee) == pytest.approx((0.1, 0.6), abs=0.02)
    assert (below, above) == pytest.approx((0.2, 3.0), abs=0.15)
    low, high = np.quantile(found[1:, 3], [0.025, 0.975])
    assert low < 0.6 < high
    # Each resample's best hinge is no worse than a search of its own by numpy.
    for row in (0, 1, 150):
        drawn = np.repeat(np.arange(80), counts[row].astype(int))
        best = min(
            float(np.linalg.lstsq(hinge(x[drawn], place), y[drawn], rcond=None)[1].sum())
            for place in np.quantile(x, np.linspace(0.05, 0.95, 150))
        )
        coefficients, place = found[row, :3], found[row, 3]
        mine = float(((y[drawn] - hinge(x[drawn], place) @ coefficients) ** 2).sum())
        assert mine <= best * 1.05  # its places for a knee are the models' own


@given(st.floats(0, 1), st.sampled_from(get_args(Scale)), st.integers(1, 100_000))
def test_scales_are_finite_and_invertible(accuracy: float, scale: Scale, n: int) -> None:
    place = float(to_scale(accuracy, scale, n))
    assert np.isfinite(place)
    back = float(from_scale(place, scale))
    assert 0 <= back <= 1
    assert abs(back - accuracy) <= (0.5 / n if scale != "linear" else 0) + 1e-9


def test_bootstrap_interval_covers_the_slope() -> None:
    """Over many worlds the 90% interval holds the true slope about as often as it says."""
    rng = np.random.default_rng(1)
    held = 0
    worlds = 300
    for world in range(worlds):
        clean = rng.uniform(0.55, 0.85, 60)
        shifted = from_scale(0.9 * to_scale(clean, "logit") - 0.5 + rng.normal(0, 0.1, 60), "logit")
        grid = Grid.of([str(i) for i in range(60)], ["c", "s"], np.column_stack([clean, shifted]))
        fit = fit_baseline(grid, "s", clean="c", models=["*"], resamples=200, seed=world)
        low, high = fit.interval("slope", level=0.9)
        held += low <= 0.9 <= high
    assert 0.82 <= held / worlds <= 0.96


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "no such setting": ({"shifted": "aa"}, "there is no setting 'aa'"),
    "no clean": ({"clean": None}, "name it, like --clean imagenet-val"),
    "no such category": ({"models": ["category:standart"]}, "did you mean standard?"),
    "no such model": ({"models": ["mm*"]}, "there is no model 'mm*'"),
    "one model": ({"models": ["m1"]}, "there is only m1; choose other models"),
    "no model": ({"models": ["m3"]}, "at least 3 models measured on both clean and a; there is n"),
    "no scale": ({"scale": "log"}, "there is no scale 'log'; did you mean logit"),
    "no resamples": ({"resamples": 0}, "0 resamples are none"),
}


@pytest.mark.parametrize(("asked", "sentence"), BAD.values(), ids=BAD.keys())
def test_bad_requests_get_one_sentence(asked: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError) as told:
        fit_baseline(toy(), **{"shifted": "a", "clean": "clean", **asked})
    assert sentence in str(told.value)
    assert "\n" not in str(told.value)


def test_models_without_categories_are_told_how_to_be_chosen() -> None:
    grid = Grid.of("abc", ["c", "s"], np.full((3, 2), 0.5))
    with pytest.raises(InputError, match="none has a category; choose models by name"):
        fit_baseline(grid, "s", clean="c")
    with pytest.raises(InputError, match="have 1 different accuracies on c; a baseline needs"):
        fit_baseline(grid, "s", clean="c", models=["*"])


def test_zero_without_n_is_refused_in_logit_scale_alone() -> None:
    grid = Grid.of("abcd", ["c", "s"], [[0.5, 0.1], [0.6, 0.0], [0.7, 0.3], [0.8, 0.4]])
    with pytest.raises(InputError, match="b has exactly 0% on s, which has no place in logit"):
        fit_baseline(grid, "s", clean="c", models=["*"])
    assert fit_baseline(grid, "s", clean="c", models=["*"], scale="linear").slope > 1


def test_different_classes_are_not_fitted_to_each_other() -> None:
    grid = Grid.of("abcd", ["imagenet-val", "imagenet-r"], np.linspace(0.3, 0.9, 8).reshape(4, 2))
    with pytest.raises(InputError, match="scored over different classes"):
        fit_baseline(grid, "imagenet-r", clean="imagenet-val", models=["*"])
    [fit] = fit_baselines(grid, [("imagenet-val", "imagenet-r")], models=["*"], mixed_classes=True)
    assert fit.models == 4
