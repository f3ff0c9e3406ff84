"""Every command and every line of Python in the README works as it stands there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from shiftbed import data
from shiftbed.corruptions import _frost
from shiftbed.errors import InputError

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def fetched() -> None:
    try:
        _frost.fetch_textures()
        data.open_set("imagenet-photos")
    except InputError as problem:
        pytest.skip(f"cannot be fetched here: {problem}")


def test_the_shell_commands(newcomer: Path) -> None:
    fetched()
    commands = [line for block in blocks("sh") for line in block.strip().splitlines()]
    assert len(commands) == 5
    program = Path(sys.executable).with_name("shiftbed")
    for command in commands:
        line = command.replace("shiftbed", str(program), 1)
        done = subprocess.run(
            ["bash", "-c", line], capture_output=True, text=True, check=False, cwd=newcomer
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    assert (newcomer / "foggy.png").exists()
    assert len(list((newcomer / "photos-c").rglob("*.JPEG"))) == 4 * 15 * 5


def test_the_python(newcomer: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for block in blocks("python"):
        exec(compile(block, "README.md", "exec"), {})
    assert "photos" in capsys.readouterr().out


def test_the_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / target).exists(), target
