"""Correlations and their bootstrap, against SciPy and plain loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from shiftbed.errors import InputError
from shiftbed.studies import Grid, correlation, synthetic_against_natural, synthetic_averages
from shiftbed.studies.lines import drawn_rows


@given(arrays(float, (12, 2), elements=st.integers(-6, 6).map(float)))
def test_values_are_scipys_ties_and_all(table: Any) -> None:
    x, y = table.T
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return
    for method, reference in (("pearson", stats.pearsonr), ("spearman", stats.spearmanr)):
        found = correlation(x, y, method=method, resamples=20)
        assert found.value == pytest.approx(reference(x, y)[0], abs=1e-12)
        assert found.low <= found.value <= found.high


@pytest.mark.parametrize("method", ["pearson", "spearman"])
def test_interval_is_that_of_a_plain_bootstrap(method: str) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=30).round(1)
    y = (x + rng.normal(size=30)).round(1)
    reference = {"pearson": stats.pearsonr, "spearman": stats.spearmanr}[method]
    loop = [reference(x[rows], y[rows])[0] for rows in drawn_rows(30, 300, 7)]
    found = correlation(x, y, method=method, resamples=300, seed=7, level=0.9)
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(loop, [0.05, 0.95])))


def test_interval_covers_the_truth() -> None:
    rng = np.random.default_rng(0)
    held = 0
    for world in range(300):
        x, noise = rng.normal(size=(2, 80))
        found = correlation(x, 0.6 * x + 0.8 * noise, resamples=200, seed=world, level=0.9)
        held += found.low <= 0.6 <= found.high
    assert 0.82 <= held / 300 <= 0.96


def test_the_whole_matrix(testbed: Grid) -> None:
    table = synthetic_against_natural(testbed, resamples=20)
    averages = synthetic_averages(testbed)
    assert table.num_rows == len(averages) * 15
    assert len(averages["imagenet-c"]) == 75
    assert len(averages["imagenet-val+pgd"]) == 4
    for column in ("pearson", "pearson_low", "spearman", "spearman_high"):
        values = table[column].to_numpy()
        assert (np.abs(values) <= 1).all()
    rows = {(row["synthetic"], row["natural"]): row for row in table.to_pylist()}
    # Adversarial training helps where frames must agree, and hardly elsewhere.
    pgd = {natural: row["pearson"] for (name, natural), row in rows.items() if "pgd" in name}
    assert pgd["imagenet-vid-robust.pm10"] > 0.7
    assert abs(pgd["imagenet-v2-matched-frequency.format-val"]) < 0.2


def test_models_with_gaps_are_left_to_the_pairs_that_they_have(testbed: Grid) -> None:
    """A pair's numbers are those of the models that have both, whatever the other pairs have."""
    synthetic = {"fog": ["imagenet-c.fog.1"], "grey": ["imagenet-val+greyscale"]}
    together = synthetic_against_natural(testbed, synthetic=synthetic, resamples=30).to_pylist()
    for row in together:
        [alone] = synthetic_against_natural(
            testbed,
            synthetic={row["synthetic"]: synthetic[row["synthetic"]]},
            natural=[row["natural"]],
            resamples=30,
        ).to_pylist()
        assert alone == pytest.approx(row)


def test_what_has_no_baseline_is_left_out_unless_it_is_named() -> None:
    rng = np.random.default_rng(0)
    settings = ["imagenet-val", "imagenet-val+fog.1", "imagenet-sketch", "mine", "mine+fog.1"]
    accuracy = rng.uniform(0.3, 0.7, (9, 5))
    accuracy[1:, 3:] = np.nan
    grid = Grid.of("abcdefghi", settings, accuracy, n=1000)
    everybody: Any = {"models": ["*"], "baseline": ["*"], "resamples": 20}
    table = synthetic_against_natural(grid, **everybody)
    assert set(table["synthetic"].to_pylist()) == {"imagenet-val+corruptions", "imagenet-val+fog"}
    with pytest.raises(InputError, match="at least 3 models measured on both mine and"):
        synthetic_against_natural(grid, synthetic={"mine": ["mine+fog.1"]}, **everybody)


BAD: dict[str, tuple[Any, str]] = {
    "method": (lambda: correlation([1, 2, 3, 4], [1, 2, 3, 5], method="kendal"), "'kendal'"),
    "nan": (lambda: correlation([1, 2, 3, np.nan], [1, 2, 3, 4]), "leave out the models that"),
    "few": (lambda: correlation([1, 2], [1, 2]), "at least 4 models; there are 2"),
    "empty": (lambda: correlation([], []), "at least 4 models; there are 0"),
    "constant": (lambda: correlation([1, 1, 1, 1], [1, 2, 3, 4]), "one of the two is constant"),
    "lengths": (lambda: correlation([1, 2, 3], [1, 2]), "two columns alike; got (3,) and (2,)"),
    "no natural": (
        lambda: synthetic_against_natural(Grid.of("a", ["photos", "photos+fog.1"], [[1, 1]])),
        "there is no natural shift among the settings; a correlation needs both",
    ),
    "no synthetic": (
        lambda: synthetic_against_natural(
            Grid.of("a", ["imagenet-val", "imagenet-sketch"], [[1, 1]])
        ),
        "there is no synthetic shift",
    ),
    "no average": (
        lambda: synthetic_averages(Grid.of("a", ["photos+fog.1"], [[1]]), ["photos+frog"]),
        "there is no synthetic average 'photos+frog'; did you mean photos+fog?",
    ),
}


@pytest.mark.parametrize(("call", "sentence"), BAD.values(), ids=BAD.keys())
def test_bad_input_gets_one_sentence(call: Any, sentence: str) -> None:
    with pytest.raises(InputError) as told:
        call()
    assert sentence in str(told.value)
