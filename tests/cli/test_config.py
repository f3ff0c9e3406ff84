"""Options from a file: the same run as from the flags, and mistakes in one sentence."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

PROGRAM = str(Path(sys.executable).with_name("shiftbed"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for label, light in (("dark", 40), ("light", 220)):
        (tmp_path / "photos" / label).mkdir(parents=True)
        for number in range(2):
            picture = np.full((40, 40, 3), light + number, np.uint8)
            Image.fromarray(picture).save(tmp_path / "photos" / label / f"{number}.png")
    (tmp_path / "brightness.py").write_text(
        "import numpy as np\n"
        "def build():\n"
        "    def by_light(batch):\n"
        "        light = batch.mean((1, 2, 3))\n"
        "        return np.stack([-light, light], 1)\n"
        "    return by_light\n"
    )
    return tmp_path


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [PROGRAM, *arguments], capture_output=True, text=True, check=False, cwd=folder
    )


def test_a_file_says_the_same_as_the_flags(folder: Path) -> None:
    (folder / "run.toml").write_text(
        'model = "python:brightness:build"\n'
        'data = "photos"\n'
        'setting = ["+{clean,contrast.3}"]\n'
        'output = "from-file"\n'
        "size = 32\n"
        "batch-size = 2\n"
        "json = true\n"
    )
    ours = run(folder, "eval", "--config", "run.toml")
    theirs = run(
        folder,
        *["eval", "-m", "python:brightness:build", "-d", "photos", "-s", "+{clean,contrast.3}"],
        *["-o", "from-flags", "--size", "32", "--batch-size", "2", "--json"],
    )
    assert ours.returncode == theirs.returncode == 0, ours.stderr + theirs.stderr
    assert json.loads(ours.stdout)["cells"] == json.loads(theirs.stdout)["cells"]
    assert len(json.loads(ours.stdout)["cells"]) == 2


def test_a_flag_comes_before_the_file(folder: Path) -> None:
    (folder / "run.toml").write_text('model = ["python:brightness:build"]\ndata = "photos"\n')
    done = run(folder, "eval", "--config", "run.toml", "--limit", "2", "--dry-run", "--json")
    assert done.returncode == 0, done.stderr
    assert "photos[limit=2]" in done.stdout


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('modle = "x"', "did you mean model?"),
        ("limit = [1]", "limit in run.toml is a list, but --limit is given once"),
        ("limit = {of = 1}", "limit in run.toml is a table"),
        ("limit =", "run.toml is not TOML"),
        ('model = "x"\nlimit = "many"', "--limit"),
        (None, "cannot read run.toml"),
    ],
)
def test_a_mistake_is_one_sentence(folder: Path, content: str | None, said: str) -> None:
    if content is not None:
        (folder / "run.toml").write_text(content)
    done = run(folder, "eval", "--config", "run.toml")
    assert done.returncode == 2
    assert said in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
