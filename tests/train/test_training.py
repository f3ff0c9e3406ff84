from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import shiftbed as sb
from shiftbed.data import ArraySet
from shiftbed.errors import InputError
from shiftbed.models import load
from shiftbed.train import Recipe, read_recipe, recipes, train
from shiftbed.train.loop import Progress
from shiftbed.train.losses import LOSSES

from .conftest import CLASSES, sides

TINY: dict[str, Any] = {"architecture": "resnet8-4", "batch": 32, "epochs": 1}


class Stopped(Exception):  # noqa: N818 - as a signal would, it stops a training
    pass


def weights_of(folder: Path) -> bytes:
    return (folder / "model.safetensors").read_bytes()


def test_it_learns_and_evaluates_as_it_was_trained(
    pictures: ArraySet, unseen: ArraySet, tmp_path: Path
) -> None:
    folder = tmp_path / "sides"
    card = train("plain", pictures, folder, test=unseen, **{**TINY, "epochs": 8, "mirror": False})
    assert card.history[-1]["loss"] < card.history[0]["loss"]
    assert card.accuracy is not None
    assert card.accuracy > 0.9
    # The card's number and the evaluation's are of the same geometry and normalisation.
    run = sb.evaluate(f"trained:{folder}", None, unseen, results=tmp_path / "results", quiet=True)
    assert run.table()["accuracy"].to_pylist() == [card.accuracy]
    model = load(f"trained:{folder}")
    assert (model.outputs, model.class_keys, model.differentiable) == (3, CLASSES, True)
    assert model.tags["recipe"] == "plain"
    told = json.loads((folder / "card.json").read_text())
    assert told["data"]["fingerprint"] == pictures.fingerprint()
    assert told["versions"]["torch"] == torch.__version__
    assert len(told["history"]) == 8
    page = (folder / "README.md").read_text()
    assert card.weights is not None
    assert card.weights in page
    assert "| 8 |" in page


@pytest.mark.parametrize("name", [name for name in recipes() if not read_recipe(name).needs_start])
def test_every_recipe_trains(name: str, pictures: ArraySet, tmp_path: Path) -> None:
    recipe = read_recipe(name, TINY | {"size": 32, "steps": 2})
    if any("weights" in step or step["kind"] == "stylized" for step in recipe.augment):
        pytest.skip("needs weights that are not passed on")
    card = train(replace(recipe, epochs=1), pictures, tmp_path / name)
    assert np.isfinite(card.history[0]["loss"])
    answers = load(f"trained:{tmp_path / name}").logits(np.zeros((2, 32, 32, 3), np.uint8))
    assert answers.shape == (2, 3)


def test_what_is_done_to_all_pictures_is_done_in_evaluation(
    pictures: ArraySet, tmp_path: Path
) -> None:
    train("clahe", pictures, tmp_path / "a", test=pictures, **TINY)
    model = load(f"trained:{tmp_path / 'a'}")
    assert not model.differentiable  # the equalising has no gradients
    run = sb.evaluate(model, None, pictures, results=tmp_path / "results", quiet=True)
    card = json.loads((tmp_path / "a" / "card.json").read_text())
    assert run.table()["accuracy"].to_pylist() == [card["history"][-1]["test_accuracy"]]


@pytest.mark.parametrize(
    ("recipe", "architecture"),
    [("plain", "shakeshake11-2x2"), ("augmix", "resnet8-4"), ("pgd", "resnet8-4")],
)
def test_stopped_at_any_step_it_ends_with_the_same_bits(
    recipe: str, architecture: str, pictures: ArraySet, tmp_path: Path
) -> None:
    how = {**TINY, "architecture": architecture, "epochs": 2, "steps": 2, "size": 16}
    train(recipe, pictures, tmp_path / "whole", **how)

    def stop_at(step: int) -> Any:
        def watch(progress: Progress) -> None:
            if progress.step == step:
                raise Stopped

        return watch

    for step in (2, 5):  # within the first pass, and within the second
        with pytest.raises(Stopped):
            train(recipe, pictures, tmp_path / "cut", minutes=0, watch=stop_at(step), **how)
    seen = []
    train(recipe, pictures, tmp_path / "cut", watch=lambda told: seen.append(told.step), **how)
    assert seen == [5, 6]
    assert weights_of(tmp_path / "cut") == weights_of(tmp_path / "whole")


