"""The doctor finds what is wrong, and says what to do."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from shiftbed import doctor

PROGRAM = str(Path(sys.executable).with_name("shiftbed"))


def test_a_sound_installation_passes() -> None:
    done = subprocess.run(
        [PROGRAM, "doctor", "--json"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = {finding["about"]: finding for finding in json.loads(done.stdout)}
    assert {"shiftbed", "core", "data", "image sets"} <= found.keys()
    assert all(finding["state"] != "wrong" for finding in found.values())


@pytest.mark.parametrize(
    ("asked", "about", "state", "said"),
    [
        ("numpy>=999", "core", "wrong", "numpy is"),
        ("no-such-thing>=1", "core", "wrong", "no no-such-thing; pip install shiftbed"),
        ("no-such-thing>=1; extra == 'sky'", "extra sky", "missing", "'shiftbed[sky]'"),
        ("numpy>=999; extra == 'sky'", "extra sky", "wrong", "expected >=999"),
        ("numpy>=1; extra == 'sky'", "extra sky", "ok", "numpy"),
    ],
)
def test_packages_are_compared_with_what_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, asked: str, about: str, state: str, said: str
) -> None:
    monkeypatch.setattr(doctor, "requires", lambda name: [asked])
    found = {finding.about: finding for finding in doctor.examine()}[about]
    assert found.state == state
    assert said in found.says


def test_too_little_room_is_wrong(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SHIFTBED_DATA", str(tmp_path / "deep" / "cache"))
    usage = shutil.disk_usage(tmp_path)
    assert {f.about: f for f in doctor.examine()}["data"].state == "ok"
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=10**8))
    found = {f.about: f for f in doctor.examine()}["data"]
    assert found.state == "wrong"
    assert "0 GB free" in found.says


def test_without_npm_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    found = {finding.about: finding for finding in doctor.examine()}["clients"]
    assert (found.state, "npm" in found.says) == ("missing", True)
