"""The published sets, each from a tiny copy in its real layout, and read by hand."""

from __future__ import annotations

import csv
import io
import json
import tarfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from scipy.io import savemat

from shiftbed import InputError, published
from shiftbed.data import (
    ImageSet,
    card_of,
    catalogue,
    imagenet_classes,
    list_sets,
    open_set,
)
from shiftbed.models import Geometry, Model, load
from shiftbed.settings import resolve

IDS = imagenet_classes()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty sets folder, whose sets may have any number of pictures."""
    monkeypatch.setenv("SHIFTBED_DATA", str(tmp_path))
    list_sets()
    for name, info in list(catalogue._SETS.items()):
        if info.placed is not None:
            whole = replace(info.placed, pictures=None)
            monkeypatch.setitem(catalogue._SETS, name, info)
            catalogue.placed_set(info.card, whole, family=info.family, suites=info.suites)
    return tmp_path / "sets"


def draw(path: Path, value: int = 0, size: tuple[int, int] = (8, 6), **how: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, (value, value, value)).save(path, **how)


def named(images: ImageSet) -> dict[str, Any]:
    """Each picture's class or classes, by its id."""
    labels = images.labels
    assert labels is not None
    if labels.ndim == 2:
        rows = ([images.classes[c] for c in np.flatnonzero(row)] for row in labels)
        return dict(zip(images.ids, rows, strict=True))
    return {one: images.classes[label] for one, label in zip(images.ids, labels, strict=True)}


def thousand() -> Model:
    return load(lambda batch: np.zeros((len(batch), 1000)), classes="imagenet-1k")


def read_as(name: str) -> Any:
    [setting] = [one for one in resolve(name) if one.name == name]
    return setting.class_space(thousand())


# The validation set


def devkit(folder: Path, order: list[str]) -> None:
    """The devkit: its own class numbers, with inner nodes after the leaves, and the truth."""
    folder.mkdir(parents=True, exist_ok=True)
    count = len(order)
    synsets = np.zeros(count + 1, dtype=[("ILSVRC2012_ID", "O"), ("WNID", "O"), ("words", "O")])
    for number, wnid in enumerate([*order, "n00001740"], start=1):
        synsets[number - 1] = (number, wnid, "words, more words")
    savemat(folder / "meta.mat", {"synsets": synsets[:, None]})


@pytest.mark.parametrize("form", ["flat", "flat in val", "tar"])
def test_flat_validation_pictures_take_the_devkits_labels(home: Path, form: str) -> None:
    root = home / "imagenet-val"
    # The devkit counts in an order of its own: its class 1 is nobody's output 0.
    devkit(root / "ILSVRC2012_devkit_t12" / "data", ["n02119789", "n01440764", "n01443537"])
    (root / "ILSVRC2012_devkit_t12" / "data" / "ILSVRC2012_validation_ground_truth.txt").write_text(
        "3\n1\n1\n2\n"
    )
    names = [f"ILSVRC2012_val_0000000{number}.JPEG" for number in (1, 2, 4)]  # one is missing
    for value, name in enumerate(names):
        draw(root / ("val" if form == "flat in val" else "") / name, 80 * value, quality=95)
    if form == "tar":
        with tarfile.open(root / "ILSVRC2012_img_val.tar", "w") as tar:
            for name in reversed(names):
                tar.add(root / name, name)
        for name in names:
            (root / name).unlink()
    images = open_set("imagenet-val")
    assert named(images) == dict(zip(names, ["n01443537", "n02119789", "n01440764"], strict=True))
    assert [int(images.load(i).mean().round()) for i in range(3)] == [0, 80, 160]
    assert len(images.classes) == 1000


def test_flat_pictures_without_a_devkit_are_refused(home: Path) -> None:
    draw(home / "imagenet-val" / "ILSVRC2012_val_00000001.JPEG")
    with pytest.raises(InputError, match="labels are in the devkit: put ILSVRC2012_validation"):
        open_set("imagenet-val")


def validation(home: Path, outputs: list[int]) -> None:
    for output in outputs:
        draw(home / "imagenet-val" / "val" / IDS[output] / f"ILSVRC2012_val_{output + 1:08}.JPEG")