def test_workers_change_no_bit_and_a_seed_does(pictures: ArraySet, tmp_path: Path) -> None:
    for name, changed in (("none", {}), ("two", {"workers": 2}), ("seed", {"seed": 1})):
        train("augmix", pictures, tmp_path / name, **TINY, size=16, **changed)
    assert weights_of(tmp_path / "none") == weights_of(tmp_path / "two")
    assert weights_of(tmp_path / "none") != weights_of(tmp_path / "seed")


def test_killed_it_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    images = sides(96, seed=3)
    pixels = np.stack([images.load(place) for place in range(len(images))])
    np.savez(tmp_path / "sides.npz", images=pixels, labels=images.labels, classes=CLASSES)
    program = [sys.executable, "-m", "shiftbed", "train", "run", "plain", "--data", "sides.npz"]
    program += ["-a", "shakeshake11-2x2", "--epochs", "25", "--set", "batch=16", "-q", "-o"]
    subprocess.run([*program, "whole"], cwd=tmp_path, check=True, capture_output=True)
    killed = subprocess.Popen([*program, "killed"], cwd=tmp_path)
    checkpoint = tmp_path / "killed" / "checkpoint.pt"
    end = time.monotonic() + 120
    while not checkpoint.exists() and killed.poll() is None and time.monotonic() < end:
        time.sleep(0.01)
    killed.send_signal(signal.SIGKILL)
    assert killed.wait() == -signal.SIGKILL
    assert not (tmp_path / "killed" / "card.json").exists()
    subprocess.run([*program, "killed"], cwd=tmp_path, check=True, capture_output=True)
    assert weights_of(tmp_path / "killed") == weights_of(tmp_path / "whole")


def test_a_finished_training_is_not_done_again(pictures: ArraySet, tmp_path: Path) -> None:
    first = train("plain", pictures, tmp_path / "a", **TINY)
    steps: list[Progress] = []
    again = train("plain", pictures, tmp_path / "a", watch=steps.append, **TINY)
    assert not steps
    assert again.weights == first.weights
    with pytest.raises(InputError, match="holds a training of another recipe, seed, set"):
        train("plain", pictures, tmp_path / "a", **{**TINY, "seed": 7})


def test_a_head_for_some_classes_from_weights_for_all(pictures: ArraySet, tmp_path: Path) -> None:
    train("plain", pictures, tmp_path / "all", **TINY)
    how = {**TINY, "rate": 0.0, "weight_decay": 0.0, "classes": ("both", "left")}
    card = train("finetune", pictures, tmp_path / "two", start=tmp_path / "all", **how)
    assert card.model["classes"] == ["both", "left"]
    assert card.data["pictures"] == 64
    old, new = (load(f"trained:{tmp_path / name}").module for name in ("all", "two"))
    assert old is not None
    assert new is not None
    before, after = old.state_dict(), new.state_dict()
    convolutions = [key for key in before if before[key].ndim == 4 and "mean" not in key]
    kept = [key for key in convolutions if "network" in key]
    assert kept
    assert all(torch.equal(before[key], after[key]) for key in kept)  # the rate is 0
    assert load(f"trained:{tmp_path / 'two'}").outputs == 2


