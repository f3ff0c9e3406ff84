"""A user's own pictures, in each form that people keep them in."""

from __future__ import annotations

import io
import json
import os
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import shiftbed as sb
from shiftbed import InputError
from shiftbed.data import ArraySet, card_of, open_set

PIXELS = np.random.default_rng(0).integers(0, 256, (6, 8, 9, 3)).astype(np.uint8)
LABELS = [0, 1, 1, 0, 1, 0]
NAMES = ["cat", "dog"]


def png(index: int) -> bytes:
    content = io.BytesIO()
    Image.fromarray(PIXELS[index]).save(content, "PNG")
    return content.getvalue()


def shard(path: Path, samples: dict[str, bytes]) -> Path:
    with tarfile.open(path, "w") as tar:
        for name, content in samples.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return path


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    """Two shards whose samples bear the same names, one with several files to a sample."""
    folder = tmp_path / "pets" / "val"
    folder.mkdir(parents=True)
    for number in range(2):
        samples: dict[str, bytes] = {}
        for place in range(3):
            index = 3 * number + place
            samples[f"./deep/00{place}.cls"] = str(LABELS[index]).encode()
            samples[f"./deep/00{place}.seg.png"] = png(0)
            samples[f"./deep/00{place}.png"] = png(index)
        shard(folder / f"pets-00{number}.tar", samples)
    return folder


def test_shards(shards: Path, tmp_path: Path) -> None:
    by_braces = f"{shards}/pets-{{000..001}}.tar"
    for given in (shards, by_braces, f"{shards}/pets-*.tar"):
        images = open_set(given)
        assert images.name == "pets"
        assert len(images) == 6
        assert images.ids[4] == "pets-001/deep/001.png"
        assert images.labels is not None
        assert images.labels.tolist() == LABELS
        assert images.classes == ("0", "1")
        assert all(np.array_equal(images.load(index), PIXELS[index]) for index in range(6))
    assert len(open_set(shards / "pets-001.tar")) == 3
    card = tmp_path / "described"
    card.mkdir()
    (card / "set.toml").write_text(f'pictures = "{by_braces}"\nclasses = ["cat", "dog", "owl"]\n')
    named = open_set(card)
    assert named.classes == ("cat", "dog", "owl")
    assert named.labels is not None
    assert named.labels.tolist() == LABELS


def test_labels_of_shards_in_json(tmp_path: Path) -> None:
    path = shard(
        tmp_path / "some.tar",
        {
            "a.jpg": png(0),
            "a.json": json.dumps({"label": "dog", "width": 3}).encode(),
            "b.jpg": png(1),
            "b.json": json.dumps({"label": ["cat", "dog"]}).encode(),
            "c.jpg": png(2),
            "d.txt": b"no picture",
        },
    )
    images = open_set(path)
    assert images.ids == ("some/a.jpg", "some/b.jpg", "some/c.jpg")
    assert images.labels is not None
    assert images.labels.tolist() == [[False, True], [True, True], [False, False]]


@pytest.mark.parametrize(
    ("samples", "sentence"),
    [
        ({"a.txt": b"x"}, "holds no pictures; expected samples as 0001.jpg and 0001.cls"),
        ({"a.jpg": b"", "a.json": b"{"}, r"some/a\.json is not JSON .*; expected a name"),
        ({"a.jpg": b"", "a.cls": b"\xff"}, r"some/a\.cls says no label"),
    ],
)
def test_mistakes_in_shards(tmp_path: Path, samples: dict[str, bytes], sentence: str) -> None:
    path = shard(tmp_path / "some.tar", samples)
    with pytest.raises(InputError, match=sentence):
        open_set(path)


def test_a_shard_that_is_absent_or_packed_is_said(shards: Path) -> None:
    with pytest.raises(InputError, match=r"names the shard .*pets-002\.tar, which does not exist"):
        open_set(f"{shards}/pets-{{000..002}}.tar")
    (shards / "pets-001.tar").write_bytes(b"\x1f\x8b no tar at all")
    with pytest.raises(InputError, match="not an uncompressed tar"):
        open_set(shards)


@pytest.mark.parametrize(
    ("pictures", "labels"),
    [("x.npy", "labels.npy"), ("test_images.npy", "test_labels.npy"), ("x.npy", None)],
)
def test_npy(tmp_path: Path, pictures: str, labels: str | None) -> None:
    np.save(tmp_path / pictures, PIXELS)
    if labels is not None:
        np.save(tmp_path / labels, np.array(LABELS, np.uint8))
    images = open_set(tmp_path / pictures)
    assert np.array_equal(images.load(3), PIXELS[3])
    found = None if images.labels is None else images.labels.tolist()
    assert found == (LABELS if labels else None)


def test_npy_that_holds_code_or_nothing_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([os.getcwd], object), allow_pickle=True)
    with pytest.raises(InputError, match=r"is not a plain \.npy array"):
        open_set(tmp_path / "x.npy")
    np.save(tmp_path / "y.npy", PIXELS)
    np.save(tmp_path / "labels.npy", np.zeros(3, np.int64))
    with pytest.raises(InputError, match="6 pictures and 3 labels"):
        open_set(tmp_path / "y.npy")


