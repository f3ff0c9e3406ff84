"""Models that are used wrongly are told from those that are used rightly, on real pictures."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shiftbed as sb
from shiftbed import data, models
from shiftbed.data import ArraySet, ImageSet
from shiftbed.errors import InputError
from shiftbed.evaluation import Preparation, as_json, check_preparation
from shiftbed.evaluation.preparation import better_order
from shiftbed.models import Model

Batch = np.ndarray


@cache
def opened(name: str) -> ImageSet:
    try:
        return data.open_set(name)
    except InputError as problem:
        if "cannot fetch" in str(problem) or "not on this machine" in str(problem):
            pytest.skip(str(problem))
        raise


@cache
def means() -> np.ndarray:
    """The mean digit of each class, of MNIST's first 10,000 training digits."""
    train = opened("mnist-train")
    assert train.labels is not None
    digits = np.stack([train.load(index) for index in range(10_000)]).reshape(10_000, -1)
    labels = train.labels[:10_000]
    return np.stack([digits[labels == one].mean(axis=0) for one in range(10)]) / 255


def nearest(batch: Batch) -> np.ndarray:
    """Tell digits by the nearest mean: right on four of five."""
    pixels = batch.reshape(len(batch), -1) / 255
    return -((pixels[:, None] - means()) ** 2).sum(axis=2) / 8


ORDER = np.random.default_rng(1).permutation(10)
MISTAKES: dict[str, tuple[Callable[[Batch], np.ndarray], str]] = {
    "another order": (lambda batch: nearest(batch)[:, ORDER], "another order"),
    "one further": (lambda batch: np.roll(nearest(batch), 1, axis=1), "one further"),
    "one earlier": (lambda batch: np.roll(nearest(batch), -1, axis=1), "one earlier"),
    "inverted": (lambda batch: nearest(255 - batch), "light and dark swapped"),
    "lying": (lambda batch: nearest(batch.swapaxes(1, 2)), "height and width swapped"),
}


@pytest.mark.parametrize("limit", [60, 200, 1_000])
def test_a_model_that_is_used_rightly_is_not_doubted(limit: int) -> None:
    model = models.load(nearest, outputs=10, channels=1, size=28)
    found = check_preparation(model, opened("mnist-test"), limit=limit)
    assert found.doubts() == []
    assert found.as_it_is.n == limit
    assert found.as_it_is.value > 0.7
    assert len(found.alternatives) >= 7


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_named(mistake: str) -> None:
    function, about = MISTAKES[mistake]
    model = models.load(function, outputs=10, channels=1, size=28, name="mine")
    found = check_preparation(model, opened("mnist-test"), limit=300)
    assert not found.sound
    better = [one for one in found.alternatives if one.better]
    assert any(about in one.about and one.accuracy > 0.7 for one in better), found.doubts()
    assert any(about in doubt for doubt in found.doubts())


def test_guessing_is_told_and_no_order_is_made_up() -> None:
    def guess(batch: Batch) -> np.ndarray:
        return np.stack([np.sin(batch.sum(axis=(1, 2, 3)) * (k + 1.0)) for k in range(10)], 1)

    model = models.load(guess, outputs=10, channels=1, size=28, name="guess")
    found = check_preparation(model, opened("mnist-test"), limit=400)
    assert found.at_chance
    [doubt] = found.doubts()
    assert "no better than guessing (10.0%)" in doubt


def test_an_order_is_not_learnt_from_noise() -> None:
    rng = np.random.default_rng(0)
    for classes, n in ((10, 200), (100, 300), (1_000, 2_000)):
        scores = rng.normal(size=(n, classes)).astype(np.float32)
        labels = rng.integers(0, classes, n)
        learnt = better_order(scores, labels)
        assert learnt is not None
        assert (learnt.argmax(axis=1) == labels).mean() < 3 / classes + 0.02
    assert better_order(np.eye(5, dtype=np.float32), np.arange(5)) is None  # one of each


def test_an_evaluation_warns_where_it_is_read(tmp_path: Path) -> None:
    digits = opened("mnist-test")
    assert digits.labels is not None
    some = ArraySet(
        "digits",
        np.stack([digits.load(index) for index in range(600)]),
        digits.labels[:600],
        digits.classes,
    )
    how: dict[str, Any] = {"outputs": 10, "channels": 1, "size": 28, "quiet": True}
    shuffled = MISTAKES["another order"][0]
    two = {"right": nearest, "wrong": shuffled}
    run = sb.evaluate(two, ["+{clean,contrast.5}"], some, results=tmp_path, **how)
    doubts = run.doubts()
    assert doubts
    assert all(doubt.startswith("wrong on digits:") for doubt in doubts)
    assert any("with its classes in another order it would be right on" in one for one in doubts)
    assert "IN DOUBT: wrong on digits" in " ".join(str(run).split())
    assert json.loads(as_json(run))["doubts"] == doubts


