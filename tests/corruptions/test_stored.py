"""The published layouts, the authors' sizes and JPEGs, and runs that are killed and resumed."""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from shiftbed.corruptions import corrupt, corruption_names, stored
from shiftbed.corruptions.stored import as_seen, make, save
from shiftbed.data import ArraySet, image_folder
from shiftbed.errors import InputError

DRY = [("fog", 1), ("fog", 5), ("contrast", 3), ("gaussian_noise", 2)]


def photos(folder: Path, count: int = 6) -> Path:
    """Write photographs of several sizes and kinds, a folder per class."""
    rng = np.random.default_rng(7)
    for number in range(count):
        size = [(300, 240), (240, 300), (256, 256), (80, 60), (517, 260), (333, 333)][number % 6]
        coarse = rng.integers(0, 256, (6, 8, 3), dtype=np.uint8)
        image = Image.fromarray(coarse).resize(size, Image.Resampling.BICUBIC)
        path = folder / f"n{number % 3:08}" / f"val_{number:04}.JPEG"
        path.parent.mkdir(parents=True, exist_ok=True)
        (image.convert("L") if number == 4 else image).save(path, "JPEG", quality=95)
    return folder


def content(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.fixture
def source(tmp_path):
    return photos(tmp_path / "photos")


def test_the_files_are_where_the_authors_put_them_and_as_they_wrote_them(source, tmp_path):
    made = make(image_folder(source), tmp_path / "out", DRY, seed=3)
    assert made == type(made)(files=24, kept=0, unreadable=())
    files = content(tmp_path / "out")
    expected = {
        f"{name}/{severity}/n{number % 3:08}/val_{number:04}.JPEG"
        for name, severity in DRY
        for number in range(6)
    }
    assert set(files) == expected | {"manifest.json", "manifest.jsonl"}
    for number in range(6):
        name = f"n{number % 3:08}/val_{number:04}.JPEG"
        clean = as_seen(np.asarray(Image.open(source / name).convert("RGB")))
        corrupted = corrupt(clean, "fog", 5, seed=3, key=name)
        written = io.BytesIO()
        Image.fromarray(corrupted).save(written, "JPEG", quality=85, optimize=True)
        assert (tmp_path / "out/fog/5" / name).read_bytes() == written.getvalue()


def test_the_manifest_tells_every_hash(source, tmp_path):
    make(image_folder(source), tmp_path / "out", DRY)
    files = content(tmp_path / "out")
    lines = (tmp_path / "out/manifest.jsonl").read_text("utf-8").splitlines()
    told = {}
    for number, line in enumerate(lines):
        record = json.loads(line)
        assert record["n"] == number
        pixels = as_seen(np.asarray(Image.open(source / record["source"]).convert("RGB")))
        digest = hashlib.sha256(repr(pixels.shape).encode() + pixels.tobytes()).hexdigest()
        assert record["pixels"] == digest
        told |= {f"{key}/{record['path']}": value for key, value in record["files"].items()}
    del files["manifest.json"], files["manifest.jsonl"]
    assert told == files
    settings = json.loads((tmp_path / "out/manifest.json").read_text("utf-8"))
    assert settings["shifts"] == ["fog/1", "fog/5", "contrast/3", "gaussian_noise/2"]
    assert settings["seed"] == 0
    assert settings["pictures"]["count"] == 6


@pytest.mark.parametrize("encoding", ["png", "webp"])
def test_lossless_encodings_keep_every_pixel(source, tmp_path, encoding):
    make(image_folder(source), tmp_path / "out", [("fog", 2)], encoding=encoding)
    name = "n00000000/val_0000"
    clean = as_seen(np.asarray(Image.open(source / f"{name}.JPEG")))
    written = np.asarray(Image.open(tmp_path / f"out/fog/2/{name}.{encoding}"))
    np.testing.assert_array_equal(written, corrupt(clean, "fog", 2, key=f"{name}.JPEG"))


@pytest.mark.parametrize("size", [(500, 375), (375, 500), (256, 256), (64, 48), (301, 256), (9, 7)])
def test_sizes_are_torchvisions(size):
    pytest.importorskip("torch")
    from shiftbed.models import import_torchvision

    transforms = import_torchvision().transforms
    noise = np.random.default_rng(1).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    image = Image.fromarray(noise)
    theirs = transforms.Compose([transforms.Resize(256), transforms.CenterCrop(224)])(image)
    np.testing.assert_array_equal(as_seen(noise), np.asarray(theirs))
    cut = transforms.CenterCrop((int(size[1] * 0.875), int(size[0] * 0.875)))
    theirs = transforms.Resize((299, 299))(cut(image))
    np.testing.assert_array_equal(as_seen(noise, "imagenet-299"), np.asarray(theirs))
    theirs = transforms.Resize((64, 64))(image)
    np.testing.assert_array_equal(as_seen(noise, "tiny-imagenet-c"), np.asarray(theirs))
    np.testing.assert_array_equal(as_seen(noise, "cifar-c", keep_size=True), noise)


def small(count: int = 7, side: int = 32, grey: bool = False) -> ArraySet:
    rng = np.random.default_rng(5)
    shape = (count, side, side) if grey else (count, side, side, 3)
    pictures = rng.integers(0, 256, shape, dtype=np.uint8)
    return ArraySet("tiny-test", pictures, labels=np.arange(count) % 3, classes=list("abc"))


def test_cifar_c_is_one_array_per_corruption_and_one_of_labels(tmp_path):
    pictures = small()
    shifts = [(name, severity) for name in ("fog", "pixelate") for severity in range(1, 6)]
    make(pictures, tmp_path, shifts, variant="cifar-c", seed=2)
    assert set(content(tmp_path)) == {
        "fog.npy",
        "pixelate.npy",
        "labels.npy",
        "manifest.json",
        "manifest.jsonl",
    }
    fog, labels = np.load(tmp_path / "fog.npy"), np.load(tmp_path / "labels.npy")
    assert fog.shape == (35, 32, 32, 3)
    assert (fog.dtype, labels.dtype) == (np.uint8, np.uint8)
    assert labels.tolist() == [0, 1, 2, 0, 1, 2, 0] * 5
    expected = corrupt(pictures.load(4), "fog", 3, variant="cifar-c", seed=2, key="4")
    np.testing.assert_array_equal(fog[2 * 7 + 4], expected)


def test_mnist_c_is_a_folder_per_corruption_with_the_clean_digits_beside(tmp_path):
    pictures = small(side=28, grey=True)
    make(pictures, tmp_path, variant="mnist-c")
    names = {"identity", *corruption_names("mnist-c")}
    assert set(content(tmp_path)) == {"manifest.json", "manifest.jsonl"} | {
        f"{name}/test_{kind}.npy" for name in names for kind in ("images", "labels")
    }
    clean = np.load(tmp_path / "identity/test_images.npy")
    assert clean.shape == (7, 28, 28, 1)
    np.testing.assert_array_equal(clean[3, ..., 0], pictures.load(3))
    sheared = np.load(tmp_path / "shear/test_images.npy")
    expected = corrupt(pictures.load(3), "shear", variant="mnist-c", key="3")
    np.testing.assert_array_equal(sheared[3, ..., 0], expected)
    assert np.load(tmp_path / "shear/test_labels.npy").tolist() == [0, 1, 2, 0, 1, 2, 0]


def test_a_training_set_is_written_as_one(tmp_path):
    pictures = small(side=28, grey=True)
    pictures.name = "digits-train"
    pictures.labels = None
    make(pictures, tmp_path, [("stripe", None)], variant="mnist-c")
    assert set(content(tmp_path)) == {
        "manifest.json",
        "manifest.jsonl",
        "identity/train_images.npy",
        "stripe/train_images.npy",
    }


def test_pictures_without_labels_have_no_class_folder(tmp_path):
    folder = photos(tmp_path / "photos", 1) / "n00000000"
    make(image_folder(folder), tmp_path / "out", [("fog", 2), ("greyscale", None)])
    assert {"fog/2/val_0000.JPEG", "greyscale/val_0000.JPEG"} < set(content(tmp_path / "out"))


def test_a_full_disk_is_told_and_mended(source, tmp_path, monkeypatch):
    expected = make(image_folder(source), tmp_path / "whole", DRY)
    written = 0

    def until_full(picture, encoding, path, write=stored.write_picture):
        nonlocal written
        written += 1
        if written > 9:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(picture, encoding, path)

    with monkeypatch.context() as patch:
        patch.setattr(stored, "write_picture", until_full)
        with pytest.raises(InputError, match="No space left on device"):
            make(image_folder(source), tmp_path / "out", DRY, workers=1)
    assert make(image_folder(source), tmp_path / "out", DRY).files == expected.files
    assert content(tmp_path / "out") == content(tmp_path / "whole")


def test_by_default_it_is_the_whole_benchmark(source, tmp_path, frost_folder):
    make(
        image_folder(source),
        tmp_path / "out",
        keep_size=True,
        variant="tiny-imagenet-c",
        options={"textures": str(frost_folder)},
    )
    made = {Path(file).parts[:2] for file in content(tmp_path / "out") if "/" in file}
    names = corruption_names("tiny-imagenet-c")
    assert made == {(name, str(severity)) for name in names for severity in range(1, 6)}
    with Image.open(tmp_path / "out/frost/1/n00000000/val_0000.JPEG") as frosted:
        assert frosted.size == (300, 240)


@pytest.mark.parametrize("variant", ["imagenet-c", "cifar-c"])
def test_the_number_of_threads_does_not_matter(tmp_path, variant):
    pictures = small(40)
    for workers in (1, 2, 5):
        make(pictures, tmp_path / str(workers), DRY[:2], variant=variant, workers=workers)
    assert content(tmp_path / "1") == content(tmp_path / "2") == content(tmp_path / "5")


def test_a_second_call_does_only_what_is_missing(source, tmp_path):
    out = tmp_path / "out"
    make(image_folder(source), out, DRY)
    before = content(out)
    stamp = (out / "fog/1/n00000000/val_0000.JPEG").stat().st_mtime_ns
    assert make(image_folder(source), out, DRY).kept == 24
    (out / "fog/5/n00000001/val_0001.JPEG").unlink()
    assert make(image_folder(source), out, DRY).kept == 20
    assert content(out) == before
    assert (out / "fog/1/n00000000/val_0000.JPEG").stat().st_mtime_ns == stamp


def test_check_mends_what_was_altered(source, tmp_path):
    out = tmp_path / "out"
    make(image_folder(source), out, DRY)
    before = content(out)
    (out / "fog/5/n00000001/val_0001.JPEG").write_bytes(b"altered")
    assert make(image_folder(source), out, DRY).kept == 24
    assert content(out) != before
    assert make(image_folder(source), out, DRY, check=True).kept == 20
    assert content(out) == before


def test_unreadable_pictures_are_told_and_the_others_made(source, tmp_path):
    (source / "n00000000/broken.JPEG").write_bytes(b"no picture")
    (source / "n00000001/empty.JPEG").write_bytes(b"")
    made = make(image_folder(source), tmp_path / "out", DRY)
    assert made.files == 24
    assert dict(made.unreadable) == {
        "n00000000/broken.JPEG": "not a picture",
        "n00000001/empty.JPEG": "an empty file",
    }
    again = make(image_folder(source), tmp_path / "out", DRY)
    assert (again.kept, again.unreadable) == (24, made.unreadable)


RUN = """
import sys
from pathlib import Path
from shiftbed.corruptions.stored import make
from shiftbed.data import open_set
set_, out, variant = sys.argv[1:4]
names = ["fog", "glass_blur", "contrast", "gaussian_noise", "zoom_blur"]
shifts = [(name, severity) for name in names for severity in range(1, 6)]
count = 0
def watch(done):
    global count
    count += done
    sys.stdout.write(f"{count}\\n")
    sys.stdout.flush()
make(open_set(set_), out, shifts, variant=variant, workers=2, watch=watch)
"""


@pytest.mark.parametrize("variant", ["imagenet-c", "cifar-c"])
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="kill -9 is POSIX's")
def test_a_killed_run_goes_on_to_the_same_bytes(tmp_path, variant):
    if variant == "imagenet-c":
        pictures = photos(tmp_path / "photos", 12)
    else:
        pictures = tmp_path / "tiny.npz"
        array = np.random.default_rng(0).integers(0, 256, (400, 32, 32, 3), dtype=np.uint8)
        np.savez(pictures, images=array, labels=np.zeros(400, np.int64))
    command = [sys.executable, "-c", RUN, str(pictures)]
    subprocess.run([*command, str(tmp_path / "whole"), variant], check=True, capture_output=True)
    out = tmp_path / "killed"
    total = 12 * 25 if variant == "imagenet-c" else 400 * 25
    for part in (0.1, 0.6):
        with subprocess.Popen(
            [*command, str(out), variant], stdout=subprocess.PIPE, text=True
        ) as run:
            for line in run.stdout:
                if int(line) > part * total:
                    os.kill(run.pid, signal.SIGKILL)
                    break
        assert run.returncode == -signal.SIGKILL
        assert not (out / "manifest.jsonl").exists()
    # As if the last of them had been killed in the middle of a line and of a file.
    with (out / ".journal.jsonl").open("a") as journal:
        journal.write('{"n": 3, "sou')
    (out / ".scratch").mkdir(exist_ok=True)
    (out / ".scratch/left").write_bytes(b"half a file")
    subprocess.run([*command, str(out), variant], check=True, capture_output=True)
    assert content(out) == content(tmp_path / "whole")


