"""How each corruption's time and memory grow with the picture, and what a first call costs.

    python benchmarks/scaling.py [NAME...] [--variant imagenet-c] [--severity 3] [--json FILE]

Claims, each judged at the end: time in proportion to the pixels from 32 to 512 pixels a side (no
exponent over 1.1, where 1 is linear); a peak of memory of at most 8 times the picture's size in
float32; two threads at least 1.8 times as quick as one on a batch; a first call, with nothing
compiled, in at most 5 seconds; an import, with everything compiled, in less than 0.5 seconds.

Times are the best of several, each with draws of its own: a processor learns the branches of the
same draws on a small picture. First calls are in seconds of the processor, which other work on the
machine disturbs less; threads are not to be judged on a busy machine. Memory is the rise of the
resident set's peak in a process of its own, forked when all is compiled, which needs Linux.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import itertools
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt
from ratios import write

from shiftbed.corruptions import VARIANTS, corrupt, corruption_names, severities

Picture = npt.NDArray[np.uint8]
Corrupted = Callable[[Picture], object]

SIDES = (32, 64, 128, 256, 512)
MEMORY_SIDES = (512, 600)


def picture(side: int) -> Picture:
    """Return waves and noise: a picture with smooth parts, edges and detail."""
    rows, columns = np.mgrid[:side, :side] / side
    waves = np.stack([np.sin(9 * rows + k) * np.cos(7 * columns * (k + 1)) for k in range(3)], -1)
    noise = np.random.default_rng(side).normal(0, 12, waves.shape)
    return np.clip(128 + 90 * waves + noise, 0, 255).astype(np.uint8)


def seconds(call: Callable[[], object], *, at_least: float = 0.15) -> float:
    """Return the best time of a call, of as many as fit into a while, but no fewer than five."""
    call()
    best, spent, calls = float("inf"), 0.0, 0
    while spent < at_least or calls < 5:
        start = time.perf_counter()
        call()
        took = time.perf_counter() - start
        best, spent, calls = min(best, took), spent + took, calls + 1
    return best


def growth(corrupted: Corrupted, channels: int) -> tuple[list[float], float]:
    """Return the time at each side, and the exponent of time over pixels across all sides."""
    times = []
    for side in SIDES:
        source = picture(side)[..., :channels]
        times.append(seconds(lambda source=source: corrupted(source)))
    exponent = np.polyfit(np.log(np.square(SIDES)), np.log(times), 1)[0]
    return times, float(exponent)


def peak_memory(corrupted: Corrupted, side: int, channels: int) -> float:
    """Return the rise of the resident peak during a call, in float32 sizes of the picture."""
    source = np.ascontiguousarray(picture(side)[..., :channels])
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            Path("/proc/self/clear_refs").write_text("5")
            before = resident("VmRSS")
            corrupted(source)
            os.write(write, str(resident("VmHWM") - before).encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as answer:
        risen = answer.read()
    os.waitpid(child, 0)
    return 1024 * int(risen) / (4 * source.size)


def resident(field: str) -> int:
    """Return a field of this process's status, in KiB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1])
    raise KeyError(field)


def thread_gain(corrupted: Callable[..., object], channels: int) -> float:
    """Return how many times quicker two threads are than one on a batch of 224 pixels."""
    batch = np.stack([picture(224)[..., :channels]] * 64)
    best = {1: float("inf"), 2: float("inf")}
    for _ in range(8):
        for workers in best:
            took = seconds(lambda workers=workers: corrupted(batch, workers=workers), at_least=0)
            best[workers] = min(best[workers], took)
    return best[1] / best[2]


def in_a_process(code: str, cache: str | None = None) -> float:
    """Run code that prints a number of seconds in a new interpreter."""
    environment = dict(os.environ)
    if cache is not None:
        environment["NUMBA_CACHE_DIR"] = cache
    command = [sys.executable, "-c", f"import time; start = time.perf_counter()\n{code}"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return float(done.stdout)


def first_call(variant: str, name: str, severity: int | None, channels: int) -> float:
    """Return the time of a first call in a new process, with nothing compiled on disk."""
    with tempfile.TemporaryDirectory() as cache:
        return in_a_process(
            "import numpy as np\n"
            f"source = np.zeros((64, 64, {channels}), np.uint8)\n"
            "from shiftbed.corruptions import corrupt\n"
            "start = time.process_time()\n"
            f"corrupt(source, {name!r}, {severity}, variant={variant!r})\n"
            "print(time.process_time() - start)",
            cache,
        )


def warm_import() -> float:
    code = "import shiftbed.corruptions\nprint(time.perf_counter() - start)"
    return min(in_a_process(code) for _ in range(5))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--variant", default="imagenet-c", choices=VARIANTS)
    parser.add_argument("--severity", type=int, default=3)
    parser.add_argument("--json", type=Path, help="write what two threads gain to this file")
    options = parser.parse_args()
    cv2.setNumThreads(1)
    draws = itertools.count()
    channels = 1 if options.variant == "mnist-c" else 3
    names = options.names or corruption_names(options.variant, extra=True)
    names = [name for name in names if name != "pessimal_noise"]  # has no matrix of its own
    misses: list[str] = []
    gains: dict[str, float] = {}

    print(f"{'':18}{'ms at a side of':^40}{'expo-':>7}{'memory':>8}{'two':>9}{'first':>8}")
    sides = "".join(f"{side:8}" for side in SIDES)
    print(f"{options.variant:18}{sides}{'nent':>7}{'/ f32':>8}{'threads':>9}{'call s':>8}")
    for name in names:
        severity = min(options.severity, len(severities(name, options.variant))) or None

        def corrupted(source: Picture, workers: int | None = 1) -> Picture:
            return corrupt(
                source,
                name,  # noqa: B023
                severity,  # noqa: B023
                variant=options.variant,
                seed=next(draws),
                workers=workers,
            )

        corrupted(picture(32)[..., :channels])
        times, exponent = growth(corrupted, channels)
        memory = max(peak_memory(corrupted, side, channels) for side in MEMORY_SIDES)
        gain = thread_gain(corrupted, channels)
        first = first_call(options.variant, name, severity, channels)
        row = "".join(f"{1e3 * took:8.3f}" for took in times)
        print(f"{name:18}{row}{exponent:7.2f}{memory:8.1f}{gain:9.2f}{first:8.1f}", flush=True)
        gains[f"{name}, two threads"] = gain
        misses += [f"{name}: exponent {exponent:.2f}"] if exponent > 1.1 else []
        misses += [f"{name}: memory {memory:.1f} times float32"] if memory > 8 else []
        misses += [f"{name}: two threads {gain:.2f} times one"] if gain < 1.8 else []
        misses += [f"{name}: first call {first:.1f} s"] if first > 5 else []
    importing = warm_import()
    misses += [f"import: {importing:.2f} s"] if importing >= 0.5 else []
    print(f"\nload of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print(f"import shiftbed.corruptions: {importing:.2f} s")
    print("\nmissed:" if misses else "\nevery claim holds")
    print("\n".join(f"  {miss}" for miss in misses))
    write(options.json, gains)


if __name__ == "__main__":
    main()
