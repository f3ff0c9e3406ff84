"""The check of benchmarks: which ratios fell, what it says, and how it ends."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "ratios.py"
fallen = runpy.run_path(str(SCRIPT))["fallen"]


@pytest.mark.parametrize(
    ("now", "said"),
    [
        (8.0, []),
        (6.0, []),  # a quarter less is still allowed
        (5.9, ["fog: 5.9 times, 26% below the 8.0 of the baseline"]),
        (20.0, []),
        (float("nan"), ["fog: nan times, nan% below the 8.0 of the baseline"]),
    ],
)
def test_a_ratio_may_lose_a_quarter(now: float, said: list[str]) -> None:
    assert fallen({"fog": 8.0}, {"fog": now}) == said


def test_what_was_not_measured_is_told_and_what_is_new_is_not() -> None:
    told = fallen({"fog": 8.0}, {"snow": 1.0})
    assert told == ["fog: not measured, and the baseline has 8.0 times"]


@pytest.mark.parametrize(("measured", "ends"), [(3.1, 0), (2.8, 1)])
def test_the_command_fails_by_a_sentence(tmp_path: Path, measured: float, ends: int) -> None:
    (tmp_path / "ratios.py").write_text(SCRIPT.read_text())
    (tmp_path / "baseline.json").write_text(json.dumps({"sums": {"plain loop": 4.0}}))
    (tmp_path / "sums.py").write_text(
        "import sys\n"
        "from pathlib import Path\n"
        "from ratios import write\n"
        f"write(Path(sys.argv[2]), {{'plain loop': {measured}}})\n"
    )
    done = subprocess.run(
        [sys.executable, str(tmp_path / "ratios.py")], capture_output=True, text=True, check=False
    )
    assert done.returncode == ends
    fell = "sums.py, plain loop: 2.8 times, 30% below the 4.0 of the baseline\n"
    assert done.stdout == (fell if ends else "no ratio fell\n")
