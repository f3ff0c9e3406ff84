"""The studies' small cuts, from fetched pictures to the report: the way, not the result."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from types import ModuleType

import pytest

from shiftbed.data import open_set
from shiftbed.errors import InputError

STUDIES = Path(__file__).resolve().parents[2] / "examples" / "studies"


@pytest.fixture
def study(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    name, *sets = request.param
    pytest.importorskip("matplotlib")
    for one in sets:
        try:
            open_set(one)
        except InputError as problem:
            pytest.skip(f"cannot be fetched here: {problem}")
    monkeypatch.syspath_prepend(STUDIES)
    return importlib.import_module(name)


def names(folder: Path) -> list[str]:
    return sorted(one.name for one in folder.iterdir())


def tables(report: str) -> dict[str, list[list[str]]]:
    """Return the rows of a report's tables by their titles, the headings first."""
    found = {}
    for title, body in re.findall(r"^\*\*(.+?)\*\*\n\n((?:\|.*\n)+)", report, re.MULTILINE):
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in body.splitlines()]
        found[title] = [rows[0], *rows[2:]]
    return found


@pytest.mark.parametrize(
    ("study", "rows"),
    [
        (("mnist_c", "mnist-train"), [17, 17, 8]),
        (("icons", "icons-50-rebuilt"), [3, 3, 5]),
        (("cifar_interventions", "cifar10-train", "icons-50-rebuilt"), [6, 4, 8]),
    ],
    ids=["mnist_c", "icons", "cifar_interventions"],
    indirect=["study"],
)
def test_a_small_cut_runs_to_its_report(
    study: ModuleType, rows: list[int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    held = study.main(tmp_path / "study", "small")
    report = (tmp_path / "study" / "report.md").read_text()
    found = tables(report)
    assert [len(body) - 1 for body in found.values()] == rows
    directions = found["Directions"][1:]
    assert [row[1] for row in directions] == [
        "the same" if same else "DIFFERS" for same in held.values()
    ]
    measured = [cell for body in found.values() for row in body[1:] for cell in row[1:]]
    assert any(re.fullmatch(r"\d+\.\d", cell) for cell in measured)
    assert (tmp_path / "study" / "figure.png").stat().st_size > 5000
    said = capsys.readouterr().out
    assert "Directions" in said
    # Again: nothing is trained or evaluated anew, and the report is the same.
    cells = names(tmp_path / "study" / "results" / "cells")
    study.main(tmp_path / "study", "small")
    assert (tmp_path / "study" / "report.md").read_text() == report
    assert names(tmp_path / "study" / "results" / "cells") == cells