def test_parts_of_the_validation_set_have_their_own_classes(home: Path) -> None:
    a, r = published.class_list("imagenet-a"), published.class_list("imagenet-r")
    both = next(IDS.index(one) for one in a if one in r)
    validation(home, [both, IDS.index(next(one for one in a if one not in r)), 0])
    part = open_set("imagenet-val.imagenet-a-classes")
    assert len(part) == 2
    assert len(part.classes) == 200
    assert set(named(part).values()) <= set(a)
    assert set(named(open_set("imagenet-val.imagenet-r-classes")).values()) == {IDS[both]}
    space = read_as("imagenet-val.imagenet-a-classes")
    assert space.kind == "subset"
    assert space.members == tuple((IDS.index(one),) for one in a)


def test_real_labels_are_any_of_several(home: Path) -> None:
    validation(home, [0, 1, 2])
    (home / "imagenet-real").mkdir()
    (home / "imagenet-real" / "imagenet_real_labels.json").write_text("[[], [970, 795], [1]]")
    assert list(named(open_set("imagenet-val.real")).values()) == [
        [],
        [IDS[795], IDS[970]],
        [IDS[1]],
    ]


def test_greyscale_is_computed(home: Path) -> None:
    path = home / "imagenet-val" / IDS[3] / "a.png"
    path.parent.mkdir(parents=True)
    Image.new("RGB", (4, 4), (255, 0, 0)).save(path)
    images = open_set("imagenet-val.greyscale")
    assert np.unique(images.load(0)).tolist() == [76]  # 0.299 of 255
    assert images.load(0).shape == (4, 4, 3)
    assert card_of(images).clean == "imagenet-val"
    assert images.fingerprint() != open_set("imagenet-val").fingerprint()


# Folders


def test_numbered_folders_are_numbers(home: Path) -> None:
    root = home / "imagenet-v2-matched-frequency" / "imagenetv2-matched-frequency-format-val"
    for number in (0, 2, 10, 100, 999):
        draw(root / str(number) / "x.jpeg")
    images = open_set("imagenet-v2-matched-frequency")
    assert named(images) == {f"{n}/x.jpeg": IDS[n] for n in (0, 2, 10, 100, 999)}
    draw(root / "1000" / "x.jpeg")
    with pytest.raises(InputError, match=r"no class .* '1000'"):
        open_set("imagenet-v2-matched-frequency")


@pytest.mark.parametrize("name", ["imagenet-a", "imagenet-r"])
def test_two_hundred_classes(home: Path, name: str) -> None:
    classes = published.class_list(name)
    for one in (classes[7], classes[3]):
        draw(home / name / name / one / "x.jpg")
    (home / name / name / "README.txt").write_text("about")
    images = open_set(name)
    assert named(images) == {f"{one}/x.jpg": one for one in (classes[3], classes[7])}
    space = read_as(name)
    assert space.name.startswith("subset 200 of 1000")
    # The class space is that of the clean counterpart, member for member.
    validation(home, [0])
    assert space == read_as(card_of(images).clean or "")
    logits = np.zeros((1, 1000), np.float32)
    logits[0, 0] = 9  # tench is in neither list
    logits[0, IDS.index(classes[5])] = 3
    assert space.scores(logits).argmax() == 5


def test_imagenet_o_has_no_labels_and_the_usual_classes(home: Path) -> None:
    o = published.class_list("imagenet-o")
    draw(home / "imagenet-o" / o[0] / "x.jpg")
    validation(home, [IDS.index(o[1]), 0])
    settings = {one.name: one for one in resolve("imagenet-o")}
    usual = settings["imagenet-val.imagenet-o-classes"]
    odd = settings["imagenet-o"]
    assert odd.metric == "aupr"
    assert odd.usual is usual
    assert odd.labels is None
    assert odd.class_space(thousand()) == usual.class_space(thousand())
    assert len(usual.images) == 1


