from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, balanced_accuracy_score, top_k_accuracy_score

from shiftbed import metrics

seeds = st.integers(0, 2**32 - 1)


def draw(seed: int, n: int = 60, classes: int = 5) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    labels = np.concatenate([np.arange(classes), rng.integers(0, classes, n - classes)])
    return rng.random((n, classes)), labels


@given(seeds)
def test_accuracies_are_scikit_learns(seed: int) -> None:
    scores, labels = draw(seed)
    ranked = np.argsort(-scores, axis=1)
    predicted = ranked[:, 0]
    assert metrics.accuracy(predicted, labels).value == accuracy_score(labels, predicted)
    assert metrics.balanced_accuracy(predicted, labels).value == pytest.approx(
        balanced_accuracy_score(labels, predicted)
    )
    for k in (1, 2, 4):
        ours = metrics.top_k_accuracy(ranked, labels, k)
        assert ours.value == top_k_accuracy_score(labels, scores, k=k)
    assert metrics.top_k_accuracy(ranked, labels, 1) == metrics.accuracy(predicted, labels)


@given(seeds)
def test_classes_add_up(seed: int) -> None:
    scores, labels = draw(seed)
    predicted = scores.argmax(axis=1)
    each = metrics.per_class_accuracy(predicted, labels)
    total = metrics.accuracy(predicted, labels)
    assert sum(e.n for e in each.values()) == total.n
    assert sum(e.value * e.n for e in each.values()) / total.n == pytest.approx(total.value)
    assert metrics.balanced_accuracy(predicted, labels).value == pytest.approx(
        np.mean([e.value for e in each.values()])
    )


@given(seeds)
def test_order_is_free(seed: int) -> None:
    scores, labels = draw(seed)
    predicted = scores.argmax(axis=1)
    order = np.random.default_rng(seed).permutation(len(labels))
    for metric in (metrics.accuracy, metrics.balanced_accuracy, metrics.per_class_accuracy):
        assert metric(predicted[order], labels[order]) == metric(predicted, labels)


def test_class_names_do_as_well_as_numbers() -> None:
    estimate = metrics.accuracy(np.array(["cat", "dog"], object), ["cat", "bird"])
    assert estimate.value == 0.5


def test_balanced_accuracy_covers() -> None:
    rng = np.random.default_rng(0)
    truth = np.array([0.99, 0.8, 0.3])
    labels = np.repeat([0, 1, 2], [15, 40, 200])
    covered = 0
    for _ in range(400):
        right = rng.random(len(labels)) < truth[labels]
        estimate = metrics.balanced_accuracy(np.where(right, labels, 9), labels)
        covered += estimate.low <= truth.mean() <= estimate.high
    assert covered >= 0.95 * 400
