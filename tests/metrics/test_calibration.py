from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import softmax

from shiftbed import metrics

answers = st.integers(0, 10_000)


def draw(seed: int, n: int = 730) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    sure = rng.beta(4, 2, size=n)
    return sure, rng.random(n) < sure**1.5


def by_hand(sure: np.ndarray, right: np.ndarray, norm: str, *, last: bool) -> float:
    """The definition, bin by bin, for confidences that are all different."""
    order = np.argsort(sure)
    n = len(sure)
    edges = [*range(0, n - n % 100, 100), n] if n % 100 == 0 else [*range(0, n - 100, 100), n]
    bins = [order[a:b] for a, b in pairwise(edges)]
    if not last:
        bins = bins[:-1]
    gaps = [abs(sure[b].mean() - right[b].mean()) for b in bins]
    if norm == "max":
        return float(max(gaps))
    power = 2 if norm == "l2" else 1
    total = sum(len(b) / n * gap**power for b, gap in zip(bins, gaps, strict=True))
    return float(total ** (1 / power))


@given(answers, st.sampled_from([700, 730, 799]), st.sampled_from(["l2", "l1", "max"]))
def test_calibration_error_is_its_definition(seed: int, n: int, norm: str) -> None:
    sure, right = draw(seed, n)
    whole = metrics.calibration_error(sure, right, norm)
    published = metrics.calibration_error(sure, right, norm, as_published=True)
    assert whole.value == pytest.approx(by_hand(sure, right, norm, last=True))
    assert published.value == pytest.approx(by_hand(sure, right, norm, last=False))
    for estimate in (whole, published):
        assert 0 <= estimate.low <= estimate.value <= estimate.high <= 1


def test_the_published_form_misses_an_error_in_the_last_bin() -> None:
    """500 pictures; only the 100 surest are overconfident."""
    sure = np.concatenate([np.linspace(0.49, 0.51, 400), np.linspace(0.98, 1.0, 100)])
    right = np.concatenate([np.arange(400) % 2 == 0, np.zeros(100, bool)])
    assert metrics.calibration_error(sure, right, as_published=True).value < 0.01
    assert metrics.calibration_error(sure, right).value == pytest.approx(
        np.sqrt(0.2) * 0.99, abs=0.01
    )


@given(answers, st.integers(0, 1000))
def test_order_is_free_even_among_equal_confidences(seed: int, shuffle: int) -> None:
    sure, right = draw(seed)
    sure = np.round(sure, 1)
    order = np.random.default_rng(shuffle).permutation(len(sure))
    for metric in (metrics.calibration_error, metrics.aurra):
        ours, theirs = metric(sure, right), metric(sure[order], right[order])
        assert (ours.value, ours.low, ours.high) == pytest.approx(
            (theirs.value, theirs.low, theirs.high), abs=1e-9
        )


@given(answers)
def test_norms_are_ordered(seed: int) -> None:
    sure, right = draw(seed)
    l1, l2, most = (metrics.calibration_error(sure, right, p).value for p in ("l1", "l2", "max"))
    assert l1 <= l2 + 1e-12
    assert l2 <= most + 1e-12


def test_the_interval_has_the_spread_of_other_pictures() -> None:
    rng = np.random.default_rng(1)

    def estimate() -> metrics.Estimate:
        sure = rng.beta(4, 2, size=2000)
        return metrics.calibration_error(sure, rng.random(2000) < sure**2)

    estimates = [estimate() for _ in range(150)]
    centre = np.mean([e.value for e in estimates])
    covered = sum(e.low <= centre <= e.high for e in estimates)
    assert covered >= 0.9 * 150


@given(answers)
def test_reliability_bins_hold_every_picture(seed: int) -> None:
    sure, right = draw(seed)
    diagram = metrics.reliability(sure, right)
    assert diagram.n.tolist() == [100] * 6 + [130]
    assert diagram.n @ diagram.confidence == pytest.approx(sure.sum())
    assert diagram.n @ diagram.accuracy == pytest.approx(right.sum())
    assert np.all(np.diff(diagram.confidence) > 0)
    assert np.all((diagram.low <= diagram.accuracy) & (diagram.accuracy <= diagram.high))


