"""shiftbed augment and shiftbed train autoencoder: what they write, resume and refuse."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner, Result

from shiftbed.augment import augmentation, augmentation_names
from shiftbed.augment.copies import augment_set
from shiftbed.augment.sheet import contact_sheet, spread
from shiftbed.cli import app
from shiftbed.data import ArraySet, open_set
from shiftbed.errors import InputError


def shiftbed(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(one) for one in arguments])


def out(*arguments: object) -> str:
    result = shiftbed(*arguments)
    assert result.exit_code == 0, result.output + repr(result.exception)
    return result.stdout


def refused(*arguments: object) -> str:
    result = shiftbed(*arguments)
    assert isinstance(result.exception, InputError), result.output + repr(result.exception)
    return str(result.exception)


def contents(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_a_copy_is_a_folder_like_the_one_it_was_made_of(newcomer: Path) -> None:
    said = out("augment", "photos", "augmix", "-o", "copy", "--seed", 4, "--format", "png")
    assert "4 pictures are in copy;" in said
    assert "4 of them already" in out(
        *("augment", "photos", "augmix", "-o", "copy", "--seed", 4, "--format", "png", "-j", 1)
    )
    copied, source = open_set("copy"), open_set("photos")
    assert list(copied.classes) == ["cat", "dog"]
    assert copied.labels is not None
    assert copied.labels.tolist() == [0, 0, 1, 1]
    augment = augmentation("augmix", seed=4)
    for index in range(4):
        expected = augment(source.load(index), key=f"copy:{index}")
        assert np.array_equal(copied.load(index), expected)
    (newcomer / "photos" / "cat" / "bad.jpg").write_bytes(b"no picture")
    result = shiftbed("augment", "photos", "clahe", "-o", "other", "--size", 32)
    assert result.exit_code == 1
    assert "cat/bad.jpg" in result.stderr
    assert {open_set("other").load(index).shape for index in range(4)} == {(32, 40, 3)}


def test_mistakes_are_told_in_a_sentence(newcomer: Path) -> None:
    out("augment", "photos", "augmix", "-o", "copy")
    assert "begun with other augmentation (severity 3.0; now 1.0)" in refused(
        *("augment", "photos", "augmix", "-o", "copy", "--option", "severity=1")
    )
    assert "did you mean augmix" in refused("augment", "photos", "augmx", "-o", "new")
    assert "say where to" in refused("augment", "photos", "augmix")
    assert "inside the image set" in refused("augment", "photos", "augmix", "-o", "photos/new")
    assert "expected 8 to 8192" in refused(
        *("augment", "photos", "augmix", "-o", "new", "--size", 2)
    )
    assert "no encoding" in refused("augment", "photos", "augmix", "-o", "new", "--format", "gif")
    assert "weights=FILE" in refused(
        *("augment", "photos", "deepaugment", "--option", "network=cae", "-o", "new")
    )
    assert "safetensors" in refused("train", "autoencoder", "photos", "-o", "new.pt")
    assert "no folder" in refused("train", "autoencoder", "photos", "-o", "no/new.safetensors")
    assert not (newcomer / "new").exists()
    several = ArraySet("several", np.zeros((2, 8, 8), np.uint8), np.ones((2, 3), bool), list("abc"))
    with pytest.raises(InputError, match="several labels"):
        augment_set(several, newcomer / "new", augmentation("augmix"))


def test_what_is_trained_augments(newcomer: Path) -> None:
    said = out("train", "autoencoder", "photos", "-o", "ae.safetensors", "--steps", 2)
    assert "wrote ae.safetensors: trained on 3 pictures" in said
    assert "exists already" in refused("train", "autoencoder", "photos", "-o", "ae.safetensors")
    options = ("--option", "network=autoencoder", "--option", "weights=ae.safetensors")
    for folder, workers in (("one", 1), ("two", 3)):
        out("augment", "photos", "deepaugment", "-o", folder, "-j", workers, *options)
    assert contents(newcomer / "one") == contents(newcomer / "two")
    manifest = json.loads((newcomer / "one" / "manifest.json").read_text())
    assert len(manifest["augmentation"]["weights"]) == 64
    # Other weights under the same name are other settings.
    out("train", "autoencoder", "photos", "-o", "ae.safetensors", "--steps", 1, "--force")
    assert "other augmentation (weights" in refused(
        "augment", "photos", "deepaugment", "-o", "one", *options
    )


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="kill -9 is POSIX's")
def test_a_killed_copy_goes_on_to_the_same_bytes(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for number in range(24):
        picture = rng.integers(0, 256, (80, 80, 3), np.uint8)
        (tmp_path / "clean").mkdir(exist_ok=True)
        Image.fromarray(picture).save(tmp_path / "clean" / f"{number}.png")
    command = ["augment", str(tmp_path / "clean"), "noise2net", "-j", "2", "-o"]
    killed = tmp_path / "killed"
    run = subprocess.Popen(
        [sys.executable, "-m", "shiftbed", *command, str(killed)],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and len(list(killed.glob("*.JPEG"))) < 3:
        time.sleep(0.005)
    os.kill(run.pid, signal.SIGKILL)
    run.wait()
    there = len(list(killed.glob("*.JPEG")))
    assert 3 <= there < 24
    for folder in (killed, tmp_path / "whole"):
        out(*command, folder)
    assert contents(killed) == contents(tmp_path / "whole")


def test_a_contact_sheet_shows_pictures_from_all_over_the_set(newcomer: Path) -> None:
    assert "wrote sheet.png" in out("augment", "photos", "augmix", "--sheet", "sheet.png")
    assert "exists already" in refused("augment", "photos", "augmix", "--sheet", "sheet.png")
    images = ArraySet(
        "ramp", np.arange(20, dtype=np.uint8)[:, None, None].repeat(8, 1).repeat(8, 2)
    )
    chosen = spread(images)
    assert [int(one[0, 0]) for one in chosen] == [0, 4, 8, 12, 16]
    sheet = np.asarray(contact_sheet(chosen, augmentation("augmix"), columns=3, cell=32))
    assert sheet.shape[1] == 2 * 16 + 4 * 36
    assert (sheet[16 + 52 + 36 : 16 + 52 + 36 + 32, 16 : 16 + 32] == 4).all()
    with pytest.raises(InputError, match="no picture to draw"):
        contact_sheet([], augmentation("augmix"))
    with pytest.raises(InputError, match="1 to 50"):
        contact_sheet(chosen, augmentation("augmix"), columns=0)


def test_augmentations_are_listed() -> None:
    rows = json.loads(out("list", "augmentations", "--json"))
    assert [row["augmentation"] for row in rows] == list(augmentation_names())
    assert all(row["about"] for row in rows)
