from __future__ import annotations

from pathlib import Path

import pytest

from shiftbed.augment import Augmentation
from shiftbed.errors import InputError
from shiftbed.train import Recipe, read_recipe, recipes
from shiftbed.train.source import made_of


@pytest.mark.parametrize("name", recipes())
def test_a_recipe_is_whole(name: str) -> None:
    recipe = read_recipe(name)
    assert recipe.name == name
    assert len(recipe.about) > 20
    for step in (*recipe.augment, *recipe.preprocess):
        if step["kind"] != "stylized":  # needs weights that nobody may pass on
            assert isinstance(made_of(step), Augmentation)


def test_the_papers_interventions_are_there() -> None:
    assert {
        *("plain", "uniform-noise", "speckle-noise", "gaussian-noise", "fgsm", "pgd", "zero-step"),
        *("stability", "augmix", "clahe", "random-erasing", "finetune"),
    } <= set(recipes())


def test_a_recipe_of_ones_own(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('epochs = 4\nmilestones = [2, 3]\naugment = [{kind = "augmix", width = 2}]\n')
    recipe = read_recipe(file, {"rate": "0.5", "mirror": "yes", "classes": "cat, dog"})
    assert (recipe.name, recipe.epochs, recipe.milestones) == ("mine", 4, (2, 3))
    assert (recipe.rate, recipe.mirror, recipe.classes) == (0.5, True, ("cat", "dog"))
    assert recipe.augment == ({"kind": "augmix", "width": 2},)


def test_what_a_digest_tells_apart() -> None:
    recipe = read_recipe("plain")
    assert recipe.digest == Recipe("other name", crop="pad", mirror=True).digest
    assert len({read_recipe("plain", {"seed": seed}).digest for seed in (0, 1, 2)}) == 3


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("epochs = 0", "epochs of the recipe mine is 0; expected 1 to 100000"),
        ('epochs = "many"', "epochs is 'many'; expected a whole number"),
        ("mirror = 1", "mirror is 1; expected yes or no"),
        ("rate = true", "rate is True; expected a number"),
        ("architecture = 3", "architecture is 3; expected a text"),
        ('loss = "plane"', "there is no loss for the recipe mine: 'plane'; did you mean plain?"),
        ("milestone = [1]", "says milestone, which no recipe has; did you mean milestones?"),
        ("augment = [3]", "augment of the recipe mine has 3; expected tables with a kind"),
        ("milestones = 3", "milestones is 3; expected a list"),
        ("epochs 3", "is not TOML"),
    ],
)
def test_a_mistake_is_one_sentence(text: str, sentence: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(text)
    with pytest.raises(InputError) as problem:
        read_recipe(file)
    assert sentence in str(problem.value)
    assert "\n" not in str(problem.value)


def test_an_unknown_recipe() -> None:
    with pytest.raises(InputError, match="there is no recipe 'plan'; did you mean plain"):
        read_recipe("plan")
    with pytest.raises(InputError, match=r"cannot read the recipe no/such\.toml"):
        read_recipe("no/such.toml")