def test_another_number_of_pictures_is_another_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHIFTBED_DATA", str(tmp_path))
    a = published.class_list("imagenet-a")
    draw(tmp_path / "sets" / "imagenet-a" / a[0] / "x.jpg")
    with pytest.raises(InputError, match=r"holds 1 pictures of imagenet-a, .* with 7,500; .* like"):
        open_set("imagenet-a")
    draw(tmp_path / "sets" / "some-of-a" / a[1] / "x.jpg")
    (tmp_path / "sets" / "some-of-a" / "set.toml").write_text('like = "imagenet-a"\n')
    images = open_set("some-of-a")
    assert (images.name, len(images.classes)) == ("some-of-a", 200)
    assert card_of(images).clean == "imagenet-val.imagenet-a-classes"


def test_what_is_absent_says_how_to_have_it(home: Path) -> None:
    with pytest.raises(InputError, match="`shiftbed fetch imagenet-r` fetches it"):
        open_set("imagenet-r")
    with pytest.raises(InputError, match=r"by a person: download objectnet-1.0.zip .*/objectnet"):
        open_set("objectnet")
    with pytest.raises(InputError, match="`shiftbed fetch imagenet-c` fetches it"):
        open_set("imagenet-c.fog.3")
    with pytest.raises(InputError, match="imagenet-val is not on this machine"):
        open_set("imagenet-val.imagenet-a-classes")
    with pytest.raises(InputError, match=r"the suite natural has 17 sets, and 17 of them are not"):
        resolve("natural")


# ObjectNet


def test_objectnet(home: Path) -> None:
    root = home / "objectnet"
    for folder in ("air_freshener", "chair", "t_shirt"):
        path = root / "images" / folder / "x.png"
        path.parent.mkdir(parents=True)
        picture = np.zeros((9, 10, 3), np.uint8)
        picture[...] = (255, 0, 0)
        picture[2:-2, 2:-2] = 50
        Image.fromarray(picture).save(path)
    write = {
        "folder_to_objectnet_label.json": {
            "air_freshener": "Air freshener",
            "chair": "Chair",
            "t_shirt": "T-shirt",
        },
        "objectnet_to_imagenet_1k.json": {
            "Chair": "barber chair; folding chair; rocking chair, rocker",
            "T-shirt": "jersey, T-shirt, tee shirt",
        },
        # Output -> line of the list of words, which is in an order of its own.
        "pytorch_to_imagenet_2012_id.json": {"423": 2, "559": 0, "765": 1, "610": 3},
    }
    for name, content in write.items():
        (root / "mappings").mkdir(exist_ok=True)
        (root / "mappings" / name).write_text(json.dumps(content))
    (root / "mappings" / "imagenet_to_label_2012_v2").write_text(
        "folding chair\nrocking chair, rocker\nbarber chair\njersey, T-shirt, tee shirt\n"
    )
    images = open_set("objectnet")
    assert named(images) == {"chair/x.png": "chair", "t_shirt/x.png": "t_shirt"}
    assert images.load(0).shape == (5, 6, 3)
    assert np.unique(images.load(0)).tolist() == [50]  # no red is left
    space = read_as("objectnet")
    assert space.members == ((423, 559, 765), (610,))
    logits = np.zeros((2, 1000), np.float32)
    logits[0, [765, 610]] = 5, 4  # one of three chairs is more than the shirt
    logits[1, [0, 610]] = 9, 1  # what ObjectNet has not is not an answer
    assert space.scores(logits).tolist() == [[5, 4], [0, 1]]
    # The clean counterpart has each ImageNet class by itself.
    validation(home, [423, 559, 610, 0])
    clean = open_set("imagenet-val.objectnet-classes")
    assert set(named(clean).values()) == {IDS[423], IDS[559], IDS[610]}
    assert len(clean.classes) == 4


# Frame sets


def vid(home: Path) -> None:
    root = home / "imagenet-vid-robust"
    one, two = "val/ILSVRC2015_val_00000000", "val/ILSVRC2015_val_00000001"
    sets = {
        f"{one}/000010.JPEG": [f"{one}/000000.JPEG", f"{one}/000009.JPEG", f"{one}/000020.JPEG"],
        f"{two}/000003.JPEG": [],
    }
    labels = {file: [1] for near in sets.values() for file in near}
    labels |= {f"{one}/000010.JPEG": [1], f"{two}/000003.JPEG": [0, 1]}
    for file in labels:
        draw(root / file)
    meta = {
        "metadata/pmsets.json": sets,
        "metadata/labels.json": labels,
        "misc/imagenet_vid_class_index.json": {"0": ["n02691156", "airplane"], "1": ["n2", "bear"]},
        "misc/rev_wnid_map.json": {"n02691156": [IDS[404]], "n2": [IDS[294], IDS[295], IDS[296]]},
    }
    for name, content in meta.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(json.dumps(content))


