from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.contingency_tables import mcnemar as statsmodels_mcnemar
from statsmodels.stats.multitest import multipletests

from shiftbed import metrics

results = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=200)


@given(results)
def test_mcnemar_is_statsmodels(pairs: list[tuple[bool, bool]]) -> None:
    first, second = np.array(pairs).T
    table = [
        [(first & second).sum(), (first & ~second).sum()],
        [(~first & second).sum(), (~first & ~second).sum()],
    ]
    ours = metrics.mcnemar(first, second)
    assert ours.p_value == pytest.approx(statsmodels_mcnemar(table, exact=True).pvalue)
    assert (ours.only_first, ours.only_second) == (table[0][1], table[1][0])
    assert ours.p_value == metrics.mcnemar(second, first).p_value


@given(results, st.integers(0, 100))
def test_differences_are_paired_and_order_is_free(
    pairs: list[tuple[bool, bool]], seed: int
) -> None:
    first, second = np.array(pairs).T
    estimate = metrics.paired_difference(first, second)
    assert estimate.value == pytest.approx(first.mean() - second.mean())
    assert estimate.low <= estimate.value + 1e-12
    assert estimate.value - 1e-12 <= estimate.high
    order = np.random.default_rng(seed).permutation(len(first))
    assert metrics.paired_difference(first[order], second[order]) == estimate


def test_the_bootstrap_is_that_of_pictures() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.random((2, 500)) < [[0.8], [0.7]]
    places = rng.integers(0, 500, (4000, 500))
    draws = first[places].mean(axis=1) - second[places].mean(axis=1)
    estimate = metrics.paired_difference(first, second)
    assert [estimate.low, estimate.high] == pytest.approx(
        np.quantile(draws, [0.025, 0.975]), abs=0.006
    )


def test_models_that_never_differ_have_an_interval_still() -> None:
    right = np.arange(100) < 70
    estimate = metrics.paired_difference(right, right)
    assert estimate.value == 0
    assert -0.05 < estimate.low < 0 < estimate.high < 0.05
    assert metrics.mcnemar(right, right).p_value == 1


@settings(max_examples=25)  # statsmodels takes 50 ms for each
@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_holm_is_statsmodels(p_values: list[float]) -> None:
    theirs = multipletests(p_values, method="holm")[1]
    assert metrics.holm(p_values) == pytest.approx(theirs)


@given(st.lists(st.text("abc.1", min_size=1), min_size=1, unique=True), st.integers(0, 100))
def test_same_pictures_brings_results_into_line(ids: list[str], seed: int) -> None:
    others = np.random.default_rng(seed).permutation(ids)
    assert np.array_equal(others[metrics.same_pictures(ids, others)], np.array(ids))
