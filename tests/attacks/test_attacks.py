from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from shiftbed.attacks import Attack, attacked, attacked_logits, attacks_named, published
from shiftbed.attacks.descent import descend
from shiftbed.data import ClassSpace
from shiftbed.errors import InputError
from shiftbed.models import load


def fooled(digits, attack: Attack, **options) -> np.ndarray:
    logits = attacked_logits(digits.model, digits.pictures, attack, digits.labels, **options)
    return logits.argmax(1) != digits.labels


@given(
    st.sampled_from(["pgd", "fgsm", "uniform"]),
    st.sampled_from(["linf", "l2"]),
    st.sampled_from([0.1, 0.25, 0.5, 1.0, 2.0, 8.0, 16.0]),
    st.sampled_from([None, 1, 10, 40]),
    st.booleans(),
)
def test_a_name_means_the_attack_that_bears_it(kind, norm, eps, steps, start) -> None:
    attack = Attack(kind, norm, eps, steps if kind == "pgd" else None, start)
    [named] = attacks_named(str(attack))
    assert str(named) == str(attack)
    assert named.described() == attack.described()


def test_the_published_parameters() -> None:
    described = {str(one): (one.radius(224, 224), one.gradients, one.step) for one in published()}
    assert described == {
        "pgd.linf.0.5": (0.5 / 255, 100, 0.03),
        "pgd.linf.2": (2 / 255, 100, 0.03),
        "pgd.l2.0.1": (pytest.approx(0.1), 100, 0.1),
        "pgd.l2.0.5": (pytest.approx(0.5), 100, 0.1),
    }
    assert Attack("pgd", "l2", 0.5).radius(32, 32) == pytest.approx(0.5 / 7)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("pgd", "write KIND.NORM.RADIUS"),
        ("pgd.linf", "write KIND.NORM.RADIUS"),
        ("pgd.inf.2", "there is no norm"),
        ("pgd.linf.0", "a number above 0"),
        ("pgd.linf.-1", "write KIND.NORM.RADIUS"),
        ("fgsm.linf.2.10steps", "only pgd has a number of steps"),
        ("pgd.linf.2.0steps", "from 1 to 10,000"),
        ("pgd.l9.*", "no published attack"),
    ],
)
def test_names_that_mean_nothing_are_refused(name: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        attacks_named(name)


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from(["pgd", "fgsm", "uniform"]),
    st.sampled_from(["linf", "l2"]),
    st.floats(0.1, 60),
    st.booleans(),
    st.integers(0, 400),
)
def test_pixels_stay_in_range_and_in_the_ball(digits, kind, norm, eps, start, first) -> None:
    attack = Attack(kind, norm, eps, 5 if kind == "pgd" else None, start)
    pictures, labels = digits.pictures[first : first + 8], digits.labels[first : first + 8]
    found = attacked(digits.model, pictures, attack, labels, stop_early=False)
    assert found.min() >= 0
    assert found.max() <= 1
    change = (found - pictures / 255).reshape(len(pictures), -1)
    far = np.abs(change).max(1) if norm == "linf" else np.linalg.norm(change, axis=1)
    assert (far <= attack.radius(8, 8) * 1.0001 + 1e-6).all()
    assert far.max() > 0


@pytest.mark.parametrize(("norm", "dual"), [("linf", 1), ("l2", 2)])
def test_a_linear_model_falls_exactly_where_geometry_says(norm: str, dual: int) -> None:
    """With two classes and scores 0 and w.x + b, the nearest wrong point is |margin| / |w| away."""
    rng = np.random.default_rng(3)
    weights = torch.from_numpy(rng.normal(size=12)).float()
    pixels = torch.from_numpy(rng.uniform(0.4, 0.6, (200, 3, 2, 2))).float()
    offset = (pixels.flatten(1) @ weights).median()

    def network(seen: torch.Tensor) -> torch.Tensor:
        margin = seen.flatten(1) @ weights - offset
        return torch.stack([torch.zeros_like(margin), margin], 1)

    labels = network(pixels).argmax(1)
    distance = network(pixels)[:, 1].abs() / torch.linalg.vector_norm(weights, ord=dual)
    radius = float(distance.median())
    found = descend(network, pixels, labels, norm=norm, radius=radius, steps=100, step=0.03)
    wrong = network(found).argmax(1) != labels
    clear = (distance - radius).abs() > 0.001 * radius
    assert torch.equal(wrong[clear], (distance < radius)[clear])
    assert 60 < int(wrong.sum()) < 140


@pytest.mark.parametrize("name", ["pgd.linf.12", "pgd.l2.18", "fgsm.linf.16", "fgsm.l2.20"])
def test_as_many_are_fooled_as_with_foolbox(digits, name: str) -> None:
    foolbox = pytest.importorskip("foolbox", exc_type=ImportError)
    [attack] = attacks_named(name)
    how = {"steps": attack.gradients, "rel_stepsize": attack.step, "random_start": False}
    peers = {
        ("pgd", "linf"): lambda: foolbox.attacks.LinfPGD(**how),
        ("pgd", "l2"): lambda: foolbox.attacks.L2PGD(**how),
        ("fgsm", "linf"): lambda: foolbox.attacks.FGSM(random_start=False),
        ("fgsm", "l2"): lambda: foolbox.attacks.FGM(random_start=False),
    }
    peer = peers[attack.kind, attack.norm]()
    wrapped = foolbox.PyTorchModel(digits.network, bounds=(0, 1), device="cpu")
    pixels = torch.from_numpy(digits.pictures.copy()).permute(0, 3, 1, 2).float().div(255)
    *_, theirs = peer(
        wrapped, pixels, torch.from_numpy(digits.labels), epsilons=attack.radius(8, 8)
    )
    ours = fooled(digits, attack)
    n, rate = len(ours), float(theirs.float().mean())
    assert 0.1 < rate < 0.9
    error = math.sqrt(rate * (1 - rate) / n)
    assert abs(ours.mean() - rate) <= 1.96 * error


