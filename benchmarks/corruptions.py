"""Time every ImageNet-C corruption against imagecorruptions-imaug, in one process.

Ratios of medians over interleaved rounds: both sides see the same noise of the machine. One
thread, the scikit-image astronaut at 224 x 224, all five severities.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
import warnings
from collections.abc import Callable

import cv2
import numpy as np
from skimage import data

import shiftbed
from shiftbed.corruptions import corruption_names

warnings.simplefilter("ignore")
import imagecorruptions  # noqa: E402


def astronaut(side: int) -> np.ndarray:
    return cv2.resize(data.astronaut(), (side, side), interpolation=cv2.INTER_AREA)


def seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=corruption_names(extra=True))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", help="write the ratios to this file")
    options = parser.parse_args()
    cv2.setNumThreads(1)
    picture = astronaut(224)
    legacy = np.random.RandomState(0)
    rows: dict[str, tuple[float, float, float]] = {}
    print(f"{'corruption':20}{'peer ms':>9}{'ours ms':>9}{'ratio':>7}{'legacy ms':>11}{'ratio':>7}")
    for name in options.names:
        times: list[list[float]] = []
        for severity in range(1, 6):

            def peer(s: int = severity) -> object:
                return imagecorruptions.corrupt(picture, corruption_name=name, severity=s)

            def ours(s: int = severity) -> object:
                return shiftbed.corrupt(picture, name, s)

            def old(s: int = severity) -> object:
                return shiftbed.corrupt(picture, name, s, rng=legacy)

            calls = (peer, ours, old)
            samples: tuple[list[float], ...] = ([], [], [])
            for _ in range(options.rounds):
                for call, sample in zip(calls, samples, strict=True):
                    call()  # brings its own working set into the caches
                    sample += [seconds(call) for _ in range(3)]
            times.append([statistics.median(sample) for sample in samples])
        theirs, fast, exact = (statistics.mean(column) * 1e3 for column in zip(*times, strict=True))
        rows[name] = theirs, fast, exact
        print(
            f"{name:20}{theirs:9.2f}{fast:9.3f}{theirs / fast:7.1f}{exact:11.3f}{theirs / exact:7.1f}",
            flush=True,
        )
    main_rows = [rows[name] for name in corruption_names() if name in rows]
    theirs, fast, exact = (sum(column) for column in zip(*main_rows, strict=True)) if main_rows else (0, 1, 1)
    summary = {
        "sum of the 15, default": theirs / fast,
        "sum of the 15, legacy stream": theirs / exact,
        "geometric mean, default": statistics.geometric_mean(a / b for a, b, _ in rows.values()),
        "slowest, default": min(a / b for a, b, _ in rows.values()),
    }
    for what, ratio in summary.items():
        print(f"{what:36}{ratio:6.1f} x")
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"ratios": {n: a / b for n, (a, b, _) in rows.items()}, **summary}, file, indent=1)


if __name__ == "__main__":
    main()
