"""A filter that is killed at any moment goes on, and finds what it would have found."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from heaps import make_heap

HERE = Path(__file__).parent


def start(folder: Path, output: str) -> subprocess.Popen[str]:
    words = [sys.executable, "-m", "shiftbed", "curate", "hard", "heap", "-q", "-o", output]
    words += ["-m", "python:heaps:slow,outputs=3,size=20,resize=24"]
    path = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(words, cwd=folder, env=environment, stderr=subprocess.PIPE, text=True)


def seen(folder: Path) -> int:
    log = folder / "shown.log"
    return len(log.read_text().split()) if log.exists() else 0


def finished(process: subprocess.Popen[str]) -> None:
    _, said = process.communicate(timeout=300)
    assert process.returncode == 0, said


def test_what_is_killed_goes_on(tmp_path: Path) -> None:
    make_heap(tmp_path / "heap", 700)
    finished(start(tmp_path, "undisturbed"))
    whole = seen(tmp_path)
    kills = 0
    draw = random.Random(0)
    for _ in range(3):
        process = start(tmp_path, "killed")
        goal = seen(tmp_path) + draw.randrange(4, whole // 2)
        deadline = time.monotonic() + 240
        while seen(tmp_path) < goal and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.005)
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            kills += 1
        process.communicate()
    assert kills >= 1
    shown_before = seen(tmp_path)
    finished(start(tmp_path, "killed"))
    assert seen(tmp_path) - shown_before < whole
    for file in ("shortlist.parquet", "curation.json"):
        expected = (tmp_path / "undisturbed" / file).read_bytes()
        assert (tmp_path / "killed" / file).read_bytes() == expected
