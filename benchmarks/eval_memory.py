"""Whether the memory of an evaluation grows with its pictures: 1, 4 and 16 times as many.

    python benchmarks/eval_memory.py [--pictures 2000]

Each size is evaluated in a process of its own: photographs of 96 pixels a side in a folder, clean
and under three corruptions, with two tiny models. What is printed is the peak of the resident
memory, and what it is above that of the smallest set.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

from shiftbed.data import open_set
from shiftbed.models import Geometry, Model
from shiftbed.results import Store
from shiftbed.run import execute, make_plan
from shiftbed.settings import resolve

SIDE, CLASSES = 96, 4
TIMES = (1, 4, 16)


def photographs(folder: Path, count: int) -> None:
    rng = np.random.default_rng(0)
    for number in range(count):
        coarse = rng.integers(0, 256, (6, 6, 3), np.uint8)
        picture = Image.fromarray(coarse).resize((SIDE, SIDE), Image.Resampling.BICUBIC)
        target = folder / f"class {number % CLASSES}"
        target.mkdir(parents=True, exist_ok=True)
        picture.save(target / f"{number:06}.jpg", quality=90)


def tiny(number: int) -> Model:
    """A model that costs next to nothing."""
    weights = np.random.default_rng(number).normal(0, 1, (3, CLASSES))
    return Model(
        name=f"tiny {number}",
        spec="python:benchmark",
        geometry=Geometry((64, 64), (64, 64), channels=3),
        outputs=CLASSES,
        predict=lambda batch: batch[:, ::16, ::16].mean((1, 2)) @ weights,
        weights=str(number),
    )


def evaluate(photos: Path, results: Path) -> None:
    """Evaluate, and print the peak of this process's memory in bytes."""
    images = open_set(photos)
    named = ["", "fog.3", "gaussian_noise.3", "jpeg_compression.3"]
    keys = {"class_map": {name: [i] for i, name in enumerate(images.classes)}}
    settings = resolve(
        [f"{photos}/+{one}" if one else f"{photos}/" for one in named], images, **keys
    )
    store = Store(results)
    execute(make_plan([tiny(0), tiny(1)], settings, store), store)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pictures", type=int, default=2000)
    parser.add_argument("--evaluate", type=Path, nargs=2, help="pictures and results, and end")
    options = parser.parse_args()
    if options.evaluate:
        evaluate(*options.evaluate)
        return
    first = None
    with tempfile.TemporaryDirectory() as name:
        for times in TIMES:
            folder = Path(name) / str(times)
            count = times * options.pictures
            photographs(folder / "photos", count)
            this = [sys.executable, __file__, "--evaluate", folder / "photos", folder / "results"]
            done = subprocess.run([*map(str, this)], stdout=subprocess.PIPE, text=True, check=True)
            peak = int(done.stdout)
            first = first or peak
            print(
                f"{count:9,} pictures{peak / 2**20:8.0f} MB  +{(peak - first) / 2**20:.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