def test_a_set_that_is_meant_to_be_hard_is_not_doubted(tmp_path: Path) -> None:
    digits = opened("mnist-test")
    assert digits.labels is not None
    wrong = nearest(np.stack([digits.load(index) for index in range(900)])).argmax(axis=1)
    hard = np.flatnonzero(wrong != digits.labels[:900])
    pictures = np.stack([digits.load(int(index)) for index in hard])
    card = data.Card("hard", clean="mnist-test")
    adversarial = ArraySet("hard", pictures, digits.labels[hard], digits.classes)
    vars(adversarial)["card"] = card
    how: dict[str, Any] = {"outputs": 10, "channels": 1, "size": 28, "quiet": True}
    run = sb.evaluate({"net": nearest}, data=adversarial, results=tmp_path, **how)
    assert run.table()["accuracy"].to_pylist() == [0.0]
    assert run.doubts() == []


# Pretrained networks on photographs


def network(name: str, **options: Any) -> Model:
    try:
        return models.load(f"package:{name}", **options)
    except InputError as problem:
        if "cannot fetch" in str(problem) or "not on this machine" in str(problem):
            pytest.skip(str(problem))
        raise


def checked(model: Model) -> Preparation:
    photos = opened("imagenet-photos")
    space = data.match_classes(photos.classes, model.class_keys, model.outputs)
    return check_preparation(model, photos, space)


def blue_first(model: Model) -> Model:
    import torch

    class Swapped(torch.nn.Module):
        def forward(self, pixels: torch.Tensor) -> torch.Tensor:
            assert model.module is not None
            return model.module(pixels.flip(1))

    return replace(model, predict=lambda b: model.predict(b[..., ::-1]), module=Swapped())


#: Both ImageNet's normalisation and the network's own, (x - 127) / 128, one after the other.
TWICE = {"mean": (0.5991, 0.5676, 0.5181), "std": (0.1149, 0.1124, 0.1129)}
IMAGENETS = {"mean": (0.485, 0.456, 0.406), "std": (0.229, 0.224, 0.225)}


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["efficientnet_lite0", "efficientnet_lite1", "resnet50_keras", "squeezenet1_1_keras"]
)
def test_pretrained_networks_are_used_rightly(name: str) -> None:
    found = checked(network(name))
    assert found.doubts() == []
    assert len(found.alternatives) >= 12


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wrong", "about"),
    [
        (lambda: blue_first(network("resnet50_keras")), "red and blue swapped"),
        (lambda: network("efficientnet_lite0", **TWICE), "less (it normalises by itself)"),
        (lambda: network("resnet50_keras", **IMAGENETS), "pixels as Caffe has them"),
        (lambda: network("resnet50_keras", mean=0.0, std=1.0), "pixels as Caffe has them"),
        (lambda: network("resnet50_keras", resize=512), "crop"),
    ],
    ids=["BGR", "normalised twice", "of another library", "not normalised", "a close crop"],
)
def test_a_mistake_with_a_pretrained_network_is_named(
    wrong: Callable[[], Model], about: str
) -> None:
    found = checked(wrong())
    assert any(one.better and about in one.about for one in found.alternatives), found


def test_the_command_says_it_and_exits_with_1(tmp_path: Path) -> None:
    digits = opened("mnist-test")
    assert digits.labels is not None
    some = np.stack([digits.load(index) for index in range(400)])
    np.savez(tmp_path / "digits.npz", images=some, labels=digits.labels[:400])
    np.save(tmp_path / "means.npy", means())
    (tmp_path / "own.py").write_text(
        "import numpy as np\nmeans = np.load('means.npy')\n"
        "def right(): return lambda b: -((b.reshape(len(b), 1, -1) / 255 - means)**2).sum(2)\n"
        "def wrong():\n    r = right()\n    return lambda b: r(255 - b)\n"
    )

    def ran(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "shiftbed", "check", *words, "--size", "28"]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    right = ran("python:own:right,channels=1", "--data", "digits.npz")
    assert right.returncode == 0, right.stderr
    assert "other ways is better" in right.stdout
    wrong = ran("python:own:wrong,channels=1", "--data", "digits.npz")
    assert wrong.returncode == 1
    assert "light and dark swapped" in wrong.stdout
    told = json.loads(ran("python:own:wrong,channels=1", "-d", "digits.npz", "--json").stdout)
    assert told[0]["doubts"]
    (tmp_path / "flat").mkdir()
    refused = ran("python:own:right,channels=1", "--data", "flat")
    assert refused.returncode == 2
    assert "Traceback" not in refused.stderr
