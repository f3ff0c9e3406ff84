"""What an import may bring with it. No times: they say more of the machine than of the code."""

from __future__ import annotations

import json
import pkgutil
import subprocess
import sys

import pytest

import shiftbed

#: Slow to import, each of them: for the functions that need it, not for a room.
HEAVY = {
    *("torch", "torchvision", "timm", "transformers", "onnxruntime", "ray", "numba", "cv2"),
    *("pandas", "duckdb", "statsmodels", "sklearn", "matplotlib", "plotly", "skimage"),
}
TABLES = {"duckdb", "pyarrow", "pandas"}
ROOMS = [module.name for module in pkgutil.iter_modules(shiftbed.__path__) if module.ispkg]


def imported(code: str) -> set[str]:
    """Return the top names of the modules that some code leaves imported."""
    code += (
        "\nimport json, sys\nprint(json.dumps(sorted({n.partition('.')[0] for n in sys.modules})))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_the_package_brings_nothing() -> None:
    brought = imported("import shiftbed")
    assert not brought & {*HEAVY, *TABLES, "numpy", "scipy", "PIL", "typer", "rich"}


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_brings_nothing_heavy(room: str) -> None:
    assert not imported(f"import shiftbed.{room}") & HEAVY


def test_corrupting_needs_neither_torch_nor_tables() -> None:
    brought = imported(
        "import numpy as np, shiftbed\n"
        "from shiftbed.corruptions import corruptions\n"
        "corruptions('imagenet-c'), corruptions('mnist-c')\n"
        "picture = np.zeros((8, 8, 3), np.uint8)\n"
        "shiftbed.corrupt(picture, 'gaussian_noise', 3)\n"
        "shiftbed.Corruption('fog', 3)(picture)"
    )
    assert "numpy" in brought
    assert not brought & {*TABLES, "torch", "torchvision", "sklearn", "skimage", "matplotlib"}


@pytest.mark.parametrize("argument", ["--help", "--version"])
def test_help_comes_without_numpy(argument: str) -> None:
    brought = imported(
        "import sys\n"
        f"sys.argv = ['shiftbed', {argument!r}]\n"
        "from shiftbed.cli import main\n"
        "try:\n"
        "    main()\n"
        "except SystemExit as end:\n"
        "    assert not end.code"
    )
    assert "typer" in brought
    assert not brought & {*HEAVY, *TABLES, "numpy", "scipy", "PIL"}


def test_help_of_every_command_comes_without_numpy() -> None:
    brought = imported(
        "from typer.main import get_command\n"
        "from shiftbed.cli import app\n"
        "def ask(command):\n"
        "    context = command.make_context('shiftbed', [], resilient_parsing=True)\n"
        "    command.get_help(context)\n"
        "    for below in getattr(command, 'commands', {}).values():\n"
        "        ask(below)\n"
        "ask(get_command(app))"
    )
    assert not brought & {*HEAVY, *TABLES, "numpy"}