def test_frames_of_imagenet_vid(home: Path) -> None:
    vid(home)
    film = open_set("imagenet-vid-robust.pm10")
    frames = vars(film)["frames"]
    assert frames.offsets.tolist() == [-10, -1, 10, 0, 0]
    assert len(set(frames.sets)) == 2
    assert list(named(film).values()) == [["bear"]] * 4 + [["airplane", "bear"]]
    space = read_as("imagenet-vid-robust.pm10")
    assert space.members == ((404,), (294, 295, 296))
    assert space.combine == "max"
    logits = np.zeros((1, 1000), np.float32)
    logits[0, [404, 294, 295, 296]] = 5, 2, 3, 4  # 5 is more than any bear, less than their sum
    assert space.scores(logits).tolist() == [[5, 4]]
    still = open_set("imagenet-vid-robust.anchors")
    assert len(still) == 2
    assert card_of(still).clean == "imagenet-val.imagenet-vid-robust-classes"
    validation(home, [404, 296, 0])
    clean = open_set("imagenet-val.imagenet-vid-robust-classes")
    assert list(named(clean).values()) == ["bear", "airplane"]
    assert read_as(clean.name).members == space.members


def test_frames_of_youtube(home: Path) -> None:
    root = home / "ytbb-robust"
    films = {"vid_1000": [5, 6, 15, 16], "vid_2000": [8], "gone_3000": [9]}
    for film, numbers in films.items():
        for number in numbers:
            draw(root / "ytbb_videos" / film / f"frame-{number}.jpg")
    meta = root / "metadata"
    meta.mkdir()
    classes = [f"c{number}" for number in range(24)]
    (meta / "ytbb_class_index.json").write_text(json.dumps(dict(enumerate(classes))))
    outputs = {number: [number, number + 100] for number in range(24) if number != 20}
    (meta / "rev_class_idx_map.json").write_text(json.dumps(outputs))
    with (meta / "ytbb_robustness_test_anchors_full.csv").open("w") as file:
        table = csv.writer(file)
        table.writerow(["ytid", "time_ms", "label"])
        table.writerows([["vid", 1000, 3], ["vid", 2000, 22], ["gone", 3000, 1]])
    said = ["good", "bad", "unsure", *classes]
    anchors = [("a/vid_1000/frame-5.jpg", [0, 3 + 7]), ("a/vid_2000/frame-8.jpg", [0])]
    anchors.append(("a/gone_3000/frame-9.jpg", [0, 2]))
    (meta / "anchor_labels.json").write_text(
        json.dumps({"labels": said, "annotations": [{"key": k, "labels": x} for k, x in anchors]})
    )
    said = ["similar", "dissimilar", "bad-anchor", "blur-increase"]
    pairs = [(6, [0]), (15, [0]), (16, [0]), (4, [0, 3]), (3, [1])]
    (meta / "pmk_labels.json").write_text(
        json.dumps(
            {
                "labels": said,
                "annotations": [
                    {"key": f"x/vid_1000/frame-5.jpg,x/vid_1000/frame-{n}.jpg", "labels": x}
                    for n, x in pairs
                ],
            }
        )
    )
    film = open_set("ytbb-robust.pm10")
    # 16 is 11 frames away, 4 is blurred, 3 is not alike; one anchor is unsure.
    assert film.ids == (
        "vid_1000/frame-15.jpg",
        "vid_1000/frame-6.jpg",
        "vid_1000/frame-5.jpg",
        "vid_2000/frame-8.jpg",
    )
    assert vars(film)["frames"].offsets.tolist() == [10, 1, 0, 0]
    # 22 and 23 are swapped between the anchors' table and the class index.
    assert list(named(film).values()) == [["c3", "c7"]] * 3 + [["c23"]]
    assert read_as("ytbb-robust.pm10").members[3] == (3, 103)
    assert len(open_set("ytbb-robust.anchors")) == 2


