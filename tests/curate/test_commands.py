"""The commands as a person types them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from heaps import make_heap, picture
from typer.testing import CliRunner

from shiftbed.cli import app
from shiftbed.errors import InputError

MODEL = "python:heaps:colours,size=20,resize=24,classes=colours.txt"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    make_heap(tmp_path / "heap", 60)
    (tmp_path / "colours.txt").write_text("red\ngreen\nblue\n")
    return tmp_path


def run(*words: str) -> str:
    done = CliRunner().invoke(app, ["curate", *words], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_from_the_heap_to_an_evaluated_set(here: Path) -> None:
    (here / "heap" / "red" / "not.png").write_text("a picture")
    said = run("hard", "heap", "-m", MODEL, "-o", "found", "--name", "mine-a")
    for words in ("candidates", "61", "taken for", "different confusions", "curate review found"):
        assert words in said
    assert run("show", "found", "--fate", "unreadable") == "red/not.png\tnot a picture\n"
    told = json.loads(run("show", "found", "--json"))
    assert [step["left"] for step in told["funnel"]][:3] == [61, 61, 60]
    assert f"{told['funnel'][-1]['left']}" in run("show", "found", "--all")
    said = run("export", "found", "-o", "mine-a", "--rule", "unreviewed", "--link")
    assert f"mine-a: {told['funnel'][-1]['left']} pictures" in said
    words = ["eval", "-m", MODEL, "--data", "mine-a", "-o", "results", "--json"]
    done = CliRunner().invoke(app, words, catch_exceptions=False)
    assert json.loads(done.output)["cells"][0]["accuracy"] == 0.0


def test_anomalies_report_what_they_leave_out(here: Path) -> None:
    make_heap(here / "usual", 20, wrong=0.0, seed=1)
    (here / "heap" / "owl").mkdir()
    for number in range(5):
        picture(7 + number, 0).save(here / "heap" / "owl" / f"{number}.png")
    said = run("anomalies", "heap", "-m", MODEL, "--usual", "usual", "-o", "odd")
    assert "Left out as known classes: blue (is blue), green (is green), red (is red)." in said
    assert json.loads(run("show", "odd", "--json"))["funnel"][1]["left"] == 5


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["hard", "nowhere", "-m", MODEL, "-o", "x"], "nowhere does not exist"),
        (["hard", "colours.txt", "-m", MODEL, "-o", "x"], "neither a folder nor a table"),
        (["hard", "heap", "-m", MODEL, "-m", MODEL, "-o", "x"], "two models are called"),
        (["review", "heap"], "holds no finished curation"),
        (["export", "heap"], "holds no finished curation"),
        (["show", "nowhere"], "holds no finished curation"),
        (["anomalies", "heap", "-m", MODEL, "--usual", "heap/red", "-o", "x"], "is not labelled"),
    ],
)
def test_a_mistake_is_told_in_a_sentence(here: Path, words: list[str], said: str) -> None:
    with pytest.raises(InputError, match=said):
        CliRunner().invoke(app, ["curate", *words], catch_exceptions=False)
