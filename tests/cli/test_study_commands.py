"""The commands over published and measured results, as a newcomer and a program see them."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from shiftbed.cli import app
from shiftbed.errors import InputError

TESTBED = Path(__file__).parents[2] / ".." / "shared" / "data" / "testbed"


def shiftbed(*arguments: str | Path, width: int = 80) -> Result:
    return CliRunner(env={"COLUMNS": str(width)}).invoke(app, [str(one) for one in arguments])


def out(*arguments: str | Path) -> str:
    result = shiftbed(*arguments)
    assert result.exit_code == 0, result.output + repr(result.exception)
    return result.stdout


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not TESTBED.exists():
        pytest.skip("the ImageNet testbed's grid is not beside the repository")
    folder = tmp_path_factory.mktemp("cli")
    said = out("import", TESTBED, "-o", folder)
    assert said.startswith("45,774 cells of 338 models on 213 settings, read as testbed")
    return folder


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A few models whose names are not harmless, on a natural shift."""
    names = ["[red]net[/red]", "<script>", "a" * 200, "نموذج", ":smile:", "net\\[0]", "ok"]
    rows = ["model,setting,accuracy,n,category"]
    for i, name in enumerate(names):
        rows.append(f"{name},imagenet-val,{70 + i},1000,standard")
        rows.append(f"{name},imagenet-sketch,{20 + i},1000,standard")
    (tmp_path / "x.csv").write_text("\n".join(rows), encoding="utf-8")
    out("import", tmp_path / "x.csv", "-o", tmp_path / "results")
    return tmp_path / "results"


TABLES: dict[str, tuple[str, ...]] = {
    "fit": ("study", "fit", "GRID"),
    "effective": ("study", "effective", "GRID", "imagenet-r", "-m", "resnet5*"),
    "relative": (
        "study",
        "effective",
        "GRID",
        "objectnet",
        "-m",
        "*augmix",
        "--parent",
        "resnet50",
    ),
    "correlate": ("study", "correlate", "GRID", "--natural", "imagenet-r", "--resamples", "50"),
    "hypotheses": ("study", "hypotheses", "GRID"),
    "the paper's hypotheses": ("study", "hypotheses"),
    "details": ("study", "hypotheses", "--details"),
    "score": ("score", "GRID", "-m", "resnet50*"),
    "mce": ("score", "GRID", "--metric", "mce", "-m", "vgg*"),
    "compare": ("compare", "resnet50", "resnet50_augmix", "-r", "GRID", "-s", "imagenet-?"),
}


@pytest.mark.parametrize("command", TABLES.values(), ids=TABLES.keys())
def test_tables_fit_80_columns_and_machines_get_them_whole(
    grid: Path, command: tuple[str, ...]
) -> None:
    arguments = [str(grid) if one == "GRID" else one for one in command]
    text = out(*arguments)
    assert max(len(line) for line in text.splitlines()) <= 80
    as_json = json.loads(out(*arguments, "--json"))
    as_csv = list(csv.DictReader(io.StringIO(out(*arguments, "--csv"))))
    assert len(as_json) == len(as_csv) > 0
    assert list(as_json[0]) == list(as_csv[0])
    assert "NaN" not in json.dumps(as_json)
    for key, value in as_json[0].items():
        assert as_csv[0][key] == "" if value is None else True
        if isinstance(value, float):
            assert float(as_csv[0][key]) == value


def test_what_a_person_reads(grid: Path) -> None:
    mce = out("score", grid, "--metric", "mce", "-m", "resnet50")
    assert "76.5 [76.0, 77.0]" in mce
    assert "All of mce: 15 corruptions against alexnet." in mce
    assert "glass_blur is missing" in mce  # the grid's in-memory corruptions lack it
    effective = out("study", "effective", grid, "imagenet-r", "-m", "resnet50_deepaugment_augmix")
    assert "+10.4 [9.0, 11.7]" in effective
    assert "Baseline: 82 models, the results' own" in effective
    fits = out("study", "fit", grid, "imagenet-a")
    assert "imagenet-a bends at 90.8" in fits
    seven = out("study", "hypotheses", grid)
    assert "Not measured at all: Real Blurry Images" in seven
    compared = out("compare", "resnet50_augmix", "resnet50", "-r", grid, "-s", "imagenet-r")
    assert "+4.9 [4.1, 5.6]" in compared
    assert "imported accuracies, which cannot be paired" in compared


def test_place_needs_no_results_at_all() -> None:
    text = out("study", "place", "imagenet-r", "91.95", "46.76", "--n", "10000", "30000")
    assert "effective robustness on imagenet-r: +10.4 points" in text
    assert "robust beyond its accuracy: yes" in text
    assert "give --n for its interval" in out("study", "place", "objectnet", "80", "40")