def test_names_may_be_anything_that_files_may_be_called(tmp_path):
    names = ("a b.png", "日本\u2028.png", "line\nbreak.jpg", "no suffix", "a.b.c", "caf\udce9.gif")
    classes = ("[red]", "ü", "c")
    pictures = hostile(ids=names, classes=classes, fingerprint=lambda: "of bytes no UTF-8 has")
    made = make(pictures, tmp_path, FOG)
    assert (made.files, made.kept) == (6, 0)
    assert (tmp_path / "fog/1/ü/日本\u2028.JPEG").exists()
    assert (tmp_path / "fog/1/ü/a.b.c.JPEG").exists()
    assert make(pictures, tmp_path, FOG).kept == 6


def test_two_runs_do_not_share_a_folder(tmp_path):
    pytest.importorskip("fcntl")
    pictures = small(600)
    begun = []

    def second(done: int) -> None:
        if not begun:
            begun.append(done)
            with pytest.raises(InputError, match="another run is writing to"):
                make(pictures, tmp_path, [("fog", 1)], variant="cifar-c")

    make(pictures, tmp_path, [("fog", 1)], variant="cifar-c", watch=second)
    assert begun


def colliding(tmp_path: Path) -> Path:
    folder = photos(tmp_path / "twice", 1)
    (folder / "n00000000/val_0000.png").write_bytes(b"")
    return folder


