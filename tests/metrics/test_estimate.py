from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from shiftbed.metrics import Estimate, clopper_pearson, proportion
from shiftbed.metrics.estimate import bounded

LEVELS = st.sampled_from([0.5, 0.9, 0.95, 0.995])


@given(st.integers(1, 100_000), st.floats(0, 1), LEVELS)
def test_clopper_pearson_is_scipys(n: int, share: float, level: float) -> None:
    k = round(share * n)
    low, high = clopper_pearson(k, n, level)
    theirs = stats.binomtest(k, n).proportion_ci(level, method="exact")
    assert low == pytest.approx(theirs.low, abs=1e-12)
    assert high == pytest.approx(theirs.high, abs=1e-12)


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(50, 90)), min_size=1), LEVELS)
def test_clopper_pearson_of_arrays_is_that_of_each(
    cells: list[tuple[int, int]], level: float
) -> None:
    k, n = np.array(cells).T
    low, high = clopper_pearson(k, n, level)
    for i in range(len(k)):
        assert (low[i], high[i]) == clopper_pearson(k[i], n[i], level)


@given(st.integers(1, 1000), st.floats(0, 1))
def test_rounded_accuracies_keep_their_interval_around_them(n: int, share: float) -> None:
    low, high = clopper_pearson(share * n, n)
    assert 0 <= low <= share * n / n <= high <= 1


def test_coverage_is_at_least_the_level() -> None:
    n = 60
    low, high = clopper_pearson(np.arange(n + 1), n, 0.95)
    for p in np.linspace(0.001, 0.999, 97):
        covered = stats.binom.pmf(np.arange(n + 1), n, p)[(low <= p) & (p <= high)].sum()
        assert covered >= 0.95


@pytest.mark.parametrize(
    ("spec", "shown"),
    [
        ("", "76.1% [75.7, 76.5] at 99.5%, n = 50,000"),
        (".2%", "76.10% [75.70, 76.50] at 99.5%, n = 50,000"),
        (".3f", "0.761 [0.757, 0.765] at 99.5%, n = 50,000"),
    ],
)
def test_an_estimate_reads_well(spec: str, shown: str) -> None:
    assert format(Estimate(0.761, 0.757, 0.765, 50_000, level=0.995), spec) == shown


def test_a_proportion_carries_its_n_and_level() -> None:
    estimate = proportion(1, 4, level=0.9)
    assert (estimate.value, estimate.n, estimate.level) == (0.25, 4, 0.9)


@given(st.floats(0.001, 0.999), st.floats(0, 0.5))
def test_bounded_intervals_stay_inside_and_hold_the_value(value: float, error: float) -> None:
    estimate = bounded(value, error, 100, 0.95, 100)
    assert 0 <= estimate.low <= estimate.value <= estimate.high <= 1


def test_perfect_values_keep_an_honest_interval() -> None:
    assert bounded(1.0, 0.0, 100, 0.95, 30).low == pytest.approx(0.025 ** (1 / 30))
    assert bounded(0.0, 0.0, 100, 0.95, 30).high == pytest.approx(1 - 0.025 ** (1 / 30))
