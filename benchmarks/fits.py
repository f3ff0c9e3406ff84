"""Every baseline fit of the ImageNet testbed's grid, with 1,000 bootstraps: us and a plain loop.

    python benchmarks/fits.py [GRID]

The plain loop is what one writes first: for each pair of settings and each resample, take the
models drawn and call ``numpy.linalg.lstsq``. Both draw the same resamples, so their numbers must
agree. Times are those of the processor, in one thread, the best of several runs, each with draws
of its own; only the ratio travels. GRID is a folder with the grid's top1.csv and models.csv.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt
from ratios import write

from shiftbed.errors import InputError
from shiftbed.results.imported import import_results, read_imported
from shiftbed.studies import BaselineFit, Grid, clean_of, fit_baselines
from shiftbed.studies.lines import drawn_rows, line, to_scale

FloatArray = npt.NDArray[np.float64]
Pairs = list[tuple[str, str]]
T = TypeVar("T")

RESAMPLES = 1000


def pairs_of(grid: Grid) -> Pairs:
    """Return every setting with its clean one; with imagenet-val where it names none."""
    pairs = []
    for setting in grid.settings:
        try:
            clean = clean_of(setting, grid)
        except InputError:
            clean = "imagenet-val"
        if setting != clean:
            pairs.append((clean, setting))
    return pairs


def ours(grid: Grid, pairs: Pairs, seed: int) -> list[BaselineFit]:
    return fit_baselines(
        grid, pairs, shape="line", resamples=RESAMPLES, seed=seed, mixed_classes=True
    )


def plain(grid: Grid, pairs: Pairs, seed: int, resamples: int = RESAMPLES) -> list[FloatArray]:
    """Return (resamples, 2) intercepts and slopes for each pair, the obvious way."""
    found = []
    standard = grid.mask(["category:standard"])
    for clean, shifted in pairs:
        used = standard & np.isfinite(grid.column(clean)) & np.isfinite(grid.column(shifted))
        if shifted == "imagenet-a":  # its adversary fails by construction
            used[grid.row("resnet50")] = False
        x = to_scale(grid.column(clean)[used], "logit", grid.pictures(clean)[used])
        y = to_scale(grid.column(shifted)[used], "logit", grid.pictures(shifted)[used])
        terms = line(x)
        drawn = drawn_rows(len(x), resamples, seed)
        fits = np.empty((resamples, 2))
        for i, rows in enumerate(drawn):
            fits[i] = np.linalg.lstsq(terms[rows], y[rows], rcond=None)[0]
        found.append(fits)
    return found


def timed(work: Callable[[int], T], repeats: int) -> tuple[float, T]:
    """Return the least processor time of the work, one seed after another, and the last result."""
    best = float("inf")
    for seed in range(repeats - 1, -1, -1):
        start = time.process_time()
        result = work(seed)
        best = min(best, time.process_time() - start)
    return best, result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("grid", type=Path, nargs="?", default=Path("../shared/data/testbed"))
    parser.add_argument("--json", type=Path, help="write the ratio to this file")
    options = parser.parse_args()
    source = options.grid
    if not source.exists():
        print(f"no fits were timed: the testbed's grid is not at {source}; name its folder")
        return
    with tempfile.TemporaryDirectory() as results:
        import_results(source, results)
        grid = Grid.from_cells(read_imported(results))
    pairs = pairs_of(grid)

    fast, fits = timed(lambda seed: ours(grid, pairs, seed), repeats=7)
    slow, loops = timed(lambda seed: plain(grid, pairs, seed), repeats=2)
    apart = max(
        float(np.abs(fit.draws - loop).max()) for fit, loop in zip(fits, loops, strict=True)
    )
    print(f"{len(pairs)} pairs (clean, setting), {RESAMPLES:,} resamples each, one thread")
    print(f"shiftbed    {1000 * fast:10.1f} ms")
    print(f"plain loop  {1000 * slow:10.1f} ms")
    print(f"ratio       {slow / fast:10.0f} x")
    write(options.json, {"plain loop": slow / fast})
    print(f"largest difference of a resampled intercept or slope: {apart:.1e}")

    every = [(a, b) for a in grid.settings for b in grid.settings if a != b]
    long, _ = timed(lambda seed: ours(grid, every, seed), repeats=1)
    print(f"all {len(every):,} pairs of the {len(grid.settings)} settings: {long:.2f} s")


if __name__ == "__main__":
    main()
