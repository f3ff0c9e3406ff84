from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from shiftbed.cli import main

from .conftest import sides


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one folder per class, as users have them."""
    images = sides(36, seed=6)
    assert images.labels is not None
    for place, label in enumerate(images.labels):
        file = tmp_path / "photos" / images.classes[int(label)] / f"{place}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(images.load(place)).save(file)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(monkeypatch: pytest.MonkeyPatch, line: str) -> int:
    monkeypatch.setattr("sys.argv", ["shiftbed", *line.split()])
    with pytest.raises(SystemExit) as end:
        main()
    return int(end.value.code or 0)


@pytest.mark.usefixtures("folder")
def test_train_then_evaluate(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    line = "train run speckle-noise --data photos --test photos -o net -a resnet8-4 --epochs 2"
    assert run(monkeypatch, f"{line} --set batch=12 --set rate=0.05 -q") == 0
    said = capsys.readouterr().out
    assert "2 passes over 36 pictures: loss" in said
    assert "net holds it; evaluate it as trained:net" in said
    assert run(monkeypatch, "eval -m trained:net --data photos -s +{clean,contrast.3}") == 0
    assert "photos" in capsys.readouterr().out


def test_list(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, "train list") == 0
    said = capsys.readouterr().out
    assert "zero-step" in said
    assert "shakeshake29-4x32" in said
    assert run(monkeypatch, "train list augmix") == 0
    assert "consistency" in capsys.readouterr().out


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("train run plan --data photos -o net", "there is no recipe 'plan'; did you mean plain?"),
        ("train run plain --data photos -o net --set rate", "--set rate is not KEY=VALUE"),
        ("train run plain --data photo -o net", "photo"),
        ("train run finetune --data photos -o net", "say where they are with --start"),
        ("train run plain --data photos -o net --start x.pt", "there is no checkpoint x.pt"),
    ],
)
def test_a_mistake_is_one_sentence(
    line: str,
    sentence: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(monkeypatch, line) == 2
    said = capsys.readouterr().err
    assert sentence in said
    assert said.count("\n") == 1
