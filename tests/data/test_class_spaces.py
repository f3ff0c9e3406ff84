from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shiftbed import InputError
from shiftbed.data import (
    ClassSpace,
    imagenet_classes,
    imagenet_names,
    match_classes,
    read_class_map,
)

LOGITS = np.array([[1.0, 2.0, 0.0, -1.0], [0.0, 0.0, 3.0, 3.0]])


def test_full_and_subset_by_hand() -> None:
    full = match_classes(["a", "b", "c", "d"], None, 4)
    assert full.kind == "full"
    assert full.scores(LOGITS).tolist() == LOGITS.tolist()
    subset = match_classes(["d", "b"], ["a", "b", "c", "d"], 4)
    assert subset.kind == "subset"
    assert subset.members == ((3,), (1,))
    assert subset.scores(LOGITS).tolist() == [[-1.0, 2.0], [3.0, 0.0]]


@pytest.mark.parametrize(
    ("combine", "expected"),
    [
        ("max", [[1.0, 2.0], [3.0, 0.0]]),
        # of the exponentials, that is of the probabilities: e + 1, (e + 1) / 2
        ("sum", [[math.log(math.e + 1), 2.0], [math.log(1 + math.e**3), 0.0]]),
        ("mean", [[math.log((math.e + 1) / 2), 2.0], [math.log((1 + math.e**3) / 2), 0.0]]),
    ],
)
def test_superclasses_by_hand(combine: Any, expected: list[list[float]]) -> None:
    space = ClassSpace(("x", "y"), 4, ((0, 2), (1,)), combine)
    assert space.kind == "superclass"
    np.testing.assert_allclose(space.scores(LOGITS), expected, rtol=1e-6)


@given(
    logits=st.lists(st.lists(st.floats(-30, 30), min_size=5, max_size=5), min_size=1, max_size=4),
    order=st.permutations(range(5)),
)
def test_sums_are_sums_of_probabilities_and_orders_do_not_matter(
    logits: list[list[float]], order: list[int]
) -> None:
    values = np.array(logits)
    probabilities = np.exp(values - values.max(1, keepdims=True))
    probabilities /= probabilities.sum(1, keepdims=True)
    space = ClassSpace(("x", "y", "z"), 5, ((0, 3), (1,), (2, 4)), "sum")
    scores = space.scores(values).astype(float)
    ours = np.exp(scores - scores.max(1, keepdims=True))
    ours /= ours.sum(1, keepdims=True)
    theirs = np.stack(
        [probabilities[:, [0, 3]].sum(1), probabilities[:, 1], probabilities[:, [2, 4]].sum(1)], 1
    )
    np.testing.assert_allclose(ours, theirs, atol=1e-5)
    # Outputs in another order, and the members renamed with them: the same scores.
    place = {old: new for new, old in enumerate(order)}
    moved = ClassSpace(
        ("x", "y", "z"), 5, ((place[0], place[3]), (place[1],), (place[2], place[4])), "sum"
    )
    np.testing.assert_allclose(moved.scores(values[:, order]), scores, rtol=1e-5, atol=1e-5)


def test_huge_logits_do_not_overflow() -> None:
    space = ClassSpace(("x", "y"), 3, ((0, 1), (2,)), "sum")
    assert np.isfinite(space.scores([[1e30, 1e30, -1e30]])).all()


def test_wordnet_ids_names_and_words() -> None:
    keys = imagenet_classes()
    for classes in (
        ["n01443537", "n01440764"],
        ["goldfish", "tench"],
        ["Carassius_auratus", "Tinca tinca"],
        ["GOLDFISH", "tench, Tinca tinca"],
    ):
        assert match_classes(classes, keys, 1000).members == ((1,), (0,))
    named = [", ".join(words) for words in imagenet_names().values()]
    assert match_classes(["n01443537"], named, 1000).members == ((1,),)
    # By name alone two of the thousand are the same word, and that is refused.
    cranes = {"n02012849", "n03126707"}
    others = [index for index, key in enumerate(keys) if key not in cranes]
    space = match_classes([keys[index] for index in others], named, 1000)
    assert [output for (output,) in space.members] == others
    with pytest.raises(InputError, match=r"may mean several outputs of the model \(crane, crane\)"):
        match_classes(keys, named, 1000)


def test_the_thousand_classes_are_timms() -> None:
    from importlib.util import find_spec

    spec = find_spec("timm")
    if spec is None or spec.origin is None:
        pytest.skip("timm, whose list this one is compared with, is not installed")
    theirs = Path(spec.origin).parent / "data" / "_info" / "imagenet_synsets.txt"
    assert theirs.read_text().split() == list(imagenet_classes())
    assert imagenet_names()["n02012849"] == ("crane",)
    assert imagenet_names()["n03126707"] == ("crane",)