@pytest.mark.parametrize("name", ["pgd.linf.12", "pgd.l2.18.20steps.random"])
def test_stopping_early_fools_as_many_with_less_work(digits, name: str) -> None:
    [attack] = attacks_named(name)
    seen = {True: 0, False: 0}
    rates = {}
    for early in seen:

        class Counted(nn.Module):
            def forward(self, pixels: torch.Tensor, early: bool = early) -> torch.Tensor:
                seen[early] += len(pixels)
                return digits.network(pixels)

        model = load(Counted(), size=8, channels=1)
        seen[early] = 0
        found = attacked(model, digits.pictures, attack, digits.labels, stop_early=early)
        pixels = torch.from_numpy(found).permute(0, 3, 1, 2)
        wrong = digits.network(pixels).argmax(1).numpy() != digits.labels
        rates[early] = wrong.mean()
    assert rates[True] == pytest.approx(rates[False], abs=0.01)
    assert seen[True] < 0.9 * seen[False]


def test_draws_belong_to_the_picture_and_the_seed(digits) -> None:
    attack = Attack("uniform", "l2", 30)
    keys = [f"digit {number}" for number in range(20)]
    whole = attacked(digits.model, digits.pictures[:20], attack, keys=keys, seed=1)
    part = attacked(digits.model, digits.pictures[13:16], attack, keys=keys[13:16], seed=1)
    assert np.array_equal(whole[13:16], part)
    other = attacked(digits.model, digits.pictures[:20], attack, keys=keys, seed=2)
    assert not np.array_equal(whole, other)


def test_uniform_noise_fills_the_ball(digits) -> None:
    grey = np.full((400, 8, 8, 1), 127, np.uint8)
    change = attacked(digits.model, grey, Attack("uniform", "linf", 10)) - 127 / 255
    assert np.abs(change).max() == pytest.approx(10 / 255, rel=0.01)
    assert change.std() == pytest.approx(10 / 255 / math.sqrt(3), rel=0.02)
    attack = Attack("uniform", "l2", 20)
    change = attacked(digits.model, grey, attack) - 127 / 255
    far = np.linalg.norm(change.reshape(400, -1), axis=1) / attack.radius(8, 8)
    # The part of a ball's volume within r is r to the number of dimensions.
    assert (far < 0.99).mean() == pytest.approx(0.99**64, abs=0.08)


def test_without_labels_it_leads_away_from_the_models_own_answer(digits) -> None:
    attack = Attack("pgd", "linf", 12)
    own = digits.model.logits(digits.pictures).argmax(1)
    without = attacked(digits.model, digits.pictures, attack)
    assert np.array_equal(without, attacked(digits.model, digits.pictures, attack, own))


@pytest.mark.parametrize("combine", ["max", "mean", "sum"])
def test_classes_made_of_several_outputs_are_attacked_as_classes(digits, combine) -> None:
    """Odd against even: an answer of 3 for a 5 is right, and must be attacked further."""
    parity = ClassSpace(
        ("even", "odd"), 10, (tuple(range(0, 10, 2)), tuple(range(1, 10, 2))), combine
    )
    attack, labels = Attack("pgd", "linf", 12), digits.labels % 2
    logits = attacked_logits(digits.model, digits.pictures, attack, labels, space=parity)
    wrong = parity.scores(logits).argmax(1) != labels
    logits = attacked_logits(digits.model, digits.pictures, attack, digits.labels)
    wrong_by_digit = parity.scores(logits).argmax(1) != labels
    assert wrong.sum() > wrong_by_digit.sum()
    subset = ClassSpace(("one", "seven"), 10, ((1,), (7,)))
    ones = digits.pictures[digits.labels == 1]
    strong = Attack("pgd", "linf", 40)
    logits = attacked_logits(digits.model, ones, strong, np.zeros(len(ones)), space=subset)
    assert (subset.scores(logits).argmax(1) == 1).any()


def test_a_model_without_gradients_is_refused_in_a_sentence(digits) -> None:
    function = load(lambda batch: batch.reshape(len(batch), -1)[:, :3].astype(float), name="flat")
    with pytest.raises(InputError, match=r"flat cannot be attacked with pgd.linf.2: .* gradients"):
        attacked(function, digits.pictures, Attack("pgd", "linf", 2))

    class Detached(nn.Module):
        def forward(self, pixels: torch.Tensor) -> torch.Tensor:
            return digits.network(pixels).detach()

    with pytest.raises(InputError, match="no gradient with respect to the pixels"):
        attacked(
            load(Detached(), size=8, channels=1), digits.pictures[:4], Attack("pgd", "linf", 2)
        )
