from __future__ import annotations

import contextlib
import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from shiftbed import InputError
from shiftbed.data import (
    ArraySet,
    ImageSet,
    UnreadablePicture,
    image_folder,
    list_sets,
    open_set,
)
from shiftbed.data.arrays import read_idx
from shiftbed.data.pictures import read_picture


def drawn(height: int = 12, width: int = 16) -> np.ndarray:
    y, x = np.mgrid[:height, :width]
    return np.stack([x * 9, y * 9, x + y], axis=2).astype(np.uint8)


def test_a_folder_per_class(folder: Path) -> None:
    pets = image_folder(folder)
    assert isinstance(pets, ImageSet)
    assert pets.name == "pets"
    assert pets.classes == ("cat", "dog")
    assert pets.ids == ("cat/1.png", "cat/2.png", "cat/more/4.png", "dog/3.png")
    assert pets.labels is not None
    assert pets.labels.tolist() == [0, 0, 0, 1]
    assert pets.labels.dtype == np.int64
    assert len(pets) == 4
    assert np.array_equal(pets.load(3), np.asarray(Image.open(folder / "dog" / "3.png")))


def test_a_flat_folder_has_no_labels(folder: Path) -> None:
    cats = image_folder(folder / "cat" / "more", name="cats")
    assert cats.labels is None
    assert cats.classes == ()
    assert cats.ids == ("4.png",)


def test_it_agrees_with_torchvision(folder: Path) -> None:
    from shiftbed.models import import_torchvision

    theirs = import_torchvision().datasets.ImageFolder(folder, allow_empty=True)
    ours = image_folder(folder)
    assert [name for name in theirs.classes if name != "empty"] == list(ours.classes)
    paths = [Path(path).relative_to(folder).as_posix() for path, _ in theirs.samples]
    assert sorted(paths) == sorted(ours.ids)
    for index, (path, _) in enumerate(theirs.samples):
        assert np.array_equal(
            ours.load(ours.ids.index(paths[index])), np.asarray(theirs.loader(path))
        )


def test_links_are_followed_and_loops_end(folder: Path, tmp_path: Path) -> None:
    (folder / "dog" / "loop").symlink_to(folder / "dog")
    linked = tmp_path / "linked"
    linked.mkdir()
    (linked / "hund").symlink_to(folder / "dog")
    (linked / "katze").symlink_to(folder / "cat")
    assert image_folder(folder).ids[-1] == "dog/3.png"
    assert image_folder(linked).ids == (
        "hund/3.png",
        "katze/1.png",
        "katze/2.png",
        "katze/more/4.png",
    )


def test_numeric_folders_are_in_the_order_of_numbers(tmp_path: Path) -> None:
    for name in ["0", "1", "2", "10", "100"]:
        (tmp_path / name).mkdir()
        Image.fromarray(drawn()).save(tmp_path / name / "a.png")
    assert image_folder(tmp_path).classes == ("0", "1", "2", "10", "100")


def test_the_fingerprint_sees_what_changes(folder: Path) -> None:
    first = image_folder(folder).fingerprint()
    assert image_folder(folder).fingerprint() == first
    (folder / "dog" / "3.png").rename(folder / "dog" / "5.png")
    renamed = image_folder(folder).fingerprint()
    (folder / "dog" / "5.png").write_bytes(b"shorter")
    resized = image_folder(folder).fingerprint()
    (folder / "dog" / "5.png").replace(folder / "cat" / "5.png")
    assert len({first, renamed, resized, image_folder(folder).fingerprint()}) == 4