def test_names_are_text_whatever_they_hold(hostile: Path) -> None:
    for command in (
        ["study", "effective", hostile, "imagenet-sketch"],
        ["score", hostile, "--metric", "accuracy"],
        ["compare", "[red]net[/red]", "ok", "-r", hostile],
        ["study", "fit", hostile],
    ):
        text = out(*command)
        assert max(len(line) for line in text.splitlines()) <= 80
    assert "[red]net[/red]" in text or "imagenet-sketch" in text
    scores = out("score", hostile, "--metric", "accuracy", "-m", "[[]red]*", "-m", ":smile:")
    assert "[red]net[/red]" in scores
    assert ":smile:" in scores


def test_several_files_are_several_imports(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / f"{name}.csv").write_text(f"model,setting,accuracy\n{name},photos,50\n")
    sources = [tmp_path / "one.csv", tmp_path / "two.csv"]
    said = out("import", *sources, "-o", tmp_path / "results")
    assert said.count("1 cells of 1 models on 1 settings, read as cells") == 2
    assert len(list((tmp_path / "results" / "imported").iterdir())) == 2
    result = shiftbed("import", *sources, "-o", tmp_path / "results", "--name", "both")
    assert "--name names one import" in str(result.exception)


def test_few_standard_models_fall_back_on_the_published_baseline(hostile: Path) -> None:
    text = out("study", "effective", hostile, "imagenet-sketch", "-m", "ok")
    assert "Baseline: 87 models, the published testbed's" in text
    own = out("study", "effective", hostile, "imagenet-sketch", "--baseline", "results")
    assert "Baseline: 7 models, the results' own" in own


MISTAKES: dict[str, tuple[tuple[str, ...], str]] = {
    "no results": (("score", "nowhere"), "there are no results in nowhere"),
    "no file": (("import", "nowhere.csv"), "cannot read nowhere.csv (No such file"),
    "no metric": (("score", "GRID", "--metric", "mec"), "did you mean mce"),
    "no shift": (("study", "fit", "GRID", "imagenet-q"), "does not say what its clean setting"),
    "no model": (("compare", "resnet5", "resnet50", "-r", "GRID"), "no model 'resnet5'; did you"),
    "no scale": (("study", "fit", "GRID", "--scale", "log"), "there is no scale 'log'"),
    "no shape": (("study", "fit", "GRID", "--shape", "bend"), "there is no shape 'bend'"),
    "no baseline": (
        ("study", "effective", "GRID", "--baseline", "mine"),
        "there is no baseline 'mine'",
    ),
    "no method": (("study", "correlate", "GRID", "--method", "x"), "there is no correlation 'x'"),
    "no published": (("study", "place", "imagenet-q", "1", "1"), "no published baseline for"),
    "over 100": (("study", "place", "imagenet-r", "191", "46"), "between 0 and 1"),
    "no declaration": (("study", "hypotheses", "--declare", "x.toml"), "cannot read x.toml"),
    "level": (("score", "GRID", "--level", "95"), "the confidence level is 95"),
    "fit level": (("study", "fit", "GRID", "--level", "95"), "the confidence level is 95"),
}


@pytest.mark.parametrize(("command", "sentence"), MISTAKES.values(), ids=MISTAKES.keys())
def test_mistakes_get_one_sentence(grid: Path, command: tuple[str, ...], sentence: str) -> None:
    result = shiftbed(*(str(grid) if one == "GRID" else one for one in command))
    assert isinstance(result.exception, InputError)
    assert sentence in str(result.exception)
    assert "\n" not in str(result.exception)


def test_results_without_natural_shifts_are_told_so(tmp_path: Path) -> None:
    rows = "model,setting,accuracy\na,photos,90\na,photos+fog.1,50\nb,photos,80\n"
    (tmp_path / "x.csv").write_text(rows)
    out("import", tmp_path / "x.csv", "-o", tmp_path)
    for command, sentence in {
        ("fit", tmp_path): "no known natural shift among the settings, with its clean setting",
        ("effective", tmp_path): "name a shifted setting, like photos+fog.3",
        ("correlate", tmp_path): "there is no natural shift among the settings",
        ("fit", tmp_path, "photos+fog.1"): "none has a category; choose models by name",
        ("fit", tmp_path, "photos+fog.1", "--fitted-to", "*"): "there is only a; choose other",
        ("fit", tmp_path, "photos+fog.2"): "there is no setting 'photos+fog.2'; did you mean",
    }.items():
        result = shiftbed("study", *command)
        assert isinstance(result.exception, InputError)
        assert sentence in str(result.exception)


def test_a_mistake_ends_with_status_2_and_no_traceback() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "shiftbed", "score", "nowhere"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("shiftbed: there are no results in nowhere")
    assert len(done.stderr.splitlines()) == 1