KEYS = imagenet_classes()
PETS = [f"breed_{number}" for number in range(37)]

REFUSALS: list[tuple[dict[str, Any], str]] = [
    (
        {"classes": PETS, "keys": None, "outputs": 1000, "model": "net", "images": "pets"},
        r"net has 1,000 outputs and pets has 37 classes \(breed_0, breed_1, breed_2, ...\), and "
        r"nothing says which output means which class; say what the outputs mean "
        r"\(classes=imagenet-1k, .*\), give a class map .*, "
        r"or take a model trained on these classes",
    ),
    (
        {"classes": PETS, "keys": KEYS, "outputs": 1000, "model": "net", "images": "pets"},
        r"37 of the 37 classes of pets .* are not among the 1,000 classes that net knows; name",
    ),
    (
        {"classes": ["goldfish", "goldfsh"], "keys": KEYS, "outputs": 1000},
        r"1 of the 2 classes of the image set \(goldfsh\) .* \(did you mean goldfish",
    ),
    (
        {"classes": ["crane"], "keys": KEYS, "outputs": 1000},
        r"'crane' .* may mean several outputs of the model \(n02012849, n03126707\)",
    ),
    (
        {"classes": ["tench", "n01440764"], "keys": KEYS, "outputs": 1000},
        r"two classes .* mean the same output",
    ),
    ({"classes": ["a"], "keys": ["a", "b"], "outputs": 3}, "has 3 outputs, but 2 names"),
    (
        {"classes": ["a"], "keys": None, "outputs": 1, "combine": "median"},
        "no way to combine outputs 'median'; did you mean mean",
    ),
    (
        {"classes": ["fish"], "keys": None, "outputs": 3, "class_map": {"fsh": [0]}},
        "'fish'; did you mean fsh",
    ),
    (
        {"classes": ["fish"], "keys": None, "outputs": 3, "class_map": {"fish": [3]}},
        "to output 3, but the model has 3 outputs, numbered from 0",
    ),
    (
        {"classes": ["fish"], "keys": None, "outputs": 3, "class_map": {"fish": ["tench"]}},
        "nothing says what the outputs of the model are called; use output numbers",
    ),
    (
        {"classes": ["fish"], "keys": KEYS, "outputs": 1000, "class_map": {"fish": ["tenhc"]}},
        "did you mean tench",
    ),
    (
        {"classes": ["fish"], "keys": None, "outputs": 3, "class_map": {"fish": []}},
        "gives 'fish' no output",
    ),
]


@pytest.mark.parametrize(("given", "sentence"), REFUSALS, ids=[one[1][:30] for one in REFUSALS])
def test_what_would_be_a_guess_is_refused(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        match_classes(**given)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("map.csv", "class,output\nfish,n01440764\nfish,goldfish\nbird,7\n"),
        ("map.csv", "note,output,class\nx,n01440764,fish\ny, goldfish,fish \nz,7,bird\n\n"),
        ("map.json", '{"fish": ["n01440764", "goldfish"], "bird": 7}'),
    ],
)
def test_a_class_map_from_a_file(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    class_map = read_class_map(tmp_path / name)
    assert class_map == {"fish": ["n01440764", "goldfish"], "bird": [7]}
    space = match_classes(["bird", "fish"], KEYS, 1000, class_map=class_map, combine="sum")
    assert space.members == ((7,), (0, 1))
    assert space.kind == "superclass"


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("map.csv", "", "lacks the columns class,output"),
        ("map.csv", "class,output\n", "is empty"),
        ("map.csv", "fish,1\n", "lacks the columns class,output"),
        ("map.json", "{", "is not JSON"),
        ("map.json", "[1]", "holds no object"),
    ],
)
def test_class_map_mistakes(tmp_path: Path, name: str, text: str, sentence: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=sentence):
        read_class_map(tmp_path / name)
    with pytest.raises(InputError, match="cannot read the class map"):
        read_class_map(tmp_path / "missing.csv")


def test_logits_of_another_model_do_not_fit() -> None:
    with pytest.raises(InputError, match=r"shape \(2, 4\) do not fit .* reads 5 outputs"):
        ClassSpace(("a",), 5, ((0,),)).scores(LOGITS)


def test_names_tell_spaces_apart() -> None:
    spaces = [
        ClassSpace(("a", "b"), 2, ((0,), (1,))),
        ClassSpace(("a", "b"), 2, ((1,), (0,))),
        ClassSpace(("a", "b"), 4, ((0,), (1,))),
        ClassSpace(("a", "b"), 4, ((0, 2), (1,))),
        ClassSpace(("a", "b"), 4, ((0, 2), (1,)), "sum"),
        ClassSpace(("a", "b"), 4, ((0, 2), (1,)), "sum", multilabel=True),
    ]
    assert len({space.name for space in spaces}) == len(spaces)