@pytest.mark.parametrize(
    ("mode", "suffix"),
    [("RGB", "png"), ("L", "png"), ("1", "png"), ("P", "gif"), ("RGBA", "png"), ("LA", "png"),
     ("CMYK", "jpg"), ("L", "jpg"), ("YCbCr", "jpg"), ("RGB", "bmp"), ("RGB", "webp"),
     ("RGB", "ppm"), ("CMYK", "tif")],
)  # fmt: skip
def test_every_kind_of_picture_becomes_rgb_as_pillow_has_it(
    tmp_path: Path, mode: str, suffix: str
) -> None:
    path = tmp_path / f"a.{suffix}"
    Image.fromarray(drawn()).convert(mode).save(path)
    found = read_picture(path)
    assert found.shape == (12, 16, 3)
    assert found.dtype == np.uint8
    with Image.open(path) as image:
        assert np.array_equal(found, np.asarray(image.convert("RGB")))


def test_a_palette_with_transparency(tmp_path: Path) -> None:
    image = Image.fromarray(drawn()).quantize(8)
    image.save(tmp_path / "a.png", transparency=bytes([0, 128] + [255] * 6))
    assert np.array_equal(read_picture(tmp_path / "a.png"), np.asarray(image.convert("RGB")))


def test_orientation_is_ignored_unless_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "turned.jpg"
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.fromarray(drawn(8, 24)).save(path, exif=exif, quality=95)
    assert read_picture(path).shape == (8, 24, 3)
    turned = read_picture(path, orient=True)
    assert turned.shape == (24, 8, 3)
    assert np.array_equal(turned, np.rot90(read_picture(path), -1))


def test_one_pixel_high(tmp_path: Path) -> None:
    Image.fromarray(drawn(1, 40)).save(tmp_path / "a.png")
    assert read_picture(tmp_path / "a.png").shape == (1, 40, 3)


def spoilt(tmp_path: Path, kind: str) -> Path:
    path = tmp_path / "a.jpg"
    noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3)).astype(np.uint8)
    Image.fromarray(noise).save(path)
    content = path.read_bytes()
    if kind == "truncated":
        path.write_bytes(content[: len(content) // 2])
    elif kind == "truncated png":
        path = tmp_path / "a.png"
        Image.fromarray(noise).save(path)
        path.write_bytes(path.read_bytes()[:2000])
    elif kind == "text":
        path.write_text("this is a text")
    elif kind == "empty":
        path.write_bytes(b"")
    elif kind == "gone":
        path.unlink()
    elif kind == "16 bits grey":
        path = tmp_path / "a.png"
        Image.fromarray(np.arange(4096, dtype=np.uint16).reshape(64, 64)).save(path)
    elif kind == "16 bits rgb":
        import cv2

        path = tmp_path / "a.png"
        cv2.imwrite(str(path), np.full((8, 8, 3), 60_000, np.uint16))
    elif kind == "float":
        path = tmp_path / "a.tif"
        Image.fromarray(np.ones((8, 8), np.float32)).save(path)
    elif kind == "bomb":
        path = tmp_path / "a.png"
        Image.new("1", (20_000, 20_000)).save(path)
    elif kind == "folder":
        path = tmp_path / "folder.jpg"
        path.mkdir()
    return path


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("truncated", "truncated"),
        ("truncated png", "truncated"),
        ("text", "not a picture"),
        ("empty", "an empty file"),
        ("gone", "the file is gone"),
        ("16 bits grey", "16 bits or more"),
        ("16 bits rgb", "16 bits or more"),
        ("float", "16 bits or more"),
        ("bomb", "too many pixels"),
        ("folder", "not a file"),
    ],
)
def test_what_cannot_be_read_has_a_reason(tmp_path: Path, kind: str, reason: str) -> None:
    with pytest.raises(UnreadablePicture, match=reason) as caught:
        read_picture(spoilt(tmp_path, kind))
    assert caught.value.reason
    assert str(tmp_path) not in caught.value.reason


