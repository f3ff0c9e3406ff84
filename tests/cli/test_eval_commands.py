from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from shiftbed.cli import main

CLASSES = ["ant", "bee", "cat", "dog", "elk"]
MODELS = '''
"""Models of a user's own."""
import time
import numpy as np
from shiftbed.models import Geometry

def linear(outputs, channels=3, seed=0):
    weights = np.random.default_rng(seed).normal(0, 0.01, (24 * 24 * channels, outputs))
    def predict(batch):
        return batch.reshape(len(batch), -1).astype(float) @ weights
    predict.geometry = Geometry((24, 24), (24, 24), fit="squash", channels=channels)
    predict.class_keys = ("ant", "bee", "cat", "dog", "elk") if outputs == 5 else None
    predict.fingerprint = f"{outputs} {channels} {seed}"
    return predict

def five():
    return linear(5)

def other():
    return linear(5, seed=1)

def thousand():
    return linear(1000)

def slow():
    model = linear(5)
    def predict(batch):
        time.sleep(0.1)
        return model(batch)
    predict.geometry, predict.class_keys, predict.fingerprint = (
        model.geometry, model.class_keys, model.fingerprint)
    return predict

def flat():
    def predict(batch):
        return batch.mean((1, 2, 3))
    predict.geometry = Geometry((24, 24), (24, 24), fit="squash", channels=3)
    return predict

def raises():
    raise RuntimeError("the checkpoint is on another disk")

def unlucky():
    def predict(batch):
        raise ValueError("mat1 and mat2 shapes cannot be multiplied")
    predict.geometry = Geometry((24, 24), (24, 24), fit="squash", channels=3)
    return predict

def lost():
    def predict(batch):
        return np.full((len(batch), 5), np.nan)
    predict.geometry = Geometry((24, 24), (24, 24), fit="squash", channels=3)
    predict.class_keys = ("ant", "bee", "cat", "dog", "elk")
    return predict

not_a_function = 3
'''

