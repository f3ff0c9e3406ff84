"""The guides' commands and code work as they stand there; the site builds without a warning."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shiftbed.corruptions import _registry
from shiftbed.errors import InputError
from shiftbed.studies.scoring import METRICS

ROOT = Path(__file__).resolve().parents[1]
PAGES = [
    *("quickstart.md", "attacks.md", "augment.md", "train.md"),
    *("guides/ci.md", "guides/extend.md"),
]


def steps(page: str) -> list[tuple[str, str]]:
    """Return a page's runnable blocks in order: their language, and what they say."""
    found: list[tuple[str, str]] = re.findall(
        r"^```(sh|python)\n(.*?)^```", (ROOT / "docs" / page).read_text(), re.DOTALL | re.MULTILINE
    )
    return found


@pytest.fixture
def with_networks(newcomer: Path) -> Path:
    """Two tiny networks in ONNX, for two classes, beside the pictures."""
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    rng = np.random.default_rng(0)
    for name in ("mine", "last"):
        weights = onnx.numpy_helper.from_array(rng.normal(size=(3, 2)).astype(np.float32), "w")
        nodes = [
            onnx.helper.make_node("GlobalAveragePool", ["x"], ["pooled"]),
            onnx.helper.make_node("Flatten", ["pooled"], ["row"]),
            onnx.helper.make_node("MatMul", ["row", "w"], ["logits"]),
        ]
        graph = onnx.helper.make_graph(
            nodes,
            name,
            [onnx.helper.make_tensor_value_info("x", 1, ["n", 3, "h", "w"])],
            [onnx.helper.make_tensor_value_info("logits", 1, ["n", 2])],
            [weights],
        )
        opset = [onnx.helper.make_opsetid("", 17)]
        model = onnx.helper.make_model(graph, opset_imports=opset, ir_version=8)
        onnx.save(model, newcomer / f"{name}.onnx")
    return newcomer


@pytest.fixture
def untouched() -> Iterator[None]:
    """What a page registers is gone after it."""
    from shiftbed.augment import _registry as augmentations
    from shiftbed.data import catalogue
    from shiftbed.models import registry

    # All that is loaded once in a process: what a page's end takes away does not come again.
    _registry._load()
    registry.sources()
    catalogue.list_sets()
    augmentations.augmentations()
    tables: list[dict[Any, Any]] = [_registry._specs, METRICS, catalogue._SETS, registry._SOURCES]
    tables.append(augmentations._kinds)
    before = [dict(table) for table in tables]
    yield
    for table, known in zip(tables, before, strict=True):
        table.clear()
        table.update(known)


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize("page", PAGES)
def test_a_page_works_as_it_stands(page: str, with_networks: Path) -> None:
    names: dict[str, Any] = {}
    program = str(Path(sys.executable).with_name("shiftbed"))
    blocks = steps(page)
    assert blocks
    for language, text in blocks:
        if language == "python":
            exec(compile(text, page, "exec"), names)
            continue
        for line in text.strip().splitlines():
            command = line.replace("shiftbed", program, 1)
            done = subprocess.run(
                ["bash", "-c", command],
                capture_output=True,
                text=True,
                check=False,
                cwd=with_networks,
                env={**os.environ, "COLUMNS": "80"},
            )
            assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"


def test_added_parts_are_under_twenty_lines() -> None:
    for language, text in steps("guides/extend.md"):
        assert language == "python"
        assert len(text.splitlines()) < 20


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs")
    pytest.importorskip("material")
    pytest.importorskip("mkdocstrings")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (
        "corruption_error_of_pictures" in (tmp_path / "api" / "metrics" / "index.html").read_text()
    )


@pytest.mark.parametrize(
    ("script", "page"),
    [("own_pictures", "own-pictures"), ("new_method", "new-method"), ("curation", "curation")],
)
def test_a_tutorial_is_what_its_script_says(
    script: str, page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its code, and the words around it; what it printed is made anew by `make docs`."""
    generate = runpy.run_path(str(ROOT / "docs" / "generate.py"))
    monkeypatch.chdir(tmp_path)
    try:
        text = generate["tutorial"](script)
    except InputError as problem:
        pytest.skip(f"cannot be fetched here: {problem}")

    def without_output(page: str) -> str:
        return re.sub(r"```text\n.*?```\n", "", page, flags=re.DOTALL)

    stored = (ROOT / "docs" / "guides" / f"{page}.md").read_text()
    assert without_output(stored) == without_output(text)
    assert stored.count("```text") == text.count("```text") > 0