def test_damage_anywhere_is_a_reason_or_a_picture(tmp_path: Path) -> None:
    """Bytes changed and cut at random: a picture or a reason, and nothing else."""
    rng = np.random.default_rng(3)
    for suffix in ("jpg", "png", "gif", "bmp", "tif", "webp"):
        path = tmp_path / f"a.{suffix}"
        Image.fromarray(drawn(40, 40)).save(path)
        whole = np.frombuffer(path.read_bytes(), np.uint8)
        for _ in range(40):
            content = whole.copy()
            content[rng.integers(0, len(content), 4)] = rng.integers(0, 256, 4)
            path.write_bytes(content[: rng.integers(1, len(content) + 1)].tobytes())
            with contextlib.suppress(UnreadablePicture):
                assert read_picture(path).ndim == 3


def test_arrays() -> None:
    pictures = np.stack([drawn(), drawn() + 1])
    mine = ArraySet("mine", pictures, labels=[1, 0], classes=["a", "b"], ids=["x", "y"])
    assert isinstance(mine, ImageSet)
    assert np.array_equal(mine.load(1), pictures[1])
    assert ArraySet("grey", pictures[..., :1]).load(0).shape == (12, 16)
    assert ArraySet("m", pictures, labels=[2, 0]).classes == ("0", "1", "2")
    other = ArraySet("mine", pictures, labels=[0, 0], classes=["a", "b"], ids=["x", "y"])
    assert mine.fingerprint() != other.fingerprint()
    many = ArraySet("many", pictures, np.array([[True, True], [False, False]]), ["a", "b"])
    assert many.labels is not None
    assert many.labels.dtype == np.bool_


def test_npz(tmp_path: Path) -> None:
    pictures = np.stack([drawn(), drawn() + 1])
    np.savez(tmp_path / "mine.npz", images=pictures, labels=[0, 1], classes=["a", "b"])
    mine = open_set(tmp_path / "mine.npz")
    assert (mine.name, mine.classes, mine.ids) == ("mine", ("a", "b"), ("0", "1"))
    assert np.array_equal(mine.load(0), pictures[0])
    assert open_set(mine) is mine


@pytest.mark.parametrize(
    ("arrays", "sentence"),
    [
        ({"pictures": [0]}, "holds pictures; expected 'images'"),
        ({"images": np.zeros((2, 4, 4))}, "are float64; expected uint8"),
        ({"images": np.zeros((2, 4), np.uint8)}, r"have shape \(2, 4\)"),
        ({"images": np.zeros((2, 4, 4, 4), np.uint8)}, r"have shape \(2, 4, 4, 4\)"),
        ({"images": np.zeros((0, 4, 4), np.uint8)}, "holds no pictures"),
        ({"images": np.zeros((2, 4, 4), np.uint8), "labels": [1]}, "2 pictures and 1 labels"),
        ({"images": np.zeros((1, 4, 4), np.uint8), "labels": [0.5]}, "one whole number"),
        ({"images": np.zeros((1, 4, 4), np.uint8), "labels": [-1]}, "run from -1"),
        (
            {"images": np.zeros((1, 4, 4), np.uint8), "labels": [2], "classes": ["a", "b"]},
            "expected 0 to 1",
        ),
        (
            {"images": np.zeros((2, 4, 4), np.uint8), "ids": ["a", "a"]},
            "one id for each of its 2 pictures",
        ),
    ],
)
def test_npz_mistakes(tmp_path: Path, arrays: dict[str, Any], sentence: str) -> None:
    np.savez(tmp_path / "mine.npz", **arrays)
    with pytest.raises(InputError, match=sentence):
        open_set(tmp_path / "mine.npz")


def test_npz_that_holds_code_is_not_opened(tmp_path: Path) -> None:
    np.savez(tmp_path / "mine.npz", images=np.array([{}], dtype=object))
    with pytest.raises(InputError, match=r"not an \.npz file of plain arrays"):
        open_set(tmp_path / "mine.npz")


def idx(shape: tuple[int, ...], content: bytes, kind: int = 8) -> bytes:
    axes = b"".join(length.to_bytes(4, "big") for length in shape)
    return bytes([0, 0, kind, len(shape)]) + axes + content