# Stored corruptions


def test_stored_corruptions_in_files(home: Path) -> None:
    draw(home / "imagenet-c" / "fog" / "3" / IDS[2] / "x.JPEG")
    draw(home / "imagenet-c" / "noise" / "shot_noise" / "1" / IDS[4] / "x.JPEG")  # tar by tar
    assert named(open_set("imagenet-c.fog.3")) == {f"{IDS[2]}/x.JPEG": IDS[2]}
    assert named(open_set("imagenet-c.shot_noise.1")) == {f"{IDS[4]}/x.JPEG": IDS[4]}
    draw(home / "tiny-imagenet-c" / "Tiny-ImageNet-C" / "fog" / "2" / "n01443537" / "x.JPEG")
    assert open_set("tiny-imagenet-c.fog.2").classes == ("n01443537",)
    [setting] = resolve("imagenet-c.fog.3")
    assert setting.name == "imagenet-c.fog.3"
    assert setting.clean == "imagenet-val"


def test_cifar_c(home: Path) -> None:
    folder = home / "cifar-10-c" / "CIFAR-10-C"
    folder.mkdir(parents=True)
    pictures = np.arange(10, dtype=np.uint8)[:, None, None, None].repeat(32, 1).repeat(32, 2)
    np.save(folder / "fog.npy", pictures.repeat(3, 3))
    np.save(folder / "labels.npy", np.tile([3, 8], 5))
    images = open_set("cifar-10-c.fog.2")
    assert [int(images.load(i)[0, 0, 0]) for i in range(2)] == [2, 3]
    assert list(named(images).values()) == ["cat", "ship"]
    np.save(folder / "labels.npy", np.tile([3, 8], 4))
    with pytest.raises(InputError, match=r"10 pictures and labels\.npy 8 labels"):
        open_set("cifar-10-c.fog.2")
    folder = home / "cifar-100-c" / "CIFAR-100-C"
    folder.mkdir(parents=True)
    np.save(folder / "fog.npy", pictures.repeat(3, 3))
    np.save(folder / "labels.npy", np.tile([0, 99], 5))
    assert list(named(open_set("cifar-100-c.fog.5")).values()) == ["apple", "worm"]


def test_cifar_itself(home: Path) -> None:
    folder = home / "cifar100-test" / "cifar-100-binary"
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    planes = rng.integers(0, 256, (2, 3, 32, 32), dtype=np.uint8)
    rows = [bytes([7, fine]) + one.tobytes() for fine, one in zip((1, 0), planes, strict=True)]
    (folder / "test.bin").write_bytes(b"".join(rows))
    (folder / "fine_label_names.txt").write_text("apple\naquarium_fish\n")
    images = open_set("cifar100-test")
    assert list(named(images).values()) == ["aquarium_fish", "apple"]
    assert np.array_equal(images.load(1), planes[1].transpose(1, 2, 0))
    (folder / "test.bin").write_bytes(b"".join(rows)[:-1])
    with pytest.raises(InputError, match="is cut short"):
        open_set("cifar100-test")


def test_mnist_c(home: Path) -> None:
    folder = home / "mnist-c" / "mnist_c" / "zigzag"
    folder.mkdir(parents=True)
    np.save(folder / "test_images.npy", np.full((3, 28, 28, 1), 9, np.uint8))
    np.save(folder / "test_labels.npy", np.array([7, 2, 1]))
    images = open_set("mnist-c.zigzag")
    assert list(named(images).values()) == ["7", "2", "1"]
    assert images.load(0).shape == (28, 28)
    (folder / "test_images.npy").write_bytes(b"\x93NUMPY")
    with pytest.raises(InputError, match=r"is not a plain \.npy array"):
        open_set("mnist-c.zigzag")


def test_what_make_writes_is_what_is_read(home: Path) -> None:
    """`shiftbed make` and these layouts are two sides of the same authors' formats."""
    from shiftbed.corruptions import stored
    from shiftbed.data import ArraySet

    pictures = np.random.default_rng(0).integers(0, 256, (4, 32, 32, 3), dtype=np.uint8)
    names = [f"c{number}" for number in range(10)]
    clean = ArraySet("cifar10-test", pictures, [0, 1, 2, 9], names)
    made = [("contrast", step) for step in range(1, 6)]
    stored.make(clean, home / "cifar-10-c", made, variant="cifar-c")
    images = open_set("cifar-10-c.contrast.5")
    assert named(images) == {"0": "airplane", "1": "automobile", "2": "bird", "3": "truck"}
    assert images.load(0).std() < pictures[0].std()