def hostile(**changed: object) -> ArraySet:
    pictures = small(6)
    for name, value in changed.items():
        setattr(pictures, name, value)
    return pictures


FOG = [("fog", 1)]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"shifts": [("fgo", 1)]}, "no corruption 'fgo'; did you mean fog?"),
        ({"shifts": [("fog", 6)]}, "severity 6 of fog does not exist; imagenet-c has 1 to 5"),
        ({"shifts": [("fog", None)]}, "fog needs a severity from 1 to 5"),
        ({"shifts": []}, "there is nothing to make"),
        ({"variant": "imagenet-p"}, "no variant 'imagenet-p'; did you mean imagenet-c"),
        ({"encoding": "bmp"}, "no encoding 'bmp'; choose one of jpeg, png, webp"),
        ({"workers": 0}, "0 workers were asked for; expected 1 or more"),
        ({"options": {"texture": "x"}}, "no option of these corruptions 'texture'"),
        ({"variant": "mnist-c"}, "0 has 32 x 32 pixels, but mnist-c is of 28 x 28; resize it"),
        (
            {"variant": "mnist-c", "shifts": [("fog", 1), ("fog", 2)], "keep_size": True},
            "holds one severity of each corruption, but fog was asked for at several",
        ),
        (
            {"variant": "cifar-c", "shifts": [("fog", 1), ("fog", 2), ("snow", 1)]},
            "so each needs the same number of severities",
        ),
        (
            {"pictures": hostile(ids=("../../etc/passwd",) * 6)},
            "cannot be the name of a file",
        ),
        ({"pictures": hostile(classes=("..", "b", "c"))}, "cannot be the name of a file"),
        ({"pictures": hostile(ids=("/etc/passwd",) * 6)}, "cannot be the name of a file"),
        (
            {"pictures": hostile(labels=np.ones((6, 3), bool))},
            "has several labels per picture",
        ),
    ],
)
def test_mistakes_are_told_before_anything_is_written(tmp_path, arguments, sentence):
    arguments = {"pictures": small(), "shifts": FOG, "output": tmp_path / "out", **arguments}
    with pytest.raises(InputError) as caught:
        make(**arguments)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_two_pictures_of_one_name_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"would both be written as n00000000/val_0000.JPEG"):
        make(image_folder(colliding(tmp_path)), tmp_path / "out", FOG)


