"""What many predictions take: bytes on disk, and seconds and memory to judge all of them.

    python benchmarks/storage.py [--rows 1000000 10000000]

Each size is a store of simulated answers of 1,000 classes, 50,000 pictures to a cell. A dozen
cells are made, from hard to easy, and copied under other names until there are as many as asked:
reading and judging takes what it would take if they were all different. Then one process asks for
accuracy, top-5 and two calibration errors of every cell with their intervals, and one for every
baseline fit, as `shiftbed score` and `shiftbed study fit` do. Seconds are the wall's. The line
through what was measured says what a billion would take.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from ratios import write

from shiftbed.corruptions import corruption_names
from shiftbed.results import Identity, Manifest, Results, Store
from shiftbed.results.answers import answers
from shiftbed.studies import Grid, fit_baseline, score

PICTURES, CLASSES, LEVELS = 50_000, 1_000, 12
MOST_SETTINGS = 80
METRICS = ("accuracy", "top5", "calibration", "ece")
BILLION = 10**9


def make(folder: Path, cells: int) -> None:
    """Write a store of so many cells: at least four models, on at most eighty settings."""
    store = Store(folder)
    rng = np.random.default_rng(0)
    labels = rng.integers(0, CLASSES, PICTURES).astype(np.int32)
    store.write_pictures("simulated", [f"{i:05}.jpg" for i in range(PICTURES)], labels=labels)
    made = [_cell(store, level, labels) for level in range(LEVELS)]
    shifts = [f"{name}.{s}" for name in corruption_names(extra=True) for s in range(1, 6)]
    settings = ["simulated", *(f"simulated+{shift}" for shift in shifts)][:MOST_SETTINGS]
    models = max(4, cells // len(settings))
    for model in range(models):
        for place, setting in enumerate(settings[: cells // models]):
            easy = model * 5 % LEVELS
            source = made[max(easy - place % 4, 0)]
            _copy(store, source, f"model {model}", setting)
    for source in made:
        shutil.rmtree(store.folder(source.key))


def _cell(store: Store, level: int, labels: np.ndarray) -> Manifest:
    """Write one cell; the classes after the first are alike to it, more or less."""
    rng = np.random.default_rng(level)
    families = np.random.default_rng(0).normal(size=(CLASSES // 8, 64))
    directions = np.repeat(families, 8, axis=0) + np.random.default_rng(1).normal(
        size=(CLASSES, 64)
    )
    identity = Identity(f"level {level}", "simulated", "simulated", "w", "g", "c")
    manifest = Manifest(identity, tags={"category": "standard"}, class_space="simulated")
    store.begin(manifest)
    size = 2_500
    slices = PICTURES // size
    for number in range(slices):
        index = np.arange(number * size, (number + 1) * size, dtype=np.int32)
        noise = rng.normal(size=(size, 64)) * (4.2 - 0.25 * level)
        scores = ((directions[labels[index]] + noise) @ directions.T / 14).astype(np.float32)
        store.write_part(manifest.key, number, answers(index, scores, labels[index]), ())
    return store.finish(manifest, slices, True, False, {})


def _copy(store: Store, source: Manifest, model: str, setting: str) -> None:
    identity = dataclasses.replace(source.identity, model=model, setting=setting)
    copy = dataclasses.replace(source, identity=identity)
    shutil.copytree(store.folder(source.key), store.folder(copy.key))
    (store.folder(copy.key) / "manifest.json").write_text(copy.to_json(), "utf-8")


def judge(folder: Path) -> None:
    """Ask a store for everything, print the seconds and the peak memory as JSON."""
    began = time.perf_counter()
    found = score(Results.open(folder), METRICS)
    assert not any(found["value"].is_null().to_pylist())
    grid = Grid.from_cells(Results.open(folder).cells())
    shifted = [setting for setting in grid.settings if "+" in setting]
    fits = [fit_baseline(grid, setting) for setting in shifted]
    told = {
        "scores": len(found),
        "fits": len(fits),
        "seconds": time.perf_counter() - began,
        "peak bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }
    print(json.dumps(told))


def measured(rows: int, folder: Path) -> dict[str, float]:
    """Return what a store of so many rows takes, made and removed again."""
    store = folder / str(rows)
    # Each in a process of its own, since a process takes over the peak of the one it comes from.
    this = [sys.executable, __file__]
    subprocess.run([*this, "--rows", str(rows), "--make", str(store)], check=True)
    size = sum(path.stat().st_size for path in store.rglob("*") if path.is_file())
    done = subprocess.run([*this, "--judge", str(store)], stdout=subprocess.PIPE, check=True)
    shutil.rmtree(store)
    return {"bytes": size, **json.loads(done.stdout)}


def plain_bytes(folder: Path) -> float:
    """Return what an answer takes as one writes it first: a plain Parquet file with zstd."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    make(folder / "few", 4)
    results = Results.open(folder / "few")
    tables = [results.predictions(f"model {model}", "simulated") for model in range(4)]
    kept = ["model", "setting", "picture", "label", "class1", "confidence"]
    rows = pa.concat_tables(tables).select(kept)
    pq.write_table(rows, folder / "plain.parquet", compression="zstd")
    size = (folder / "plain.parquet").stat().st_size
    shutil.rmtree(folder / "few")
    return size / len(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[10**6, 10**7])
    parser.add_argument("--folder", type=Path, help="where stores are made, if not in a temporary")
    parser.add_argument("--json", type=Path, help="write the ratio of bytes to this file")
    parser.add_argument("--make", type=Path, help="make one store here, and end")
    parser.add_argument("--judge", type=Path, help="judge the store here, and end")
    options = parser.parse_args()
    if options.make:
        make(options.make, options.rows[0] // PICTURES)
        return
    if options.judge:
        judge(options.judge)
        return
    print(f"{'rows':>14}{'bytes each':>12}{'scores':>8}{'fits':>6}{'seconds':>9}{'peak MB':>9}")
    sizes = sorted(options.rows)
    seconds, peaks = [], []
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for rows in sizes:
            told = measured(rows, Path(folder))
            seconds.append(told["seconds"])
            peaks.append(told["peak bytes"] / 2**20)
            print(
                f"{rows:14,}{told['bytes'] / rows:12.2f}{told['scores']:8,}{told['fits']:6}"
                f"{seconds[-1]:9.1f}{peaks[-1]:9.0f}",
                flush=True,
            )
        plain = plain_bytes(Path(folder))
    ratio = plain * sizes[-1] / told["bytes"]
    print(f"plain Parquet with zstd, of the first class alone: {plain:.2f} bytes, {ratio:.2f} x")
    write(options.json, {"bytes, plain Parquet": ratio})
    if len(sizes) > 1:
        for what, found in (("seconds", seconds), ("peak MB", peaks)):
            slope, level = np.polyfit(sizes, found, 1)
            print(
                f"{what} at {BILLION:,}, by the line, not measured: {level + slope * BILLION:,.0f}"
            )


if __name__ == "__main__":
    main()
