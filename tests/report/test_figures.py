"""Figures for papers: every kind, every format, the same bytes twice, mistakes in a sentence."""

from __future__ import annotations

import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shiftbed.errors import InputError
from shiftbed.report import plot_curves, plot_matrix, plot_reliability, plot_scatter
from shiftbed.studies import Grid

PROGRAM = str(Path(sys.executable).with_name("shiftbed"))
STARTS = {"pdf": b"%PDF", "svg": b"<?xml", "png": b"\x89PNG", "eps": b"%!PS"}


@pytest.mark.parametrize("ending", [*STARTS])
def test_each_format(small: Any, tmp_path: Path, ending: str) -> None:
    one, two = (
        plot_scatter(small.results, tmp_path / f"{name}.{ending}", "dusk").read_bytes()
        for name in ("one", "two")
    )
    assert one.startswith(STARTS[ending])
    if ending != "eps":  # it is dated
        assert one == two


def test_each_kind_with_hostile_names(small: Any, tmp_path: Path, names: Any) -> None:
    for number, path in enumerate(
        [
            plot_scatter(
                small.results, tmp_path / "s.pdf", "dusk", label=[names.emoji], axes="linear"
            ),
            plot_scatter(small.results, tmp_path / "p.pdf", "photos+brightness.3", axes="probit"),
            plot_curves(small.results, tmp_path / "c.pdf"),
            plot_curves(small.results, tmp_path / "d.pdf", corruptions=["contrast"], width=3.3),
            plot_matrix(small.results, tmp_path / "m.pdf", measure="ce", baseline=names.emoji),
            plot_matrix(
                small.results, tmp_path / "n.pdf", measure="error", models=[*names.all[:2]]
            ),
            plot_reliability(small.results, tmp_path / "r.pdf", "photos"),
        ]
    ):
        assert path.stat().st_size > 2_000, number


def test_every_model_is_a_point(testbed: Any, tmp_path: Path) -> None:
    grid = Grid.from_cells(testbed.results.cells())
    path = plot_scatter(testbed.results, tmp_path / "s.svg", "imagenet-r")
    both = np.isfinite(grid.column("imagenet-r"))
    both &= np.isfinite(grid.column("imagenet-val.imagenet-r-classes"))
    groups = ElementTree.parse(path).iter("{http://www.w3.org/2000/svg}g")
    own = {one.get("id"): one for one in groups}
    [axes] = [one for name, one in own.items() if name == "axes_1"]
    points = [g for g in axes if str(g.get("id")).startswith("PathCollection")]
    drawn = sum(1 for group in points for _ in group.iter("{http://www.w3.org/2000/svg}use"))
    assert drawn == both.sum()
    assert path.stat().st_size < 400_000


def test_mistakes_are_told_in_a_sentence(small: Any, tmp_path: Path) -> None:
    results = small.results
    with pytest.raises(InputError, match=r"no ending that says what to draw; give \.pdf"):
        plot_scatter(results, tmp_path / "figure.doc", "dusk")
    with pytest.raises(InputError, match="there is no setting 'dsk'; did you mean dusk"):
        plot_scatter(results, tmp_path / "s.pdf", "dsk")
    with pytest.raises(InputError, match="name it, like --clean"):
        plot_scatter(results, tmp_path / "s.pdf", "photos")
    with pytest.raises(InputError, match="there is no kind of axes 'log'"):
        plot_scatter(results, tmp_path / "s.pdf", "dusk", axes="log")
    with pytest.raises(InputError, match="a width of 99 inches"):
        plot_curves(results, tmp_path / "c.pdf", width=99)
    with pytest.raises(InputError, match=r"there is no corruption of photos\+ 'fg'"):
        plot_curves(results, tmp_path / "c.pdf", corruptions=["fg"])
    with pytest.raises(InputError, match="there is no benchmark 'imagenet-c'"):
        plot_matrix(results, tmp_path / "m.pdf", benchmark="imagenet-c")
    with pytest.raises(InputError, match="the published AlexNet errors are of the stored"):
        plot_matrix(results, tmp_path / "m.pdf", measure="ce")
    with pytest.raises(InputError, match="a reliability diagram needs predictions"):
        plot_reliability(results, tmp_path / "r.pdf", "odd")
    assert not [*tmp_path.iterdir()]


def test_the_commands(small: Any, tmp_path: Path, names: Any) -> None:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [PROGRAM, *arguments], capture_output=True, text=True, check=False, cwd=tmp_path
        )

    results = str(small.results.path)
    done = run("report", results, "-o", "page.html", "--pictures", "0", "--baseline", names.emoji)
    assert done.returncode == 0, done.stderr
    assert "opens in any browser" in done.stdout
    assert (tmp_path / "page.html").read_text().startswith("<!doctype html>")
    done = run("plot", "scatter", results, "dusk", "-o", "figure.svg")
    assert (done.returncode, done.stdout) == (0, "figure.svg\n"), done.stderr
    done = run("plot", "matrix", results, "-o", "matrix.svg", "--measure", "beauty")
    assert done.returncode == 2
    assert done.stderr.startswith("shiftbed: there is no measure 'beauty'")
    done = run("report", "nowhere")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