def test_arrays_of_pictures_of_two_sizes_are_refused(source, tmp_path):
    with pytest.raises(InputError, match="needs them of one size"):
        make(image_folder(source), tmp_path / "out", FOG, variant="cifar-c", keep_size=True)


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"seed": 1}, "was begun with other seed (0; now 1)"),
        ({"encoding": "png"}, "was begun with other encoding (jpeg; now png)"),
        ({"keep_size": True}, "was begun with other size"),
        (
            {"shifts": [("fog", 2)]},
            "was begun with other shifts (1, fog/1 among them; now 1, fog/2",
        ),
        ({"pictures": small(6)}, "was begun with other pictures (count 7; now 6)"),
        ({"variant": "tiny-imagenet-c"}, "was begun with other variant"),
    ],
)
def test_other_settings_are_refused_in_a_folder_that_was_begun(tmp_path, changed, sentence):
    arguments = {"pictures": small(), "shifts": FOG, "output": tmp_path / "out"}
    make(**arguments)
    before = content(tmp_path / "out")
    with pytest.raises(InputError) as caught:
        make(**{**arguments, **changed})
    assert sentence in str(caught.value)
    assert content(tmp_path / "out") == before


def test_folders_with_other_things_are_left_alone(source, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/thesis.tex").write_text("...")
    with pytest.raises(InputError, match=r"is not empty \(thesis.tex\) and no stored set"):
        make(small(), tmp_path / "mine", FOG)
    with pytest.raises(InputError, match="is a file; choose a new folder"):
        make(small(), tmp_path / "mine/thesis.tex", FOG)
    with pytest.raises(InputError, match="is inside the image set"):
        make(image_folder(source), source / "out", FOG)
    (tmp_path / "mine/thesis.tex").rename(tmp_path / "mine/manifest.json")
    with pytest.raises(InputError, match="is no manifest of a stored set"):
        make(small(), tmp_path / "mine", FOG)


def test_saved_pictures_appear_whole_and_replace_nothing_unasked(tmp_path):
    picture = small(1).load(0)
    for name in ("a.png", "b.webp"):
        save(picture, tmp_path / name)
        np.testing.assert_array_equal(np.asarray(Image.open(tmp_path / name)), picture)
    save(picture, tmp_path / "c.JPG")
    with pytest.raises(InputError, match="exists already"):
        save(picture, tmp_path / "a.png")
    save(picture // 2, tmp_path / "a.png", replace=True)
    np.testing.assert_array_equal(np.asarray(Image.open(tmp_path / "a.png")), picture // 2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.png", "b.webp", "c.JPG"]
    for name in ("a.bmp", "a", "no/folder.png"):
        with pytest.raises(InputError, match="cannot"):
            save(picture, tmp_path / name)
