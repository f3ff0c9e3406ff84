from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import softmax
from scipy.stats import entropy as scipy_entropy
from sklearn.metrics import average_precision_score, roc_auc_score, roc_curve

from shiftbed import metrics

#: Few distinct values, so that equal scores are common.
coarse = st.lists(st.integers(-5, 5).map(float), min_size=2, max_size=60)
fine = st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=60)
samples = st.one_of(st.tuples(coarse, coarse), st.tuples(fine, fine))


def labelled(usual: list[float], anomalous: list[float]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([0] * len(usual) + [1] * len(anomalous)), np.array(usual + anomalous)


@given(samples)
def test_areas_are_scikit_learns(pair: tuple[list[float], list[float]]) -> None:
    usual, anomalous = pair
    y, scores = labelled(usual, anomalous)
    found = metrics.detection(usual=usual, anomalous=anomalous)
    assert found.aupr.value == pytest.approx(average_precision_score(y, scores))
    assert found.auroc.value == pytest.approx(roc_auc_score(y, scores))
    assert found.prevalence == pytest.approx(y.mean())
    false, true, _ = roc_curve(y, scores, drop_intermediate=False)
    assert found.fpr95.value == pytest.approx(false[np.argmax(true >= 0.95 - 1e-12)])
    for estimate in (found.aupr, found.auroc, found.fpr95):
        assert 0 <= estimate.low <= estimate.value <= estimate.high <= 1
        assert estimate.n == len(y)


@given(samples, st.integers(0, 1000))
def test_order_is_free(pair: tuple[list[float], list[float]], seed: int) -> None:
    rng = np.random.default_rng(seed)
    shuffled = [rng.permutation(scores) for scores in pair]
    first = metrics.detection(usual=pair[0], anomalous=pair[1])
    second = metrics.detection(usual=shuffled[0], anomalous=shuffled[1])
    for name in ("aupr", "auroc", "fpr95"):
        ours, theirs = getattr(first, name), getattr(second, name)
        assert (ours.value, ours.low, ours.high) == pytest.approx(
            (theirs.value, theirs.low, theirs.high), abs=1e-12
        )


@given(samples)
def test_turning_the_scores_round_turns_the_auroc_round(
    pair: tuple[list[float], list[float]],
) -> None:
    usual, anomalous = (np.array(scores) for scores in pair)
    right = metrics.auroc(usual=usual, anomalous=anomalous)
    wrong = metrics.auroc(usual=-usual, anomalous=-anomalous)
    assert right.value == pytest.approx(1 - wrong.value)
    assert right.low == pytest.approx(1 - wrong.high)


def test_the_anomalous_class_is_the_positive_one() -> None:
    rng = np.random.default_rng(0)
    usual, anomalous = rng.normal(size=10_000), rng.normal(size=2_000)
    found = metrics.detection(usual=usual, anomalous=anomalous)
    assert found.prevalence == pytest.approx(1 / 6)
    assert found.aupr.value == pytest.approx(1 / 6, abs=0.01)
    swapped = metrics.aupr(usual=anomalous, anomalous=usual)
    assert swapped.value == pytest.approx(5 / 6, abs=0.01)


def test_a_constant_score_knows_nothing() -> None:
    found = metrics.detection(usual=[1.0] * 30, anomalous=[1.0] * 10)
    assert (found.aupr.value, found.auroc.value, found.fpr95.value) == (0.25, 0.5, 1.0)


def test_perfect_separation_is_not_certainty() -> None:
    found = metrics.detection(usual=np.arange(40.0), anomalous=100 + np.arange(25.0))
    assert (found.aupr.value, found.auroc.value, found.fpr95.value) == (1, 1, 0)
    assert found.aupr.low == found.auroc.low == pytest.approx(0.025 ** (1 / 25))
    assert found.fpr95.high > 0.05


@pytest.mark.parametrize("shift", [0.0, 1.0, 2.5])
def test_intervals_cover(shift: float) -> None:
    rng = np.random.default_rng(7)

    def sample(usual: int, anomalous: int) -> dict[str, np.ndarray]:
        return {"usual": rng.normal(size=usual), "anomalous": shift + rng.normal(size=anomalous)}

    truth = metrics.detection(**sample(500_000, 100_000))
    covered = dict.fromkeys(("aupr", "auroc", "fpr95"), 0)
    for _ in range(200):
        found = metrics.detection(**sample(500, 100))
        for name in covered:
            estimate = getattr(found, name)
            covered[name] += estimate.low <= getattr(truth, name).value <= estimate.high
    assert min(covered.values()) >= 180, covered


def test_the_jackknife_matches_the_bootstrap() -> None:
    rng = np.random.default_rng(3)
    usual, anomalous = rng.normal(size=300), 0.8 + rng.normal(size=80)
    draws = [
        metrics.aupr(usual=rng.choice(usual, 300), anomalous=rng.choice(anomalous, 80)).value
        for _ in range(1000)
    ]
    estimate = metrics.aupr(usual=usual, anomalous=anomalous)
    assert estimate.high - estimate.low == pytest.approx(4 * np.std(draws), rel=0.15)


logits = st.integers(0, 10_000).map(
    lambda seed: 5 * np.random.default_rng(seed).normal(size=(20, 7))
)


@given(logits)
def test_scores_are_what_they_say(z: np.ndarray) -> None:
    p = softmax(z, axis=1)
    assert metrics.max_softmax(z) == pytest.approx(-p.max(axis=1))
    assert metrics.max_logit(z) == pytest.approx(-z.max(axis=1))
    assert metrics.energy(z) == pytest.approx(-np.log(np.exp(z).sum(axis=1)))
    assert metrics.entropy(z) == pytest.approx(scipy_entropy(p, axis=1))


@given(logits)
def test_scores_rise_with_doubt_and_do_not_depend_on_the_batch(z: np.ndarray) -> None:
    for name, score in metrics.ANOMALY_SCORES.items():
        assert np.all(score(z) >= score(3 * z) - 1e-9) or name in ("energy", "max-logit")
        assert np.array_equal(score(z), np.concatenate([score(z[:7]), score(z[7:])])), name


def test_huge_logits_are_no_trouble() -> None:
    z = np.array([[1e5, 0.0], [-1e5, -1e5]])
    assert metrics.entropy(z) == pytest.approx([0, np.log(2)])
    assert metrics.max_softmax(z) == pytest.approx([-1, -0.5])
