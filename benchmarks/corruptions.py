"""Time every ImageNet-C corruption against imagecorruptions-imaug, in one process.

Ratios of medians over interleaved rounds, by the processor's clock: on a busy machine, the wall's
adds the turns of other programs, and more of them to a longer call. One thread, the scikit-image
astronaut at 224 x 224, all five severities.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import itertools
import json
import statistics
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path

import cv2
import numpy as np
from ratios import write
from skimage import data

import shiftbed
from shiftbed.corruptions import corruption_names

warnings.simplefilter("ignore")
import imagecorruptions  # noqa: E402


def astronaut(side: int) -> np.ndarray:
    return cv2.resize(data.astronaut(), (side, side), interpolation=cv2.INTER_AREA)


def seconds(call: Callable[[], object]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def time_original(python: str, picture: np.ndarray) -> float:
    """Return the milliseconds of the original's 15, summed, in another Python's process."""
    with tempfile.NamedTemporaryFile(suffix=".npy") as file:
        np.save(file.name, picture)
        script = Path(__file__).with_name("time_original.py")
        command = [python, str(script), file.name, *corruption_names()]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    return sum(json.loads(done.stdout).values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=corruption_names(extra=True))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", type=Path, help="write the ratios to this file")
    parser.add_argument(
        "--original", help="a Python that has imagecorruptions 1.1.2, to time that one as well"
    )
    options = parser.parse_args()
    cv2.setNumThreads(1)
    picture = astronaut(224)
    legacy = np.random.RandomState(0)
    seeds = itertools.count()
    rows: dict[str, tuple[float, float, float]] = {}
    print(f"{'corruption':20}{'peer ms':>9}{'ours ms':>9}{'ratio':>7}{'legacy ms':>11}{'ratio':>7}")
    for name in options.names:
        times: list[list[float]] = []
        for severity in range(1, 6):
            calls = (
                partial(imagecorruptions.corrupt, picture, severity, name),
                # Another key each time, so that no branch is learnt by heart.
                lambda *, n=name, s=severity: shiftbed.corrupt(picture, n, s, seed=next(seeds)),
                partial(shiftbed.corrupt, picture, name, severity, rng=legacy),
            )
            samples: tuple[list[float], ...] = ([], [], [])
            for _ in range(options.rounds):
                for call, sample in zip(calls, samples, strict=True):
                    call()  # brings its own working set into the caches
                    sample += [seconds(call) for _ in range(3)]
            times.append([statistics.median(sample) for sample in samples])
        theirs, fast, exact = (statistics.mean(column) * 1e3 for column in zip(*times, strict=True))
        rows[name] = theirs, fast, exact
        ratios = f"{theirs / fast:7.1f}{exact:11.3f}{theirs / exact:7.1f}"
        print(f"{name:20}{theirs:9.2f}{fast:9.3f}{ratios}", flush=True)
    of_the_15 = [rows[name] for name in corruption_names() if name in rows]
    summary = {
        "geometric mean, default": statistics.geometric_mean(a / b for a, b, _ in rows.values()),
        "slowest, default": min(a / b for a, b, _ in rows.values()),
    }
    if len(of_the_15) == 15:
        theirs, fast, exact = (sum(column) for column in zip(*of_the_15, strict=True))
        summary["sum of the 15, default"] = theirs / fast
        summary["sum of the 15, legacy stream"] = theirs / exact
        if options.original:
            original = time_original(options.original, picture)
            summary["sum of the 15, default, against 1.1.2"] = original / fast
            summary["sum of the 15, legacy stream, against 1.1.2"] = original / exact
    for what, ratio in summary.items():
        print(f"{what:44}{ratio:6.1f} x")
    write(options.json, {name: theirs / fast for name, (theirs, fast, _) in rows.items()} | summary)


if __name__ == "__main__":
    main()