def test_the_radius_is_drawn_for_each_picture() -> None:
    shown = []

    class Spy(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(192, 2)

        def forward(self, pixels: torch.Tensor) -> torch.Tensor:
            shown.append(pixels.detach())
            answer: torch.Tensor = self.layer(pixels.flatten(1))
            return answer

    pixels = torch.full((64, 1, 3, 8, 8), 0.5)
    labels = torch.arange(64) % 2
    for steps in (0, 1, 4):
        shown.clear()
        recipe = Recipe("r", loss="adversarial", eps=8, steps=steps)
        LOSSES["adversarial"](Spy(), pixels, labels, recipe)
        assert len(shown) == steps + 1
        reach = (shown[-1] - 0.5).abs().amax((1, 2, 3)) * 255
        assert reach.max() <= 8.001
        assert reach.min() < 2 < 6 < reach.max()
        fixed = replace(recipe, eps_drawn=False)
        LOSSES["adversarial"](Spy(), pixels, labels, fixed)
        assert ((shown[-1] - 0.5).abs().amax((1, 2, 3)) * 255).min() > 7


def mistakes() -> list[Any]:
    return [
        pytest.param({"rate": 1e3, "epochs": 30, "warmup": 0}, "the loss is", id="not finite"),
        pytest.param({"start": "no/such.pt"}, "there is no checkpoint no/such.pt", id="no weights"),
        pytest.param({"architecture": "resnet9"}, "resnet9 cannot have 9 layers", id="depth"),
        pytest.param({"architecture": "vgg16"}, "there is no architecture 'vgg16'", id="network"),
        pytest.param({"architecture": "timm:resnet"}, "there is no timm model", id="timm"),
        pytest.param({"classes": ("up",)}, "lacks the class up", id="classes"),
        pytest.param({"precision": "fp16"}, "precision fp16 cannot be had", id="precision"),
        pytest.param({"device": "tpu"}, "the device for training is 'tpu'", id="device"),
        pytest.param({"augment": "blurr"}, "there is no augmentation 'blurr'", id="augmentation"),
        pytest.param({"channels": 2}, "channels of the recipe plain is 2", id="channels"),
    ]


@pytest.mark.parametrize(("changes", "sentence"), mistakes())
def test_a_mistake_is_one_sentence(
    changes: dict[str, Any], sentence: str, pictures: ArraySet, tmp_path: Path
) -> None:
    with pytest.raises(InputError) as problem:
        train("plain", pictures, tmp_path / "a", **{**TINY, **changes})
    assert sentence in str(problem.value)
    assert "\n" not in str(problem.value)
    assert not (tmp_path / "a" / "card.json").exists()


def test_mistakes_about_weights_and_pictures(pictures: ArraySet, tmp_path: Path) -> None:
    train("plain", pictures, tmp_path / "a", **TINY)
    grey = sides(30, seed=4, channels=1)
    with pytest.raises(InputError, match="take pictures of 3 channels, and these have 1; set"):
        train("finetune", grey, tmp_path / "b", start=tmp_path / "a", **TINY)
    changed = {**TINY, "architecture": "resnet14-4"}
    with pytest.raises(InputError, match=r"lack .* that the architecture has"):
        train("finetune", pictures, tmp_path / "b", start=tmp_path / "a", **changed)
    with pytest.raises(InputError, match="goes on from weights, and none were given"):
        train("finetune", pictures, tmp_path / "b", **TINY)
    other = ArraySet("other", np.zeros((3, 12, 12, 3), np.uint8), [0, 1, 2], "abc")
    with pytest.raises(InputError, match="has other classes than"):
        train("plain", pictures, tmp_path / "b", test=other, **TINY)
    with pytest.raises(InputError, match="has no labels; a training needs one label"):
        train("plain", ArraySet("bare", np.zeros((3, 12, 12), np.uint8)), tmp_path / "b", **TINY)
    wide = ArraySet("wide", np.zeros((3, 9, 12), np.uint8), [0, 1, 0])
    with pytest.raises(InputError, match="12 px wide and 9 px high; say the side"):
        train("plain", wide, tmp_path / "b", **TINY)
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "checkpoint.pt").write_bytes(b"not a checkpoint")
    with pytest.raises(InputError, match=r"cannot be read .* delete it to begin anew"):
        train("plain", pictures, tmp_path / "c", **TINY)
    with pytest.raises(InputError, match=r"holds no card.json \(a training in it is not finished"):
        load(f"trained:{tmp_path / 'c'}")


def test_pictures_larger_than_the_network_sees(tmp_path: Path) -> None:
    large = sides(40, seed=5, side=48)
    card = train("plain", large, tmp_path / "a", **TINY, size=16, crop="resized", test=large)
    assert card.accuracy is not None
    run = sb.evaluate(f"trained:{tmp_path / 'a'}", None, large, results=tmp_path / "r", quiet=True)
    assert run.table()["accuracy"].to_pylist() == [card.accuracy]