def test_fewer_pictures_than_a_bin_are_one_bin() -> None:
    assert metrics.reliability([0.4, 0.6], [0, 1]).n.tolist() == [2]
    assert metrics.calibration_error([0.4, 0.7], [0, 1]).value == pytest.approx(0.05)


@given(answers)
def test_aurra_is_the_mean_accuracy_over_response_rates(seed: int) -> None:
    sure, right = draw(seed)
    order = np.argsort(-sure)
    curve = [right[order[: k + 1]].mean() for k in range(len(sure))]
    rate, accuracy = metrics.response_rate_accuracy(sure, right)
    assert accuracy == pytest.approx(curve)
    assert rate[-1] == 1
    assert accuracy[-1] == pytest.approx(right.mean())
    assert metrics.aurra(sure, right).value == pytest.approx(np.mean(curve))


def test_aurra_of_a_constant_confidence_is_the_accuracy() -> None:
    right = np.arange(100) < 63
    assert metrics.aurra(np.full(100, 0.5), right).value == pytest.approx(0.63)


def test_aurra_intervals_cover() -> None:
    truth = metrics.aurra(*draw(123, 400_000)).value
    estimates = [metrics.aurra(*draw(seed, 500)) for seed in range(200)]
    assert sum(e.low <= truth <= e.high for e in estimates) >= 180


def sampled(seed: int, sharpness: float, n: int = 3000) -> tuple[np.ndarray, np.ndarray]:
    """Logits too sharp by a known factor: labels are drawn from their softmax before it."""
    rng = np.random.default_rng(seed)
    z = 2 * rng.normal(size=(n, 6))
    return sharpness * z, (z + rng.gumbel(size=z.shape)).argmax(axis=1)


@pytest.mark.parametrize("sharpness", [0.3, 1.0, 4.0])
def test_temperature_undoes_a_known_sharpness(sharpness: float) -> None:
    covered = 0
    for seed in range(40):
        estimate = metrics.fit_temperature(*sampled(seed, sharpness, 1000))
        covered += estimate.low <= sharpness <= estimate.high
    assert covered >= 33
    assert estimate.value == pytest.approx(sharpness, rel=0.15)


def test_temperature_makes_the_labels_likeliest() -> None:
    z, labels = sampled(0, 3.0)
    best = metrics.fit_temperature(z, labels).value

    def likelihood(t: float) -> float:
        return float(np.log(softmax(z / t, axis=1)[np.arange(len(z)), labels]).sum())

    assert likelihood(best) >= max(likelihood(best * 1.02), likelihood(best / 1.02))


def test_temperature_scaling_is_measured_on_the_other_half() -> None:
    z, labels = sampled(0, 3.0)
    ids = [f"{i}.jpg" for i in range(len(z))]
    half = metrics.held_out_half(ids)
    assert 0.45 < half.mean() < 0.55
    result = metrics.temperature_scaling(z, labels, ids)
    assert result.temperature == metrics.fit_temperature(z[half], labels[half])
    assert result.before.n == result.after.n == (~half).sum()
    assert result.after.high < result.before.low


def test_halves_follow_the_picture_not_its_place() -> None:
    ids = [f"{i}.jpg" for i in range(100)]
    assert np.array_equal(metrics.held_out_half(ids[::-1])[::-1], metrics.held_out_half(ids))


def test_half_precision_probabilities_are_accepted() -> None:
    p = softmax(np.random.default_rng(0).normal(size=(50, 1000)), axis=1).astype(np.float16)
    predicted, sure = metrics.most_likely(p)
    assert np.array_equal(predicted, p.argmax(axis=1))
    assert sure == pytest.approx(p.max(axis=1))


def test_pictures_that_are_all_right_leave_doubt() -> None:
    """With 0.99 throughout and no error seen, the error could still be some percent."""
    few = metrics.calibration_error(np.full(20, 0.99), np.ones(20))
    many = metrics.calibration_error(np.full(2000, 0.99), np.ones(2000))
    assert few.value == pytest.approx(0.01) == many.value
    assert few.high > 0.05
    assert 0.01 < many.high < 0.02