@pytest.fixture
def dataset() -> Any:
    datasets = pytest.importorskip("datasets")
    features = datasets.Features(
        {
            "image": datasets.Image(),
            "label": datasets.ClassLabel(names=NAMES),
            "n": datasets.Value("int64"),
        }
    )
    pictures = [Image.fromarray(one) for one in PIXELS]
    return datasets.Dataset.from_dict(
        {"image": pictures, "label": LABELS, "n": list(range(6))}, features=features
    )


def the_same(images: Any) -> None:
    assert images.classes == tuple(NAMES)
    assert images.labels.tolist() == LABELS
    assert all(np.array_equal(images.load(index), PIXELS[index]) for index in range(6))


def test_a_hugging_face_data_set_in_every_form(dataset: Any, tmp_path: Path) -> None:
    import datasets

    the_same(open_set(dataset))
    dataset.save_to_disk(tmp_path / "saved" / "test")
    dataset.to_parquet(tmp_path / "hub" / "data" / "test-00000-of-00001.parquet")
    parquet = tmp_path / "hub" / "data" / "test-00000-of-00001.parquet"
    names = [
        (images := open_set(given), the_same(images))[0].name
        for given in (tmp_path / "saved" / "test", parquet, f"hf:{tmp_path / 'hub'}:test")
    ]
    assert names == ["saved-test", "test-00000-of-00001", "hub-test"]
    prints = {open_set(given).fingerprint() for given in (dataset, parquet)}
    assert len(prints) == 1, "the same pictures and labels, wherever they lie"
    assert open_set(dataset.select([0, 1])).fingerprint() not in prints
    splits = datasets.DatasetDict(train=dataset, test=dataset)
    splits.save_to_disk(tmp_path / "both")
    with pytest.raises(InputError, match=r"holds the splits test, train; name one, as in .*train"):
        open_set(tmp_path / "both")
    the_same(open_set(tmp_path / "both" / "test"))


def test_rows_that_were_chosen_keep_their_labels(dataset: Any) -> None:
    images = open_set(dataset.select([5, 1]))
    assert images.labels is not None
    assert images.labels.tolist() == [0, 1]
    assert np.array_equal(images.load(0), PIXELS[5])


def test_several_labels_and_none(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    several = datasets.Sequence(datasets.ClassLabel(names=["a", "b", "c"]))
    features = datasets.Features({"img": datasets.Image(), "labels": several})
    pictures = [Image.fromarray(one) for one in PIXELS[:2]]
    made = datasets.Dataset.from_dict({"img": pictures, "labels": [[0, 2], []]}, features=features)
    images = open_set(made)
    assert images.labels is not None
    assert images.labels.tolist() == [[True, False, True], [False, False, False]]
    assert open_set(made.remove_columns("labels")).labels is None
    with pytest.raises(InputError, match="has the columns labels; expected one of pictures"):
        open_set(made.remove_columns("img"))


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ("hf:somebody/something", "names no split; write hf:somebody/something:test"),
        ("hf:{here}/none:test", "cannot be had from the hub or its cache"),
        ("hf:{here}/hub:trial", "no split of .*hub named 'trial'; choose one of test"),
    ],
)
def test_what_the_hub_has_not(dataset: Any, tmp_path: Path, spec: str, sentence: str) -> None:
    (tmp_path / "hub").mkdir()
    dataset.to_parquet(tmp_path / "hub" / "test.parquet")
    with pytest.raises(InputError, match=sentence):
        open_set(spec.format(here=tmp_path))


def test_every_form_is_evaluated_alike(dataset: Any, shards: Path, tmp_path: Path) -> None:
    """One model, one setting, four forms of the same pictures: the same answers to each."""
    np.save(tmp_path / "x.npy", PIXELS)
    np.save(tmp_path / "labels.npy", LABELS)

    def redness(batch: np.ndarray) -> np.ndarray:
        red = batch[..., 0].mean((1, 2), dtype=np.float64)
        return np.stack([red, batch.mean((1, 2, 3), dtype=np.float64)], axis=1)

    forms = {
        "a": dataset,
        "b": str(shards),
        "c": tmp_path / "x.npy",
        "d": ArraySet("d", PIXELS, LABELS),
    }
    run = sb.evaluate(redness, ["+{clean,contrast.2}"], forms, results=tmp_path / "out", quiet=True)
    scores = run.table().to_pylist()
    assert len({row["accuracy"] for row in scores if "+" not in row["setting"]}) == 1
    assert len({row["accuracy"] for row in scores if "+" in row["setting"]}) == 1
    assert {row["n"] for row in scores} == {6}
    assert [card_of(open_set(one)).score for one in forms.values()] == [None] * 4


def test_a_path_that_is_not_there_is_guessed(shards: Path) -> None:
    with pytest.raises(
        InputError, match=r"vla does not exist \(did you mean .*pets/val\?\)"
    ) as said:
        open_set(shards.parent / "vla")
    assert len(str(said.value)) < 700
