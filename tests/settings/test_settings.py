from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from PIL import Image

from shiftbed import InputError, models
from shiftbed.corruptions import corruption_names, severities, standard_severity
from shiftbed.data import ArraySet
from shiftbed.settings import (
    Shift,
    expand_braces,
    list_settings,
    list_suites,
    resolve,
    suite,
)
from shiftbed.settings.grammar import split_pattern

MINE = ArraySet("mine", np.zeros((4, 32, 32, 3), np.uint8), labels=[0, 1, 2, 0])
DIGITS = ArraySet("mnist-test", np.zeros((4, 28, 28), np.uint8), labels=[0, 1, 2, 0])
NOBODYS = ArraySet("nobodys", np.zeros((4, 32, 32, 3), np.uint8))


def names(patterns: Any, data: Any = (MINE, DIGITS), **how: Any) -> list[str]:
    return [setting.name for setting in resolve(patterns, data, **how)]


@pytest.mark.parametrize(
    "pattern",
    ["a", "{a,b}", "a{b,c}d{e,f}", "{a,{b,c}d}e", "{,a}b", "x{a,b{c,d{e,f}}}", "{1..4}.{b,a}"],
)
def test_braces_expand_as_in_bash(pattern: str) -> None:
    try:
        done = subprocess.run(
            ["bash", "-c", f"printf '%s\\n' {pattern}"], capture_output=True, text=True, check=True
        )
    except FileNotFoundError:
        pytest.skip("bash, whose braces these are compared with, is not here")
    assert expand_braces(pattern) == done.stdout.splitlines()


@pytest.mark.parametrize(
    ("pattern", "sentence"),
    [
        ("a{b", "opens a brace that is never closed"),
        ("a}b", "closes a brace that was never opened"),
        ("{" * 500 + "}" * 500, "braces within braces"),
        ("{1..99999}", "is too long"),
        ("{a,b}" * 18, "more than 100,000 names|braces within braces"),
        ("{0..9999}{0..9999}", "more than 100,000 names"),
        ("fog.{1," + "[" * 30_000 + "}", "has 30,004 characters; expected at most 4,096"),
    ],
)
def test_brace_mistakes(pattern: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        expand_braces(pattern)


@given(st.text(alphabet="ab{},.1+*@/", max_size=30))
def test_any_braces_expand_or_are_refused(text: str) -> None:
    try:
        expanded = expand_braces(text)
    except InputError:
        return
    assert expanded
    assert not any(char in name for name in expanded for char in "{}")


@hypothesis_settings(deadline=None)
@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=30))
def test_any_pattern_is_resolved_or_refused(text: str) -> None:
    try:
        found = names(text)
    except InputError:
        return
    assert found or not text


@given(st.lists(st.sampled_from("abc+/."), max_size=12).map("".join))
def test_a_pattern_is_split_and_joined(text: str) -> None:
    head, tail = split_pattern(text)
    assert (head if tail is None else f"{head}+{tail}") == text


@hypothesis_settings(deadline=None, max_examples=60)
@given(
    variant=st.sampled_from(["imagenet-c", "cifar-c", "tiny-imagenet-c", "mnist-c"]),
    data=st.data(),
)
def test_a_name_means_itself(variant: str, data: st.DataObject) -> None:
    """A setting's name, read again, is the same setting: the round trip of the grammar."""
    corruption = data.draw(st.sampled_from(corruption_names(variant, extra=True)))
    steps = severities(corruption, variant)
    step = data.draw(st.sampled_from([None, *steps] if steps else [None]))
    pattern = f"mine+{corruption}{'' if step is None else f'.{step}'}@{variant}"
    for setting in resolve(pattern, MINE):
        [again] = resolve(setting.name, MINE)
        assert again.shift == setting.shift
        assert again.name == setting.name
        assert setting.shift is not None
        assert setting.shift.variant == variant
        if step is not None and step != standard_severity(corruption, variant):
            assert setting.shift.severity == step


def test_the_grammar() -> None:
    assert names("mnist-test+{clean,fog,zigzag}") == [
        "mnist-test",
        "mnist-test+fog",
        "mnist-test+zigzag",
    ]
    assert names("mine+fog.*") == [f"mine+fog.{step}" for step in range(1, 6)]
    assert names("mine+fog") == names("mine+fog.*")
    assert len(names("mine+*")) == 75
    assert len(names("mine+*_noise.3")) == 3
    assert names("mine+extra.1") == [
        f"mine+{name}.1" for name in ("speckle_noise", "gaussian_blur", "spatter", "saturate")
    ]
    assert names("+fog.1") == ["mine+fog.1", "mnist-test+fog.1"]
    assert names(["mine", "mine+clean", "mine"]) == ["mine"]
    [standard] = resolve("mnist-test+shear.2", DIGITS)
    assert standard.name == "mnist-test+shear"
    [other] = resolve("mine+fog.3@cifar-c", MINE)
    assert other.shift == Shift("fog", 3, "cifar-c")
    assert other.clean == "mine"