def test_tiny_imagenet(home: Path) -> None:
    root = home / "tiny-imagenet-val" / "tiny-imagenet-200"
    draw(root / "val" / "images" / "val_0.JPEG")
    draw(root / "val" / "images" / "val_1.JPEG")
    rows = "val_0.JPEG\tn03444034\t0\t32\t44\t62\nval_1.JPEG\tn01443537\t52\t55\t57\t59\n"
    (root / "val" / "val_annotations.txt").write_text(rows)
    (root / "wnids.txt").write_text("n03444034\nn01443537\n")
    images = open_set("tiny-imagenet-val")
    assert named(images) == {"val_0.JPEG": "n03444034", "val_1.JPEG": "n01443537"}
    assert images.classes == ("n01443537", "n03444034")


def test_real_blurry_images_and_their_clean_counterpart(home: Path) -> None:
    for output in (207, 1):
        draw(home / "real-blurry-images" / "blurry_images" / IDS[output] / "x.jpg")
    validation(home, [1, 207, 300])
    assert card_of(open_set("real-blurry-images")).clean == "imagenet-val.real-blurry-classes"
    clean = open_set("imagenet-val.real-blurry-classes")
    assert set(named(clean).values()) == {IDS[1], IDS[207]}
    assert read_as(clean.name) == read_as("real-blurry-images")


# Every known set


def test_every_card_is_complete() -> None:
    cards = {info.name: info.card for info in list_sets()}
    for info in list_sets():
        assert info.card.about
        assert info.card.licence
        assert info.card.citation
        assert info.state
        assert info.missing
        for other in (info.card.clean, info.card.usual):
            assert other is None or other in cards, (info.name, other)


def test_studies_and_cards_name_the_same_counterparts() -> None:
    from shiftbed.studies.shifts import NATURAL

    for info in list_sets():
        if info.name in NATURAL:
            assert NATURAL[info.name].clean == info.card.clean


# Awkward pictures, in any layout


def test_awkward_pictures(home: Path) -> None:
    root = home / "imagenet-r" / published.class_list("imagenet-r")[0]
    root.mkdir(parents=True)
    Image.new("L", (9, 7), 100).save(root / "a-grey.jpg", quality=100)
    Image.new("CMYK", (9, 7), (0, 0, 0, 255)).save(root / "b-cmyk.jpg")
    exif = Image.Exif()
    exif[0x0112] = 6
    turned = Image.fromarray(np.arange(63, dtype=np.uint8).reshape(7, 9)).convert("RGB")
    turned.save(root / "c-turned.png", exif=exif)
    Image.new("RGB", (9, 1), (1, 2, 3)).save(root / "d-flat.png")
    (root / "e-cut.jpg").write_bytes((root / "a-grey.jpg").read_bytes()[:300])
    images = open_set("imagenet-r")
    shown = [images.load(index) for index in range(4)]
    assert np.unique(shown[0]).tolist() == [100]
    assert [one.shape for one in shown] == [(7, 9, 3), (7, 9, 3), (7, 9, 3), (1, 9, 3)]
    assert shown[1].max() < 10
    for picture in shown:  # also a picture of one row becomes what a model wants
        assert Geometry((224, 224), (256, 256)).apply(picture).shape == (224, 224, 3)


def test_a_tar_that_is_none_is_refused(home: Path) -> None:
    (home / "imagenet-val").mkdir(parents=True)
    (home / "imagenet-val" / "ILSVRC2012_img_val.tar").write_bytes(b"x" * 2000)
    with pytest.raises(InputError, match="is not an uncompressed tar"):
        open_set("imagenet-val")
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz"):
        pass
    (home / "imagenet-val" / "ILSVRC2012_img_val.tar").write_bytes(buffer.getvalue())
    with pytest.raises(InputError, match="unpack or decompress it first"):
        open_set("imagenet-val")
