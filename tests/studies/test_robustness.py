"""Effective and relative robustness: their values, and whether their intervals hold."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shiftbed.errors import InputError
from shiftbed.metrics import proportion
from shiftbed.published import baseline_fits
from shiftbed.results import Results
from shiftbed.studies import (
    Grid,
    baseline_for,
    effective_robustness,
    effective_robustness_of,
    effective_robustness_table,
    fit_baseline,
    made_from,
    placed,
    relative_robustness_table,
    shipped_baseline,
)
from shiftbed.studies.baseline import shippable
from shiftbed.studies.lines import from_scale, to_scale
from shiftbed.studies.shifts import NATURAL

SHIPPED = Path(__file__).parents[2] / "src" / "shiftbed" / "published" / "data"


def world(rng: np.random.Generator, n: int, models: int = 40, beyond: float = 0.0) -> Grid:
    """Models on a line in logit scale, seen through n pictures; the first one lies beyond it."""
    clean = rng.uniform(0.6, 0.85, models)
    place = 0.9 * to_scale(clean, "logit") - 0.6 + rng.normal(0, 0.02, models)
    shifted = from_scale(place, "logit")
    shifted[0] = from_scale(0.9 * to_scale(clean[:1], "logit") - 0.6, "logit")[0] + beyond
    seen = rng.binomial(n, np.column_stack([clean, shifted])) / n
    return Grid.of([f"m{i}" for i in range(models)], ["c", "s"], seen, n=n)


@pytest.mark.parametrize(("n", "beyond"), [(1000, 0.0), (1000, 0.1), (10_000, -0.05)])
def test_interval_of_rho_covers_the_truth(n: int, beyond: float) -> None:
    rng = np.random.default_rng(n)
    held = 0
    worlds = 300
    for _ in range(worlds):
        grid = world(rng, n, beyond=beyond)
        fit = fit_baseline(grid, "s", clean="c", models=["*", "-m0"], resamples=100)
        row = effective_robustness_table(grid, fit, models=["m0"]).to_pylist()[0]
        held += row["low"] <= beyond <= row["high"]
    # At least what it says; Clopper-Pearson ends make it a little more.
    assert 0.92 <= held / worlds <= 1


def test_rho_is_accuracy_less_expectation() -> None:
    grid = world(np.random.default_rng(0), 500)
    fit = fit_baseline(grid, "s", clean="c", models=["*"])
    table = effective_robustness_table(grid, fit)
    rho = table["rho"].to_numpy()
    assert (np.diff(rho) <= 0).all()
    np.testing.assert_allclose(
        rho, table["shifted"].to_numpy() - fit(table["clean"].to_numpy()), atol=1e-15
    )
    assert (table["low"].to_numpy() < rho).all()
    assert (rho < table["high"].to_numpy()).all()
    # By its making half of the fitted models are ahead of the other half.
    assert np.mean(table["ahead_of"].to_numpy()) == pytest.approx(0.5, abs=0.02)
    verdicts = table["verdict"].to_pylist()
    for low, high, word in zip(table["low"], table["high"], verdicts, strict=True):
        expected = "yes" if low.as_py() > 0 else "no" if high.as_py() <= 0 else "cannot tell"
        assert word == expected


def test_interval_grows_as_pictures_and_models_get_fewer() -> None:
    rng = np.random.default_rng(0)
    few, many = world(rng, 500, models=8), world(rng, 500, models=300)
    fits = [fit_baseline(grid, "s", clean="c", models=["*"]) for grid in (few, many)]

    def width(fit: Any, n: float) -> float:
        _, low, high = effective_robustness(fit, 0.7, 0.6, n, n)
        return float(high - low)

    assert width(fits[0], 500) > width(fits[1], 500) > width(fits[1], 5000)
    assert np.isnan(width(fits[0], np.nan))


def test_models_at_the_ends_have_finite_intervals() -> None:
    fit = shipped_baseline("imagenet-a")
    rho, low, high = effective_robustness(fit, [0.0, 0.5, 1.0], [0.0, 0.0, 1.0], 100, 100)
    assert np.isfinite([rho, low, high]).all()
    assert (low <= rho).all()
    assert (rho <= high).all()


def test_shipped_fits_are_those_of_the_published_grid(testbed: Grid) -> None:
    """Computed again; the last digits may differ with the linear algebra."""
    again = [line.split(",") for line in shippable(testbed).splitlines()]
    kept = (SHIPPED / "baseline-fits.csv").read_text().splitlines()
    assert len(again) == len(kept)
    for fresh, line in zip(again, kept, strict=True):
        for new, old in zip(fresh, line.split(","), strict=True):
            try:
                assert float(new) == pytest.approx(float(old), rel=1e-5)
            except ValueError:
                assert new == old


def test_shipped_fits_cover_the_named_shifts() -> None:
    shifts = {row["shifted"] for row in baseline_fits()}
    assert shifts >= {
        "imagenet-v2-matched-frequency",
        "objectnet",
        "imagenet-sketch",
        "imagenet-r",
        "imagenet-a",
        "imagenet-vid-robust.anchors",
        "imagenet-vid-robust.pm10",
        "ytbb-robust.anchors",
        "ytbb-robust.pm10",
    }
    with pytest.raises(InputError, match=r"no published baseline for 'imagenet-rr'; did you mean"):
        shipped_baseline("imagenet-rr")


@pytest.mark.parametrize("shifted", [s for s in NATURAL if not s.endswith("1-of-8")])
def test_shipped_fits_stand_in_for_the_grids(testbed: Grid, shifted: str) -> None:
    own, shipped = fit_baseline(testbed, shifted), shipped_baseline(shifted)
    grown = np.linspace(own.low, own.high, 30)
    np.testing.assert_allclose(shipped(grown), own(grown), atol=1e-7)
    # The shipped band is a normal one; the bootstrap of a knee is not, quite.
    tolerance = 0.02 if shifted == "imagenet-a" else 0.004
    np.testing.assert_allclose(shipped.band(grown), own.band(grown), atol=tolerance)


def test_one_model_is_placed_without_a_grid(testbed: Grid) -> None:
    row = testbed.row("resnet50_deepaugment_augmix")
    clean = testbed.column("imagenet-val.imagenet-r-classes")[row]
    shifted = testbed.column("imagenet-r")[row]
    estimate = effective_robustness_of(
        shipped_baseline("imagenet-r"),
        proportion(round(clean * 10_000), 10_000),
        proportion(round(shifted * 30_000), 30_000),
    )
    assert 100 * estimate.value == pytest.approx(10.4, abs=0.05)
    assert 0.08 < estimate.low < estimate.value < estimate.high < 0.13
    assert estimate.n == 30_000

    alone = Grid.of(
        ["mine"], ["imagenet-val.imagenet-r-classes", "imagenet-r"], [[clean, shifted]], n=2000
    )
    fit, published = baseline_for(alone, "imagenet-r")
    assert published
    assert effective_robustness_table(alone, fit).to_pylist()[0]["verdict"] == "yes"
    assert not baseline_for(testbed, "imagenet-r")[1]
    assert baseline_for(testbed, "imagenet-r", source="published")[1]


def test_tau_is_newcombes_difference(testbed: Grid) -> None:
    statsmodels = pytest.importorskip("statsmodels.stats.proportion")
    parents = {"resnet50_augmix": "resnet50"}
    [row] = relative_robustness_table(testbed, "imagenet-r", parents).to_pylist()
    counts = [round(row[name] * 30_000) for name in ("accuracy", "parent_accuracy")]
    low, high = statsmodels.confint_proportions_2indep(
        counts[0], 30_000, counts[1], 30_000, method="newcomb"
    )
    assert row["tau"] == pytest.approx((counts[0] - counts[1]) / 30_000)
    # Newcombe squares and adds Wilson's intervals, we Clopper-Pearson's.
    assert (row["low"], row["high"]) == pytest.approx((low, high), abs=2e-4)


def test_imported_cells_stand_beside_measured_ones(results: Results, measure: Any) -> None:
    measure("mine", "photos", np.arange(400) % 10 < 8)
    measure("mine", "photos+fog.1", np.arange(400) % 10 < 5)
    grid = Grid.from_cells(results.cells())
    assert grid.models == ("mine",)
    assert grid.pictures("photos").tolist() == [400]
    assert grid.column("photos+fog.1").tolist() == [0.5]


BAD: dict[str, tuple[Any, str]] = {
    "accuracy in percent": (
        lambda grid, fit: effective_robustness(fit, 76.1, 0.4),
        "a clean accuracy is 76.1; accuracies are fractions between 0 and 1",
    ),
    "nan": (lambda grid, fit: effective_robustness(fit, 0.8, np.nan), "a shifted accuracy is nan"),
    "no common model": (
        lambda grid, fit: effective_robustness_table(grid, shipped_baseline("objectnet")),
        "there is no setting 'imagenet-val.objectnet-classes'",
    ),
    "no parent": (lambda grid, fit: made_from(grid, "m99"), "there is no model 'm99'"),
    "no pair": (
        lambda grid, fit: relative_robustness_table(grid, "s", {}),
        "there is no pair of models, with and without, both measured on s",
    ),
    "no pictures": (
        lambda grid, fit: placed("imagenet-r", 90, 40, n=(0, 10)),
        "accuracies are counted on one picture at least",
    ),
    "over 100": (lambda grid, fit: placed("imagenet-r", 190, 40), "an accuracy is 190; in percent"),
    "parameter": (lambda grid, fit: fit.interval("knee"), "no parameter of this fit 'knee'"),
    "level": (
        lambda grid, fit: effective_robustness(fit, 0.5, 0.5, 10, 10, level=95),
        "the confidence level is 95; it must lie between 0 and 1",
    ),
    "no picture at all": (
        lambda grid, fit: Grid.of("ab", "c", [[0.1], [1.2]]),
        "the accuracy of 'b' on 'c' is 1.2; it must lie between 0 and 1",
    ),
    "shape": (
        lambda grid, fit: Grid.of("ab", "c", [[0.1, 0.2]]),
        "a grid of 2 models and 1 settings needs accuracies",
    ),
    "n's shape": (
        lambda grid, fit: Grid.of("ab", "c", [[0.1], [0.2]], n=[1, 2, 3]),
        "n has shape (3,); expected one n, 1 of them, or (2, 1)",
    ),
    "twice": (
        lambda grid, fit: Grid.of("aa", "c", [[0.1], [0.2]]),
        "model 'a' is in the grid twice",
    ),
    "mixed average": (
        lambda grid, fit: Grid.of(
            "a", ["imagenet-c.fog.1", "imagenet-val+fog.1"], [[0.1, 0.2]]
        ).with_average("fog", ["imagenet-c.fog.1", "imagenet-val+fog.1"]),
        "the average 'fog' mixes stored corruptions (imagenet-c.*) with corruptions made in",
    ),
    "average of nothing": (
        lambda grid, fit: grid.with_average("none", []),
        "the average 'none' is over no settings",
    ),
}


@pytest.mark.parametrize(("call", "sentence"), BAD.values(), ids=BAD.keys())
def test_bad_input_gets_one_sentence(call: Any, sentence: str) -> None:
    grid = world(np.random.default_rng(0), 100)
    fit = fit_baseline(grid, "s", clean="c", models=["*"])
    with pytest.raises(InputError) as told:
        call(grid, fit)
    assert sentence in str(told.value)
    assert "\n" not in str(told.value)


def test_cells_that_cannot_stand_together_are_refused() -> None:
    pa = pytest.importorskip("pyarrow")

    def cells(**columns: list[Any]) -> Any:
        return pa.table({"model": ["a", "a"], "setting": ["s", "s"], **columns})

    with pytest.raises(InputError, match=r"two results of 'a' on 's': 50\.00% from x and 60\.00%"):
        Grid.from_cells(cells(accuracy=[0.5, 0.6], source=["x", "y"]))
    assert Grid.from_cells(cells(accuracy=[0.5, 0.5], source=["x", "y"])).column("s") == [0.5]
    with pytest.raises(InputError, match="read in two class spaces"):
        Grid.from_cells(cells(accuracy=[0.5, 0.5], class_space=["full 10", "subset 5 of 10"]))
    with pytest.raises(InputError, match="needs the column 'accuracy'"):
        Grid.from_cells(cells(correct=[1, 2]))
    left = Grid.from_cells(cells(accuracy=[0.5, 0.9], complete=[True, False])).left_out
    assert left == ("a on s is incomplete, so it was left out",)


def test_the_script_that_writes_the_shipped_fits_runs() -> None:
    path = Path(__file__).parents[2] / "benchmarks" / "baseline_fits.py"
    spec = importlib.util.spec_from_file_location("script_of_fits", path)
    assert spec is not None
    assert spec.loader is not None
    script: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    assert callable(script.main)
