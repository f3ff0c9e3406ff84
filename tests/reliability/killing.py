"""Kill evaluations at random moments, resume them, and see whether anything was lost.

    python tests/reliability/killing.py --kills 100

The evaluation is the real command in a process of its own; the models are small linear ones
that write down every picture that they are shown.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

__all__ = ["PICTURES", "World", "files_of", "kill_and_resume"]

PICTURES = 1_300
SETTINGS = "+{clean,gaussian_noise.{1..3},impulse_noise.2}"
CELLS = 2 * 5

MODELS = '''
import os, select, time
import numpy as np

LOG = os.open("shown.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT)

class Linear:
    """A linear classifier that writes down how many pictures it is shown."""

    def __init__(self, name, seed):
        self.name = name
        self.weights = np.random.default_rng(seed).normal(0, 0.01, (16 * 16 * 3, 4))

    def __call__(self, batch):
        os.write(LOG, f"{self.name} {len(batch)}\\n".encode())
        select.select([], [], [], 0.004)  # a sleep that libfaketime understands
        return batch.reshape(len(batch), -1).astype(np.float64) @ self.weights

def one(): return Linear("one", 1)
def two(): return Linear("two", 2)
'''


@dataclass
class World:
    """A folder with pictures and models, in which the command is run."""

    folder: Path
    results: str = "results"
    environment: dict[str, str] = field(default_factory=dict)

    @classmethod
    def made(cls, folder: Path) -> World:
        """Write the pictures and the models."""
        folder.mkdir(parents=True, exist_ok=True)
        rng = np.random.default_rng(0)
        coarse = rng.integers(0, 256, (PICTURES, 4, 4, 3)).repeat(4, 1).repeat(4, 2)
        pictures = np.clip(coarse + rng.normal(0, 12, coarse.shape), 0, 255).astype(np.uint8)
        ids = [f"picture-{number:04}" for number in range(PICTURES)]
        labels = np.arange(PICTURES) % 4
        np.savez(folder / "toys.npz", images=pictures, labels=labels, ids=ids, classes=list("abcd"))
        (folder / "own.py").write_text(MODELS)
        return cls(folder)

    def command(self, results: str | None = None, settings: str = SETTINGS) -> list[str]:
        """Return the words of the evaluation."""
        words = [sys.executable, "-m", "shiftbed", "eval", "-m", "python:own:one"]
        words += ["-m", "python:own:two", "--data", "toys.npz", "-s", settings]
        words += ["--size", "16", "--resize", "16", "--keep", "logits", "--workers", "2", "-q"]
        return [*words, "-o", results or self.results]

    def start(self, results: str | None = None) -> subprocess.Popen[str]:
        """Begin the evaluation, and return its process."""
        return subprocess.Popen(
            self.command(results),
            cwd=self.folder,
            env={**os.environ, "OMP_NUM_THREADS": "1", **self.environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def shown(self) -> int:
        """How many pictures the models were shown so far, but for those that try them out."""
        path = self.folder / "shown.log"
        counts = path.read_text().split()[1::2] if path.exists() else []
        return sum(int(count) for count in counts if int(count) > 2)

    def missing(self) -> int:
        """How many predictions are still to be made."""
        import shiftbed.evaluation

        here = Path.cwd()
        os.chdir(self.folder)
        sys.path.insert(0, str(self.folder))
        try:
            models = ["python:own:one", "python:own:two"]
            plan, _ = shiftbed.evaluation.prepare(
                models, SETTINGS, "toys.npz", results=self.results, keep=["logits"], size=16,
                resize=16,
            )  # fmt: skip
        finally:
            sys.path.remove(str(self.folder))
            os.chdir(here)
        return plan.predictions


def files_of(folder: Path) -> dict[str, bytes]:
    """Everything that two equal runs must have in common: all but when and how long."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "timing.json"
    }


@dataclass
class Tally:
    """What some kills did."""

    kills: int = 0
    #: Before the first picture was shown; while pictures were; and runs that came to their end.
    early: int = 0
    midway: int = 0
    completed: int = 0
    #: Pictures shown again because of a kill: the most for one, and in all.
    most: int = 0
    redone: int = 0
    #: How many predictions were missing after each kill.
    missing: list[int] = field(default_factory=list)


def kill_and_resume(
    world: World, kills: int, seed: int = 0, tell: Callable[[str], None] = lambda text: None
) -> Tally:
    """Kill the evaluation so many times; check all that is promised each time it completes."""
    total = CELLS * PICTURES
    world.results = "whole"
    begun = time.monotonic()
    _end(world.start())
    expected = files_of(world.folder / "whole")
    assert world.shown() == total
    computing = max(0.5, (time.monotonic() - begun) / 2)
    draw, tally = random.Random(seed), Tally()
    world.results = "killed"
    results = world.folder / "killed"
    left = total
    while True:
        before = world.shown()
        child = world.start()
        last = tally.kills == kills
        if not last:
            if draw.random() < 0.8:  # else while it starts
                while child.poll() is None and world.shown() == before:
                    time.sleep(0.01)
            time.sleep(draw.uniform(0, computing))
            child.send_signal(signal.SIGKILL)
        _, errors = child.communicate(timeout=300)
        assert child.returncode in (0, -signal.SIGKILL), errors
        now, shown = world.missing(), world.shown() - before
        assert now <= left, "something that was done is missing"
        again = shown - (left - now)
        assert again >= 0, "something was not computed, but made up"
        left = now
        if child.returncode == 0:
            assert (now, again) == (0, 0), "a whole run did something twice"
            assert files_of(results) == expected, "a resumed run wrote something else"
            assert not (results / ".tmp").exists(), "a temporary file was left"
            tally.completed += 1
            if last:
                return tally
            shutil.rmtree(results)
            left = total
            continue
        tally.kills += 1
        tally.early, tally.midway = tally.early + (not shown), tally.midway + bool(shown)
        tally.most, tally.redone = max(tally.most, again), tally.redone + again
        tally.missing.append(now)
        tell(f"kill {tally.kills}: {now:,} of {total:,} to do, {again:,} to be shown again")


def _end(child: subprocess.Popen[str]) -> None:
    _, errors = child.communicate(timeout=300)
    assert child.returncode == 0, errors


def main() -> None:
    """Kill, resume and report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        begun = time.monotonic()
        world = World.made(Path(folder) / "world")
        tally = kill_and_resume(world, given.kills, given.seed, tell=print)
    print(
        f"{tally.kills} kills, {tally.midway} of them while models were at work; "
        f"{tally.completed} evaluations came to their end, each with the bytes of one that was "
        f"never stopped; {tally.redone / tally.kills:,.0f} predictions made again per kill, "
        f"at most {tally.most:,}; {time.monotonic() - begun:.0f} s"
    )


if __name__ == "__main__":
    main()