@pytest.mark.parametrize("packed", [False, True])
def test_idx(tmp_path: Path, packed: bool) -> None:
    content = idx((2, 2, 3), bytes(range(12)))
    (tmp_path / "a").write_bytes(gzip.compress(content) if packed else content)
    assert read_idx(tmp_path / "a").tolist() == np.arange(12).reshape(2, 2, 3).tolist()


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "not an IDX file"),
        (b"\0\0\x08", "not an IDX file"),
        (idx((2, 2), b"1234", kind=13), "not an IDX file of unsigned bytes"),
        (idx((2, 3), b"1234"), "is cut short"),
        (b"\0\0\x08\x03\0\0", "is cut short"),
        (b"\x1f\x8b\x08 not gzip", "cannot read"),
    ],
)
def test_idx_mistakes(tmp_path: Path, content: bytes, sentence: str) -> None:
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(InputError, match=sentence):
        read_idx(tmp_path / "a")


def test_folder_mistakes(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "nothing").mkdir()
    (tmp_path / "file.txt").write_text("x")
    mixed = tmp_path / "mixed"
    (mixed / "cat").mkdir(parents=True)
    for path in (mixed / "cat" / "a.png", mixed / "b.png"):
        Image.fromarray(drawn()).save(path)
    for given, sentence in {
        tmp_path / "nothing": "holds no pictures",
        tmp_path / "file.txt": "is a file that is no image set",
        tmp_path / "missing": "does not exist",
        tmp_path / "pets": "holds val rather than classes; name one of them, as in .*val",
        mixed: "both class folders .cat. and 1 loose pictures .b.png.",
        "mnist-tset": "did you mean mnist-test",
    }.items():
        with pytest.raises(InputError, match=sentence):
            open_set(given)


def test_the_catalogue_says_what_there_is() -> None:
    sets = {info.name: info for info in list_sets()}
    assert {"mnist-test", "mnist-train", "imagenet-photos", "natural-photos"} <= set(sets)
    assert sets["mnist-test"].card.variant == "mnist-c"
    for info in sets.values():
        assert info.card.about
        assert info.card.citation
        assert info.card.licence
        assert isinstance(info.ready(), bool)


def opened(name: str) -> ImageSet:
    try:
        return open_set(name)
    except InputError as problem:
        if (
            "cannot fetch" in str(problem)
            or "not on this machine" in str(problem)
            or "cannot download" in str(problem)
        ):
            pytest.skip(str(problem))
        raise


def test_mnist() -> None:
    digits = opened("mnist-test")
    assert len(digits) == 10_000
    assert digits.labels is not None
    assert np.bincount(digits.labels.astype(int)).tolist() == [
        980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009,
    ]  # fmt: skip
    assert digits.load(0).shape == (28, 28)
    reference = Path(__file__).parents[3] / "shared" / "reference" / "mnist_c.npz"
    if reference.exists():
        with np.load(reference) as arrays:
            inputs = [key for key in arrays.files if key.startswith("input/")]
            for key in inputs:
                assert np.array_equal(digits.load(int(key.partition("/")[2])), arrays[key])


def test_imagenet_photos() -> None:
    photos = opened("imagenet-photos")
    assert photos.labels is not None
    assert len(photos) == 20
    assert photos.classes[photos.labels[0]] == "n02108422", "243 is the bull mastiff"


def test_fashion_mnist() -> None:
    for part, count in (("test", 10_000), ("train", 60_000)):
        clothes = opened(f"fashion-mnist-{part}")
        assert clothes.labels is not None
        assert np.bincount(clothes.labels.astype(int)).tolist() == [count // 10] * 10
        assert clothes.load(0).shape == (28, 28)
    clothes = opened("fashion-mnist-test")
    assert clothes.labels is not None
    first = [clothes.classes[label] for label in clothes.labels[:5]]
    assert first == ["ankle boot", "pullover", "trouser", "trouser", "shirt"]
