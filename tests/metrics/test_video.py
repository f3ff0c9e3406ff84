from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shiftbed import metrics


def frames(seed: int, sets: int = 30) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    around = [np.arange(-rng.integers(0, 13), rng.integers(0, 13) + 1) for _ in range(sets)]
    offset = np.concatenate(around)
    member = np.repeat(np.arange(sets), [len(a) for a in around])
    return rng.random(len(offset)) < 0.95, member, offset


@given(st.integers(0, 10_000), st.sampled_from([0, 1, 5, 10, 20]))
def test_pm_k_is_the_worst_frame_of_each_set(seed: int, k: int) -> None:
    correct, member, offset = frames(seed)
    worst = [correct[(member == s) & (np.abs(offset) <= k)].all() for s in range(30)]
    estimate = metrics.pm_accuracy(correct, member, offset, k)
    assert estimate.value == pytest.approx(np.mean(worst))
    assert estimate.n == 30


@given(st.integers(0, 10_000))
def test_pm_0_is_the_accuracy_on_anchors_and_pm_k_falls(seed: int) -> None:
    correct, member, offset = frames(seed)
    values = [metrics.pm_accuracy(correct, member, offset, k).value for k in (0, 2, 5, 10)]
    assert values[0] == pytest.approx(correct[offset == 0].mean())
    assert values == sorted(values, reverse=True)


@given(st.integers(0, 10_000))
def test_order_and_names_are_free(seed: int) -> None:
    correct, member, offset = frames(seed)
    order = np.random.default_rng(seed).permutation(len(correct))
    names = np.array([f"video-{s}" for s in member])
    assert metrics.pm_accuracy(correct, member, offset) == metrics.pm_accuracy(
        correct[order], names[order], offset[order]
    )


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1))
def test_flip_rate_counts_changes(pairs: list[tuple[int, int]]) -> None:
    before, after = zip(*pairs, strict=True)
    estimate = metrics.flip_rate(before, after)
    assert estimate.value == pytest.approx(np.mean(np.array(before) != np.array(after)))
    assert estimate == metrics.flip_rate(after, before)
