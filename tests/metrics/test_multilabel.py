from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score

from shiftbed.metrics import mean_average_precision


def draw(seed: int, n: int = 80, classes: int = 4) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    labels = rng.random((n, classes)) < [0.1, 0.3, 0.5, 0.8]
    labels[0] = True
    return np.round(labels + rng.normal(size=labels.shape), 1), labels


@given(st.integers(0, 10_000))
def test_map_is_scikit_learns(seed: int) -> None:
    scores, labels = draw(seed)
    result = mean_average_precision(scores, labels)
    assert result.mean.value == pytest.approx(average_precision_score(labels, scores))
    each = average_precision_score(labels, scores, average=None)
    assert [e.value for e in result.each] == pytest.approx(each)
    for estimate in (result.mean, *result.each):
        assert 0 <= estimate.low <= estimate.value <= estimate.high <= 1


@given(st.integers(0, 10_000))
def test_order_is_free(seed: int) -> None:
    scores, labels = draw(seed)
    order = np.random.default_rng(seed).permutation(len(scores))
    ours, theirs = (
        mean_average_precision(s, y).mean
        for s, y in ((scores, labels), (scores[order], labels[order]))
    )
    assert (ours.value, ours.low, ours.high) == pytest.approx(
        (theirs.value, theirs.low, theirs.high)
    )


def test_intervals_cover() -> None:
    truth = mean_average_precision(*draw(5, 200_000)).mean.value
    estimates = [mean_average_precision(*draw(seed, 400)).mean for seed in range(200)]
    assert sum(e.low <= truth <= e.high for e in estimates) >= 178


def test_a_label_that_every_picture_has_is_found_perfectly() -> None:
    result = mean_average_precision([[0.1], [0.9], [0.4]], [[1], [1], [1]])
    assert result.mean.value == 1
