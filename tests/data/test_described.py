"""A folder of pictures with a card in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from shiftbed import InputError
from shiftbed.data import (
    Card,
    Description,
    FileSet,
    card_of,
    labelled_files,
    list_sets,
    of_classes,
    open_set,
    read_card,
    write_card,
)


def draw(path: Path, value: int = 0, size: tuple[int, int] = (12, 10)) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, (value, value, value)).save(path)


@pytest.fixture
def birds(tmp_path: Path) -> Path:
    folder = tmp_path / "sets" / "hard-birds"
    for name in ("n01531178", "n01614925"):
        for number in (9, 10):
            draw(folder / name / f"{number}.png", number)
    return folder


def test_a_card_survives_its_file(tmp_path: Path) -> None:
    card = Card(
        "odd ones",
        'what "is" here \\ \n\x7f é',
        "aupr",
        {"bird": ["n01531178", 3], "a.b": ["x"]},
        "mean",
        "imagenet-val",
        "imagenet-val.imagenet-o-classes",
        "cifar-c",
        "CC0",
        "Somebody",
    )
    told = Description(
        card,
        pictures="pictures",
        labels="labels.csv",
        classes=("a.b", "bird"),
        orient=True,
        border=2,
        notes={"seed": 3, "how": {"k": [1]}},
    )
    assert read_card(write_card(tmp_path, told)) == told


def test_a_described_folder_is_found_by_name(birds: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_card(birds, Description(Card("hard-birds", "two birds", clean="imagenet-val")))
    monkeypatch.setenv("SHIFTBED_DATA", str(birds.parent.parent))
    [info] = [one for one in list_sets() if one.name == "hard-birds"]
    assert (info.card.about, info.state) == ("two birds", "ready")
    for given in ("hard-birds", birds, birds / "set.toml"):
        images = open_set(given)
        assert images.name == "hard-birds"
        assert images.classes == ("n01531178", "n01614925")
        assert images.ids[:2] == ("n01531178/10.png", "n01531178/9.png")
        assert card_of(images).clean == "imagenet-val"


def test_classes_may_be_more_than_there_are_folders(birds: Path) -> None:
    (birds / "set.toml").write_text('classes = "imagenet-a"\nclean = "imagenet-val"\n')
    images = open_set(birds)
    assert len(images.classes) == 200
    assert images.labels is not None
    assert {images.classes[label] for label in images.labels} == {"n01531178", "n01614925"}
    (birds / "set.toml").write_text('classes = ["n01531178"]\n')
    with pytest.raises(InputError, match=r"no class \(a folder in .*\) 'n01614925'"):
        open_set(birds)


def test_labels_in_a_table(tmp_path: Path) -> None:
    for name in ("a b.png", "deep/b.png", "c.png"):
        draw(tmp_path / "pictures" / name)
    (tmp_path / "labels.csv").write_text(
        'picture,label,who\na b.png,cat,x\n"deep/b.png",dog,y\na b.png,dog,x\nc.png,,z\n'
    )
    (tmp_path / "set.toml").write_text(
        'labels = "labels.csv"\npictures = "pictures"\nclasses = ["dog", "cat", "owl"]\n'
    )
    images = open_set(tmp_path)
    assert images.ids == ("a b.png", "deep/b.png", "c.png")
    assert images.labels is not None
    assert images.labels.tolist() == [[True, True, False], [True, False, False], [False] * 3]
    assert images.load(1).shape == (10, 12, 3)


def test_a_border_is_cut(birds: Path) -> None:
    (birds / "set.toml").write_text("border = 2\n")
    images = open_set(birds)
    assert images.load(0).shape == (6, 8, 3)
    plain = images.fingerprint()
    (birds / "set.toml").write_text("border = 1\n")
    assert open_set(birds).fingerprint() != plain


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("clases = []", "no key 'clases'; did you mean classes"),
        ("classes = 3", "'classes' in .* should be a list of names"),
        ('classes = "imagenet-b"', "no class list 'imagenet-b'; did you mean imagenet-"),
        ('classes = ["a", "a"]', "names the class 'a' twice"),
        ("name = [", "is not TOML"),
        ("border = '2'", "should be a number of pixels"),
        ("members = 3", "should be a table from each class"),
        ("members = {a = [[1]]}", "should be a table from each class"),
        ("combine = 'min'", "no way to combine outputs"),
        ("labels = 'gone.csv'", "cannot read the table"),
    ],
)
def test_mistakes_in_a_card(birds: Path, text: str, sentence: str) -> None:
    (birds / "set.toml").write_text(text)
    with pytest.raises(InputError, match=sentence):
        open_set(birds)


def test_a_broken_card_does_not_hide_the_other_sets(
    birds: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (birds / "set.toml").write_text("name = [")
    monkeypatch.setenv("SHIFTBED_DATA", str(birds.parent.parent))
    found = {info.name: info.card.about for info in list_sets()}
    assert "mnist-test" in found
    assert "is not TOML" in found["hard-birds"]
    with pytest.raises(InputError, match="is not TOML"):
        open_set("hard-birds")


def test_frame_sets_in_a_table(tmp_path: Path) -> None:
    for number in range(4):
        draw(tmp_path / f"{number}.png")
    rows = ["0.png,cat,a,-1", "1.png,cat,a,0", "2.png,cat,a,1", "2.png,dog,b,-1", "3.png,dog,b,0"]
    (tmp_path / "t.csv").write_text("\n".join(["path,label,frame_set,offset", *rows]))
    images = labelled_files(tmp_path / "t.csv")
    assert isinstance(images, FileSet)
    assert images.frames is not None
    assert images.frames.offsets.tolist() == [-1, 0, 1, -1, 0]
    # A frame that is near two anchors is shown for each.
    assert images.ids[2:4] == ("2.png#a", "2.png#b")
    assert np.array_equal(images.load(2), images.load(3))
    (tmp_path / "t.csv").write_text("path,label,frame_set,offset\n0.png,cat,a,x\n")
    with pytest.raises(InputError, match="no offset from its anchor"):
        labelled_files(tmp_path / "t.csv")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "expected 'picture'"),
        ("picture,label\n", "lists no pictures"),
        ("picture,label\n,cat\n", "row 1 .* names no picture"),
        ("picture,label\na.png\n", "has 2 columns, but a row of 1"),
        ("picture,label\na.png,\n", "all of them are empty"),
    ],
)
def test_mistakes_in_a_table(tmp_path: Path, text: str, sentence: str) -> None:
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(InputError, match=sentence):
        labelled_files(tmp_path / "t.csv")


def test_a_table_in_parquet(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns: dict[str, Any] = {"file_name": ["x.png", "y.png"], "labels": [["b", "a"], []]}
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    images = open_set(tmp_path / "t.parquet")
    assert images.classes == ("a", "b")
    assert images.labels is not None
    assert images.labels.tolist() == [[True, True], [False, False]]
    (tmp_path / "u.parquet").write_bytes(b"no")
    with pytest.raises(InputError, match="is not a Parquet file"):
        open_set(tmp_path / "u.parquet")


def test_a_part_of_some_classes(birds: Path) -> None:
    whole = open_set(birds)
    part = of_classes(whole, ["n01614925"], "owls")
    assert part.labels is not None
    assert part.labels.tolist() == [0, 0]
    assert list(part.ids) == ["n01614925/10.png", "n01614925/9.png"]
    assert part.fingerprint() != whole.fingerprint()
    with pytest.raises(InputError, match="lacks the class n02"):
        of_classes(whole, ["n02"], "other")
