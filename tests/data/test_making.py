"""Checking sets, and making new ones: remixes, subtypes, icons."""

from __future__ import annotations

import csv
import io
import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from typer.testing import CliRunner

from shiftbed import InputError, assets, published
from shiftbed.assets import Package
from shiftbed.cli import app
from shiftbed.data import ArraySet, card_of, icons, list_sets, open_set
from shiftbed.data.check import check
from shiftbed.data.remix import PRESETS, Row, remix
from shiftbed.data.subtypes import broad_classes, held_out, read_hierarchy


def run(*arguments: object) -> Any:
    return CliRunner().invoke(app, ["data", *map(str, arguments)])


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SHIFTBED_DATA", str(tmp_path / "cache"))
    return tmp_path / "cache" / "sets"


def scene(seed: int, side: int = 64) -> Image.Image:
    """A picture with large shapes, as a photograph has."""
    rng = np.random.default_rng(seed)
    small = Image.fromarray(rng.integers(0, 256, (9, 9, 3), dtype=np.uint8))
    return small.resize((side, side), Image.Resampling.BICUBIC)


# Checking


def test_check_finds_what_is_there(tmp_path: Path) -> None:
    for name, seeds in {"cat": (1, 2, 3), "dog": (4, 5)}.items():
        (tmp_path / "set" / name).mkdir(parents=True)
        for seed in seeds:
            scene(seed).save(tmp_path / "set" / name / f"{seed}.png")
    scene(1).save(tmp_path / "set" / "dog" / "again.png")  # one picture, two labels
    scene(2, 96).save(tmp_path / "set" / "cat" / "grown.jpg", quality=60)
    (tmp_path / "set" / "dog" / "cut.png").write_bytes(b"\x89PNG\r\n")
    (tmp_path / "train").mkdir()
    scene(5, 50).save(tmp_path / "train" / "five.jpg", quality=70)
    scene(9).save(tmp_path / "train" / "nine.png")
    done = run("check", tmp_path / "set", "--against", tmp_path / "train", "--json")
    assert done.exit_code == 1
    found = json.loads(done.output)
    assert found["classes"] == {"cat": 4, "dog": 4}
    assert found["sizes"] == {"smallest": [64, 64], "largest": [96, 96], "commonest": [64, 64]}
    assert [name for name, _ in found["unreadable"]] == ["dog/cut.png"]
    assert found["duplicates"] == found["contradictions"] == [["cat/1.png", "dog/again.png"]]
    assert found["near"] == [["cat/2.png", "cat/grown.jpg"]]
    assert found["leakage"] == [["dog/5.png", "five.jpg"]]
    said = run("check", tmp_path / "set", "--against", tmp_path / "train").output
    assert "classes      2, of 4 (cat) to 4 (dog) pictures" in said
    assert "dog/5.png is five.jpg there" in said
    whole = run("check", tmp_path / "train")
    assert whole.exit_code == 0
    assert "classes      none: the pictures are not labelled" in whole.output


@given(st.permutations(range(8)))
def test_the_order_of_pictures_changes_nothing_found(order: list[int]) -> None:
    pictures = np.stack([np.asarray(scene(seed % 6, 32)) for seed in range(8)])
    labels = np.arange(8) % 3
    one = check(ArraySet("x", pictures, labels, ids=[str(i) for i in range(8)]))
    two = check(ArraySet("x", pictures[order], labels[order], ids=[str(i) for i in order]))
    assert (
        {frozenset(group) for group in one.duplicates}
        == {frozenset(group) for group in two.duplicates}
        == {frozenset({"0", "6"}), frozenset({"1", "7"})}
    )
    assert one.classes == two.classes


def test_plain_pictures_are_not_alike(tmp_path: Path) -> None:
    pictures = np.stack([np.full((32, 32), value, np.uint8) for value in (10, 20, 20)])
    found = check(ArraySet("plain", pictures))
    assert found.near == []
    assert found.duplicates == [["1", "2"]]


# Remixing


def table(path: Path, rows: list[tuple[str, ...]], header: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header.split(","))
        writer.writerows(rows)
    for row in rows:
        scene(hash(row[0]) % 1000, 16).save(path.parent / row[0])