def test_suites() -> None:
    assert len(names("imagenet-c", MINE)) == 76
    assert names("imagenet-c", MINE)[0] == "mine"
    assert len(names("mnist-c", DIGITS)) == 16
    assert len(names("all", MINE)) == 1 + 75 + 20
    assert names("cifar-c", MINE)[1] == "mine+gaussian_noise.1@cifar-c"
    assert len(names(["imagenet-c", "imagenet-c-extra"], MINE)) == 1 + 75 + 20
    assert {one.name for one in list_suites()} >= {
        "imagenet-c", "imagenet-c-extra", "mnist-c", "cifar-c", "tiny-imagenet-c", "all",
    }  # fmt: skip
    for one in list_suites():
        if one.of_sets:  # these need sets that nobody has by chance
            continue
        assert names(one.name, MINE if one.variant != "mnist-c" else DIGITS)
        assert one.about
        assert one.score in ("mce", "accuracy")
    with pytest.raises(InputError, match="did you mean imagenet-c"):
        suite("imagnet-c")


def test_listing_opens_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    from shiftbed.data import catalogue

    monkeypatch.setattr(catalogue, "open_set", None)
    listed = list_settings()
    assert "mnist-test+zigzag" in listed
    assert "imagenet-photos+fog.3" in listed
    assert list_settings("imagenet-photos+fog.*")[0] == "imagenet-photos+fog.1"
    assert list_settings("*-photos+fog.1") == ["imagenet-photos+fog.1", "natural-photos+fog.1"]
    assert list_settings("mine+{clean,fog.2}") == ["mine", "mine+fog.2"]
    with pytest.raises(InputError, match=r"no image set or suite 'photos\*'"):
        list_settings("photos*")
    assert list_settings("imagenet-c")[1] == "SET+gaussian_noise.1"


@pytest.mark.parametrize(
    ("pattern", "data", "sentence"),
    [
        ("mnist-test+fgo", DIGITS, "no corruption of mnist-c 'fgo'; did you mean fog"),
        ("mine+zigzag", MINE, "no corruption of imagenet-c 'zigzag'"),
        ("mine+fog.9", MINE, "has severities 1 to 5; '9' is none of them"),
        ("mnist-test+zigzag.1", DIGITS, "has no severities; '1' is none of them"),
        ("mine+fog@imagnet-c", MINE, "no variant of the corruptions .* did you mean imagenet-c"),
        ("mien+fog", MINE, "no image set or suite 'mien'; did you mean mine"),
        ("imagenet-d", MINE, "did you mean imagenet-"),
        ("imagenet-c", None, "needs an image set: name one with data"),
        ("+fog", None, "needs an image set: name one with data"),
        ("zzz*", MINE, "no image set or suite 'zzz.*'"),
        ("mine+{fog", MINE, "opens a brace that is never closed"),
        ("mine", [MINE, MINE], "two of the image sets given are called 'mine'"),
        ("x/y+fog.1", None, "x/y does not exist; expected a folder"),
        ([], MINE, "names no setting"),
        ("", MINE, "names no setting"),
    ],
)
def test_every_mistake_is_one_sentence(pattern: Any, data: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence) as caught:
        resolve(pattern, data)
    assert "\n" not in str(caught.value)


def test_the_users_own_folder_is_named_and_found(tmp_path: Path) -> None:
    folder = tmp_path / "pets" / "val"
    (folder / "cat").mkdir(parents=True)
    Image.fromarray(np.zeros((4, 4, 3), np.uint8)).save(folder / "cat" / "a.png")
    assert names("+fog.3", folder) == ["pets+fog.3"]
    assert names("pets+fog.3", str(folder)) == ["pets+fog.3"]
    assert names("+fog.3", f"mine={folder}") == ["mine+fog.3"]
    assert names("+fog.3", {"other": folder}) == ["other+fog.3"]
    assert names(f"{folder}+fog.3", None) == ["pets+fog.3"]
    assert names(["+clean", f"{folder}+fog.3"], {"other": folder}) == ["other", "pets+fog.3"]


def test_a_set_may_go_by_another_name() -> None:
    [setting] = resolve("other+fog", {"other": DIGITS})
    assert setting.name == "other+fog"
    assert setting.shift == Shift("fog", None, "mnist-c")
    assert DIGITS.name == "mnist-test"
    for name in ("a+b", "a{b", "", "a*"):
        with pytest.raises(InputError, match="an image set cannot be called"):
            resolve("+fog", ArraySet(name, np.zeros((1, 8, 8), np.uint8)))


def test_class_spaces_of_settings(tmp_path: Path) -> None:
    def ten(batch: np.ndarray) -> np.ndarray:
        return np.eye(10)[batch[:, 0, 0, 0] % 10]

    [setting] = resolve("mine", MINE)
    with pytest.raises(InputError, match="ten has 10 outputs and mine has 3 classes"):
        setting.class_space(models.load(ten))
    named = models.load(ten, classes=[str(digit) for digit in range(9, -1, -1)])
    assert setting.class_space(named).members == ((9,), (8,), (7,))
    (tmp_path / "map.csv").write_text("class,output\n0,4\n0,5\n1,6\n2,7\n")
    [mapped] = resolve("mine", MINE, class_map=tmp_path / "map.csv", combine="mean")
    space = mapped.class_space(models.load(ten))
    assert (space.members, space.combine) == (((4, 5), (6,), (7,)), "mean")
    [unlabelled] = resolve("nobodys", NOBODYS)
    assert unlabelled.metric == "agreement"
    assert unlabelled.class_space(named).classes == tuple(str(digit) for digit in range(9, -1, -1))
    several = ArraySet(
        "several", np.zeros((1, 8, 8), np.uint8), np.array([[True, True]]), ["a", "b"]
    )
    [setting] = resolve("several", several)
    assert setting.class_space(models.load(lambda b: np.zeros((len(b), 2)))).multilabel