Shell = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A user's folder: pictures, models, and things that go wrong."""
    root = tmp_path_factory.mktemp("user")
    rng = np.random.default_rng(0)
    for number in range(40):
        target = root / "photos" / CLASSES[number % 5] / f"{number:02}.png"
        target.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 256, (30, 40, 3), np.uint8)).save(target)
    (root / "flat").mkdir()
    for number in range(6):
        picture = rng.integers(0, 256, (30, 40, 3), np.uint8)
        Image.fromarray(picture).save(root / "flat" / f"{number}.jpg")
    broken = root / "broken" / "ant"
    broken.mkdir(parents=True)
    whole = (root / "photos" / "ant" / "00.png").read_bytes()
    (broken / "0 whole.png").write_bytes(whole)
    (broken / "1 truncated.png").write_bytes(whole[: len(whole) // 2])
    (broken / "2 empty.png").write_bytes(b"")
    (broken / "3 text.jpg").write_text("I am no picture")
    (root / "broken" / "bee").mkdir()
    (root / "broken" / "bee" / "4 whole.png").write_bytes(whole)
    (root / "nothing").mkdir()
    (root / "hollow" / "ant").mkdir(parents=True)
    (root / "hollow" / "ant" / "0.png").write_bytes(b"")
    (root / "users_own_models.py").write_text(MODELS)
    (root / "occupied").write_text("a file")
    (root / "pickle.pkl").write_bytes(b"")
    return root


@pytest.fixture
def shell(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Shell:
    """Run a command as a person would, in the user's folder."""
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("COLUMNS", "80")

    def run(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["shiftbed", *map(str, words)])
        try:
            main()
            status = 0
        except SystemExit as left:
            status = int(left.code or 0)
        output = capsys.readouterr()
        return status, output.out, output.err

    return run


OWN = "python:users_own_models:"


def test_the_main_job_ends_in_tables_that_fit(shell: Shell, tmp_path: Path) -> None:
    words = ["eval", "-m", f"{OWN}five", "-m", f"{OWN}other", "-d", "photos"]
    words += ["--suite", "imagenet-c", "--baseline", "five", "-o", tmp_path]
    status, out, err = shell(*words)
    assert (status, err) == (0, "")
    assert max(map(len, out.splitlines())) <= 80
    for said in (
        "photos: accuracy in percent [95% interval], n = 40",
        "gaussian_noise",
        "clean",
        "jpeg_compression",
        "mCE",
        "relative",
        "all 15 corruptions",
        "The worst cells",
    ):
        assert said in out
    status, again, _ = shell(*words)
    assert again == out
    status, shown, _ = shell("results", "show", tmp_path, "-m", "five", "-s", "*fog*")
    assert "fog.5" in shown
    assert "other" not in shown


def test_json_has_every_cell_with_its_interval(shell: Shell, tmp_path: Path) -> None:
    status, out, _ = shell(
        "eval", "-m", f"{OWN}five", "-d", "photos", "-s", "+{clean,fog.3}", "-o", tmp_path, "--json"
    )
    assert status == 0
    cells = json.loads(out)["cells"]
    assert [cell["setting"] for cell in cells] == ["photos", "photos+fog.3"]
    assert all(cell["low"] <= cell["accuracy"] <= cell["high"] for cell in cells)


def test_a_dry_run_says_what_it_costs_and_does_nothing(shell: Shell, tmp_path: Path) -> None:
    words = [
        "eval",
        "-m",
        f"{OWN}five",
        "-d",
        "photos",
        "-s",
        "+{clean,fog.*}",
        "-o",
        tmp_path / "results",
    ]
    status, out, _ = shell(*words, "--dry-run")
    assert status == 0
    assert "240 predictions in 6 cells, 0 of them already there" in out
    assert "read 40 pictures, corrupt 200, show 240 to models" in out
    assert not (tmp_path / "results").exists()
    shell(*words, "-q")
    status, out, _ = shell(*words, "--dry-run", "--json")
    assert json.loads(out)["missing"] == 0


def test_broken_files_are_listed_and_n_says_so(shell: Shell, tmp_path: Path) -> None:
    status, out, _ = shell("eval", "-m", f"{OWN}five", "-d", "broken", "-o", tmp_path)
    assert status == 0
    assert "n = 2" in out
    assert "3 of 5 pictures of broken could not be read" in " ".join(out.split())
    status, record, _ = shell("results", "show", tmp_path)
    for name in ("1 truncated.png", "2 empty.png", "3 text.jpg"):
        assert name in record


def test_unlabelled_pictures_are_told_by_agreement(shell: Shell, tmp_path: Path) -> None:
    status, out, _ = shell(
        "eval", "-m", f"{OWN}five", "-d", "flat", "-s", "+{clean,brightness.1}", "-o", tmp_path
    )
    assert status == 0
    assert "agreement with the unshifted answer" in out


def test_a_limit_is_said(shell: Shell, tmp_path: Path) -> None:
    status, out, _ = shell(
        "eval", "-m", f"{OWN}five", "-d", "photos", "--limit", 10, "-o", tmp_path
    )
    assert status == 0
    assert "photos[limit=10]" in out
    assert "is a sample" in out


def test_results_commands(shell: Shell, tmp_path: Path) -> None:
    results = tmp_path / "results"
    shell("eval", "-m", f"{OWN}five", "-d", "photos", "--keep", "logits", "-o", results, "-q")
    status, out, _ = shell("results", "ls", results, "--json")
    assert json.loads(out)[0]["n"] == 40
    status, out, _ = shell("results", "ls", results, "--csv")
    assert out.splitlines()[0].startswith('"model","setting","n"')
    status, out, _ = shell("results", "sql", "select count(*) from predictions", results, "--csv")
    assert out.splitlines()[1] == "40"
    status, out, _ = shell("results", "export", results, tmp_path / "cells.csv")
    assert (status, out) == (0, f"1 rows in {tmp_path / 'cells.csv'}\n")
    (tmp_path / "theirs.csv").write_text("model,setting,accuracy,n\nnet,photos,0.5,40\n")
    status, out, _ = shell("results", "import", tmp_path / "theirs.csv", "-o", results)
    assert "1 cells of 1 models" in out
    status, out, _ = shell("results", "ls", results)
    assert "net" in out
    assert shell("results", "verify", results)[:2] == (0, "all is as it was written\n")
    next(results.rglob("predictions.parquet")).write_bytes(b"PAR1")
    status, out, _ = shell("results", "verify", results)
    assert status == 1
    assert "SHA-256" in out
    assert shell("results", "verify", results, "--repair")[0] == 0
    assert shell("results", "gc", results)[0] == 0


def evaluated(*words: object) -> list[object]:
    """A command that is right but for what is given."""
    given = list(words)
    command: list[object] = ["eval"]
    for option, value in (("-m", f"{OWN}five"), ("-d", "photos")):
        command += [] if option in given else [option, value]
    return command + given


MISTAKES = {
    "a typo in the source of a model": (
        evaluated("-m", "tim:resnet18"),
        ["no source of models 'tim'", "timm"],
    ),
    "a typo in a folder": (evaluated("-d", "photso"), ["photso", "did you mean photos?"]),
    "a typo in a model": (
        evaluated("-m", "timm:resnet18.a1_in1kk"),
        ["a1_in1kk", "did you mean a1_in1k"],
    ),
    "no prefix": (evaluated("-m", "resnet18"), ["no model spec", "timm:"]),
    "a file without its prefix": (evaluated("-m", "net.onnx"), ["write onnx:net.onnx"]),
    "an ONNX file that is not there": (evaluated("-m", "onnx:net.onnx"), ["no ONNX file net.onnx"]),
    "a pickle": (evaluated("-m", "sklearn:pickle.pkl"), ["pickle", "skops"]),
    "a module that is not there": (
        evaluated("-m", "python:my.pkg:build"),
        ["cannot import my.pkg"],
    ),
    "a typo in a function": (evaluated("-m", f"{OWN}fife"), ["fife", "did you mean five"]),
    "a factory that is none": (evaluated("-m", f"{OWN}not_a_function"), ["expected a function"]),
    "a factory that fails": (evaluated("-m", f"{OWN}raises"), ["checkpoint is on another disk"]),
    "a model that cannot take the pictures": (
        evaluated("-m", f"{OWN}unlucky"),
        ["mat1 and mat2 shapes cannot be multiplied"],
    ),
    "a model without a row per picture": (evaluated("-m", f"{OWN}flat"), ["shape"]),
    "a model whose logits are no numbers": (evaluated("-m", f"{OWN}lost"), ["not finite"]),
    "a number of channels that pictures cannot have": (
        evaluated("-m", f"{OWN}five,channels=5"),
        ["channels", "5"],
    ),
    "a number of channels that the model does not want": (
        evaluated("-m", f"{OWN}five,channels=1"),
        ["matmul"],
    ),
    "the wrong number of outputs": (
        evaluated("-m", f"{OWN}thousand"),
        ["1,000 outputs", "5 classes"],
    ),
    "a list of models that is not there": (evaluated("-m", "@list.txt"), ["list.txt"]),
    "a wildcard without a match": (evaluated("-m", "timm:resnett*"), ["resnett*"]),
    "the same name twice": (
        evaluated("-m", f"{OWN}five", "-m", f"{OWN}other,name=five"),
        ["two models are called five"],
    ),
    "a typo in the data": (evaluated("-d", "potos"), ["'potos'"]),
    "an empty folder": (evaluated("-d", "nothing"), ["holds no pictures"]),
    "a folder of files that are no pictures": (
        evaluated("-d", "hollow"),
        ["none of the 1 pictures of hollow can be read"],
    ),
    "a file as data": (evaluated("-d", "occupied"), ["occupied is a file"]),
    "no data at all": (["eval", "-m", f"{OWN}five"], ["nothing to evaluate on"]),
    "a suite without data": (
        ["eval", "-m", f"{OWN}five", "--suite", "imagenet-c"],
        ["needs an image set"],
    ),
    "a typo in a corruption": (evaluated("-s", "+fgo.3"), ["'fgo'", "did you mean fog"]),
    "a severity that there is not": (evaluated("-s", "+fog.9"), ["severities 1 to 5", "'9'"]),
    "a typo in a suite": (
        evaluated("--suite", "imagenet-d"),
        ["imagenet-d", "imagenet-c"],
    ),
    "a brace that is not closed": (evaluated("-s", "+{fog,snow"), ["never closed"]),
    "a typo in the baseline": (
        evaluated("--baseline", "fife"),
        ["no model for the baseline 'fife'", "did you mean five"],
    ),
    "a results directory that is a file": (evaluated("-o", "occupied"), ["occupied is a file"]),
    "a results directory below a file": (evaluated("-o", "occupied/results"), ["occupied"]),
    "no limit": (evaluated("--limit", "0"), ["at least one picture"]),
    "no workers": (evaluated("--workers", "-2"), ["at least 1"]),
    "a negative seed": (evaluated("--seed", "-1"), ["the seed is -1"]),
    "a thing that is not kept": (evaluated("--keep", "logit"), ["did you mean logits"]),
    "a backend that there is not": (
        evaluated("--backend", "onnx"),
        ["no backend 'onnx'", "onnxruntime", "openvino"],
    ),
    "a way to combine that there is not": (
        evaluated("--combine", "maximum"),
        ["way to combine outputs", "max"],
    ),
    "a size that is none": (evaluated("--size", "big"), ["size", "'big'"]),
    "a class map that is not there": (evaluated("--class-map", "map.csv"), ["map.csv"]),
    "results that are not there": (["results", "ls", "nowhere"], ["no results in nowhere"]),
    "a query that is none": (["results", "sql", "selct 1", "nowhere"], ["no results in nowhere"]),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_sentence_and_status_2(
    shell: Shell, folder: Path, mistake: str, tmp_path: Path
) -> None:
    words, said = MISTAKES[mistake]
    before = sorted(path.name for path in folder.iterdir())
    output = [] if "-o" in words or words[0] == "results" else ["-o", tmp_path / "results"]
    status, out, err = shell(*words, *output)
    assert status == 2
    assert out == ""
    assert err.startswith("shiftbed: ")
    assert err.count("\n") == 1
    for words_said in said:
        assert words_said in err
    assert "Traceback" not in err
    # Nothing was begun, and nothing of the user's is gone.
    after = sorted(path.name for path in folder.iterdir() if path.name != "__pycache__")
    assert after == [name for name in before if name != "__pycache__"]
    assert not list(tmp_path.rglob("*.parquet"))


def test_a_missing_extra_says_how_to_get_it(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    status, _, err = shell(*evaluated("-m", "onnx:mine.onnx", "-o", tmp_path))
    assert (status, err.count("\n")) == (2, 1)
    assert "pip install 'shiftbed[onnx]'" in err


def test_another_seed_is_refused_with_the_way_out(shell: Shell, tmp_path: Path) -> None:
    words = [*evaluated("-s", "+{clean,fog.3}", "-o", tmp_path), "-q"]
    assert shell(*words)[0] == 0
    status, _, err = shell(*words, "--seed", "1")
    assert status == 2
    assert "the seed (0 there, 1 now)" in err
    assert f"shiftbed results gc {tmp_path} --model five" in err
    assert shell("results", "gc", tmp_path, "--model", "five")[0] == 0
    assert shell(*words, "--seed", "1")[0] == 0


@pytest.mark.skipif(os.name != "posix", reason="interrupts with a POSIX signal")
def test_control_c_stops_cleanly_and_the_same_command_resumes(
    shell: Shell, folder: Path, tmp_path: Path
) -> None:
    words = ["eval", "-m", f"{OWN}slow", "-d", "photos", "-s", "+{clean,*}", "-o", tmp_path]
    child = subprocess.Popen(
        [sys.executable, "-m", "shiftbed", *map(str, words)],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    while child.poll() is None and not list(tmp_path.glob("cells/*/*.parquet")):
        time.sleep(0.01)
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=60)
    assert child.returncode == 130
    assert "the same command goes on from" in err
    assert "Traceback" not in err
    assert not (tmp_path / ".tmp").exists()
    done = json.loads(shell(*words, "--dry-run", "--json")[1])
    assert 0 < done["missing"] < done["predictions"]
    assert shell(*words, "-q")[0] == 0
    assert json.loads(shell(*words, "--dry-run", "--json")[1])["missing"] == 0


def test_help_is_quick_and_without_numpy() -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "shiftbed", "eval", "--help"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "numpy" not in done.stderr
    assert "--dry-run" in done.stdout