def test_a_remix_of_a_table(tmp_path: Path, home: Path) -> None:
    rows = [
        (f"{n}.png", "shop" if n % 2 else "bank", country, year, camera, str(n // 2))
        for n, (country, year, camera) in enumerate(
            [("US", "2019", "new")] * 20
            + [("MX", "2019", "new")] * 4
            + [("France", "2019", "new")] * 2
            + [("US", "2017", "new"), ("US", "2018", "new"), ("US", "2019", "old")]
            + [("France", "2018", "new")] * 3  # two attributes at once: in no split
        )
    ]
    table(tmp_path / "stores.csv", rows, "picture,label,country,year,camera,store")
    done = run(
        "remix", tmp_path / "stores.csv", "--like", "streetview-storefronts", "--test", 0.25,
        "--group", "store", "--name", "svsf",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    names = {info.name for info in list_sets() if info.name.startswith("svsf.")}
    assert names == {
        "svsf.train", "svsf.iid", "svsf.country-France", "svsf.year-2017", "svsf.year-2018",
        "svsf.camera-old",
    }  # fmt: skip
    train, iid, france = (open_set(f"svsf.{one}") for one in ("train", "iid", "country-France"))
    assert (len(train), len(iid), len(france)) == (18, 6, 2)
    store = {row[0]: row[5] for row in rows}
    assert not {store[one] for one in train.ids} & {store[one] for one in iid.ids}
    assert card_of(france).clean == "svsf.iid"
    assert card_of(train).clean is None
    assert train.classes == france.classes == ("bank", "shop")
    assert france.load(0).shape == (16, 16, 3)
    again = run("remix", tmp_path / "stores.csv", "--base", "year=2019", "--name", "svsf")
    assert "is there already" in str(again.exception)


def test_a_picture_of_several_labels_is_judged_by_what_matches() -> None:
    rows = [
        Row("a", "shirt", {"zoom": "1"}),
        Row("a", "hat", {"zoom": "3"}),
        Row("b", "hat", {"zoom": "3"}),
        Row("b", "skirt", {"zoom": "1"}),
        Row("c", "hat", {"zoom": "3"}),
    ]
    splits = remix(rows, {"zoom": ["1"]}, test=0.5)
    assert {row.label for row in splits["train"]} | {row.label for row in splits["iid"]} == {
        "shirt",
        "skirt",
    }
    trained = {row.picture for row in splits["train"]}
    assert {row.picture for row in splits["zoom-3"]} == {"a", "b", "c"} - trained


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--base", "year"], "is not COLUMN=VALUE"),
        (["--base", "yaer=2019"], "no column in .* 'yaer'; did you mean year"),
        (["--base", "year=1999"], "no row has year 1999"),
        ([], "say what stays fixed"),
        (["--like", "streetview"], "did you mean streetview-storefronts"),
        (["--base", "year=2019", "--test", "1"], "should be from 0 up to 1"),
    ],
)
def test_mistakes_in_a_remix(
    tmp_path: Path, home: Path, arguments: list[str], sentence: str
) -> None:
    table(tmp_path / "t.csv", [("a.png", "x", "2019")], "picture,label,year")
    done = run("remix", tmp_path / "t.csv", *arguments)
    assert isinstance(done.exception, InputError)
    with pytest.raises(InputError, match=sentence):
        raise done.exception


def test_deepfashion_is_remixed_by_garment(home: Path) -> None:
    root = home / "deepfashion2"
    usual = {"scale": 2, "occlusion": 2, "viewpoint": 3, "zoom_in": 1}

    def picture(part: str, number: int, *items: tuple[int, dict[str, int]]) -> None:
        (root / part / "annos").mkdir(parents=True, exist_ok=True)
        (root / part / "image").mkdir(exist_ok=True)
        anno: dict[str, Any] = {"source": "user", "pair_id": number}
        for index, (category, changes) in enumerate(items, 1):
            anno[f"item{index}"] = {"category_id": category, **usual, **changes, "style": 0}
        (root / part / "annos" / f"{number:06}.json").write_text(json.dumps(anno))
        scene(number, 16).save(root / part / "image" / f"{number:06}.jpg")

    picture("train", 1, (1, {}), (13, {"scale": 1}))
    picture("train", 2, (4, {"zoom_in": 3}))
    picture("validation", 1, (1, {}), (7, {}))
    picture("validation", 2, (2, {"occlusion": 3}), (9, {"occlusion": 3, "scale": 3}))
    picture("validation", 3, (2, {"occlusion": 1, "viewpoint": 2}))
    train = open_set("deepfashion-remixed.train")
    assert train.labels is not None
    # The sling dress of the picture is of another scale, and not judged here.
    assert [np.flatnonzero(row).tolist() for row in train.labels] == [[0]]
    iid = open_set("deepfashion-remixed.iid")
    assert iid.labels is not None
    assert [np.flatnonzero(row).tolist() for row in iid.labels] == [[0, 6]]
    heavy = open_set("deepfashion-remixed.occlusion-3")
    assert heavy.labels is not None
    assert [np.flatnonzero(row).tolist() for row in heavy.labels] == [[1]]
    assert len(heavy.classes) == 13
    assert heavy.load(0).shape == (16, 16, 3)
    assert card_of(heavy).clean == "deepfashion-remixed.iid"
    assert set(PRESETS["deepfashion-remixed"]) == set(usual)


# Subtypes


def test_subtypes_of_a_folder(tmp_path: Path, home: Path) -> None:
    for number, one in enumerate(["n01440764", "n01443537", "n02512938", "n09999999"]):
        (tmp_path / "22k" / one).mkdir(parents=True)
        scene(number, 16).save(tmp_path / "22k" / one / "x.png")
    # Fish above tench and goldfish of the thousand, and above another that they lack.
    pairs = ["n02512053 n01440764", "n02512053 n0141", "n0141 n01443537", "n02512053 n02512938"]
    (tmp_path / "is_a.txt").write_text("\n".join(pairs))
    done = run(
        "subtypes", tmp_path / "22k", tmp_path / "is_a.txt", "--broad",
        "imagenet-22k-superclasses", "--seen", "imagenet-1k", "--name", "broad",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    seen, unseen = open_set("broad.seen"), open_set("broad.unseen")
    assert seen.ids == ("n01440764/x.png", "n01443537/x.png")
    assert unseen.ids == ("n02512938/x.png",)
    assert unseen.classes == ("n02512053",)
    assert card_of(unseen).members == {"n02512053": ["n01440764", "n01443537"]}
    assert card_of(unseen).clean == "broad.seen"
    for wrong, sentence in (
        ([], "either --hold-out N or --seen LIST"),
        (["--hold-out", 3], "so 3 cannot be held out"),
    ):
        done = run("subtypes", tmp_path / "22k", tmp_path / "is_a.txt", "--name", "y", *wrong)
        assert sentence in str(done.exception)


def test_cifars_superclasses(home: Path) -> None:
    broad = published.superclasses("cifar-100")
    assert len(broad) == 20
    assert {len(some) for some in broad.values()} == {5}
    names = published.class_list("cifar-100")
    assert sorted(names) == list(names)
    folder = home / "cifar100-test" / "cifar-100-binary"
    folder.mkdir(parents=True)
    rows = [bytes([0, fine]) + bytes(3072) for fine in range(100)] * 100
    (folder / "test.bin").write_bytes(b"".join(rows))
    (folder / "fine_label_names.txt").write_text("\n".join(names))
    sets = {
        (part, k): open_set(f"cifar100-test.{part}-{k}")
        for part in ("seen", "unseen")
        for k in range(1, 5)
    }
    for k in range(1, 5):
        assert len(sets["unseen", k]) == 20 * k * 100
        assert len(sets["seen", k]) == 20 * (5 - k) * 100
        assert not set(sets["unseen", k].ids) & set(sets["seen", k].ids)
        assert len(sets["unseen", k].classes) == 20
    # Held out first, held out always.
    assert set(sets["unseen", 1].ids) < set(sets["unseen", 2].ids)


def test_a_class_below_two_broad_ones_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "h.csv").write_text("class,superclass\nbat,mammal\nbat,flyer\nowl,flyer\n")
    parents = read_hierarchy(tmp_path / "h.csv")
    assert broad_classes(["bat", "owl", "car"], parents) == {"flyer": ["owl"]}
    assert held_out({"x": ["a", "b", "c"]}, 1) < held_out({"x": ["a", "b", "c"]}, 2)


# Icons


@pytest.fixture
def vendors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[Any]]:
    """Tiny packages in the vendors' layouts, where npm would have put them."""
    monkeypatch.setenv("SHIFTBED_DATA", str(tmp_path / "cache"))
    emoji = [
        {"short_name": name, "subcategory": "x", "unified": code}
        for name, code in (
            ("airplane", "2708-FE0F"),
            ("small_airplane", "1F6E9-FE0F"),
            ("man-surfing", "1F3C4-200D-2642-FE0F"),
            ("surfer", "1F3C4"),
            ("pizza", "1F355"),
        )
    ]

    def package(spec: str, files: dict[str, bytes]) -> Package:
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
            for name, content in files.items():
                entry = tarfile.TarInfo(name)
                entry.size = len(content)
                tar.addfile(entry, io.BytesIO(content))
        draft = Package("npm", spec, "")
        draft.path.mkdir(parents=True)
        (draft.path / "x.tgz").write_bytes(buffer.getvalue())
        return Package("npm", spec, assets.sha256_of(draft.path / "x.tgz"))

    def icon(shade: int, form: str = "PNG", side: int = 64) -> bytes:
        buffer = io.BytesIO()
        picture = Image.new("RGBA", (side, side), (0, 0, 0, 0))
        picture.paste((shade, 0, 0, 255), (side // 4, side // 4, side // 2, side // 2))
        picture.save(buffer, form, lossless=True)
        return buffer.getvalue()

    def make() -> list[Any]:
        art = []
        for style, version, shades in (
            ("apple", "2", (10, 20, 30, 40)),
            ("google", "1", (50, 60, 70, 80)),
            ("google", "5", (50, 65, 70, 85)),  # two are as they were
        ):
            keys = ("2708-fe0f", "1f6e9-fe0f", "1f3c4-200d-2642-fe0f", "1f3c4")
            folder = f"package/img/{style}/64"
            files = {
                f"{folder}/{key}.png": icon(shade) for key, shade in zip(keys, shades, strict=True)
            }
            files |= {f"{folder}/1f355.png": icon(1), f"package/img/{style}/sheets/2708.png": b""}
            made = package(f"emoji-{style}@{version}", files)
            art.append(icons._Art(style, version, made, folder))
        files = {"package/assets/2708-fe0f.webp": icon(90, "WEBP", 256)}
        made = package("@fluent/three@1", files)
        art.insert(0, icons._Art("microsoft", "1", made, "package/assets"))
        names = package("emoji-data@1", {"package/emoji.json": json.dumps(emoji).encode()})
        monkeypatch.setattr(icons, "_ART", tuple(art))
        build = icons.build
        monkeypatch.setattr(icons, "build", lambda folder: build(folder, art, names))
        monkeypatch.setattr(icons, "_CONTROL", ("google", "5"))
        return art

    return make


def test_icons_are_rebuilt_from_packages(vendors: Callable[[], list[Any]]) -> None:
    vendors()
    images = open_set("icons-50-rebuilt")
    # 1 of Microsoft, 4 of Apple, 4 of Google, and 2 that Google drew anew; no pizza.
    assert len(images) == 11
    assert len(images.classes) == 50
    assert images.labels is not None
    counts = np.bincount(images.labels, minlength=50)
    assert {images.classes[c]: int(counts[c]) for c in np.flatnonzero(counts)} == {
        "airplane": 6,
        "surfing": 5,
    }
    picture = images.load(0)
    assert picture.shape == (64, 64, 3)
    assert picture[0, 0].tolist() == [255, 255, 255]  # on white


def test_hold_outs_keep_the_control_out_of_training() -> None:
    rng = np.random.default_rng(0)
    count = 400
    columns = icons._Columns(
        rng.choice(["cat", "dog"], count),
        rng.choice(["apple", "google"], count),
        rng.choice(["1", "5"], count),
        rng.choice(["a", "b", "c"], count),
    )
    parts = icons.hold_outs(columns, ("google", "5"), ["apple", "google"])
    control = (columns.style == "google") & (columns.version == "5")
    assert np.array_equal(parts["control"], control)
    for name, part in parts.items():
        if name != "control":
            assert not (part & control).any()
    assert np.array_equal(parts["style-apple"] | parts["train-style-apple"], ~control)
    assert set(columns.style[parts["train-style-apple"]]) == {"google"}
    assert np.array_equal(parts["subtypes"] | parts["train-subtypes"], ~control)
    for label in ("cat", "dog"):
        mine = columns.label == label
        assert len(set(columns.subtype[parts["subtypes"] & mine])) == 1
        assert not set(columns.subtype[parts["subtypes"] & mine]) & set(
            columns.subtype[parts["train-subtypes"] & mine]
        )


def test_every_class_of_icons_has_rules() -> None:
    assert set(icons._rules()) == set(published.class_list("icons-50"))


def test_the_stored_icons_are_read_without_running_anything(home: Path) -> None:
    folder = home / "icons-50"
    folder.mkdir(parents=True)
    content = {
        "class": np.array([0, 7]),
        "style": np.array(["apple", "google"]),
        "image": np.zeros((2, 3, 32, 32), np.uint8) + np.arange(3, dtype=np.uint8)[:, None, None],
        "subtype": np.array(["jet", "novel"]),
        "rendition": np.array(["0", "1"]),
    }
    np.save(folder / "Icons-50.npy", np.array(content, object), allow_pickle=True)
    with pytest.raises(InputError, match=r"holds 2 pictures of icons-50, .* 10,000"):
        open_set("icons-50")
    other = home / "a-few-icons"
    folder.rename(other)
    (other / "set.toml").write_text('like = "icons-50"\n')
    images = open_set("a-few-icons")
    assert images.labels is not None
    assert [images.classes[label] for label in images.labels] == ["airplane", "books"]
    assert images.load(0)[0, 0].tolist() == [0, 1, 2]

    class Evil:
        def __reduce__(self) -> Any:
            return (Path.touch, (home / "evil",))

    np.save(other / "Icons-50.npy", np.array(Evil(), object), allow_pickle=True)
    with pytest.raises(InputError, match=r"is not Icons-50's .*which is no array"):
        open_set("a-few-icons")
    assert not (home / "evil").exists()
