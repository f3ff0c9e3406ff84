"""The filter of ``shiftbed curate hard``: how fast it is, and how much memory it needs.

    python benchmarks/curation.py throughput
    python benchmarks/curation.py memory --pictures 10000 --pictures 100000

The peer of the throughput is the plain loop: each picture read once, then for each model ten
crops made and shown one by one, with nothing left out. Both use the same networks, of one
thread each, on the same pictures, once with half of them labelled wrongly and once with a tenth:
what a model has right in the middle costs one pass instead of twenty. Only ratios travel to
another machine.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from PIL import Image

from shiftbed.curate import Shortlist, hard
from shiftbed.models import Model, load, ten_crops


def photographs(root: Path, count: int, wrong: float, side: int = 300) -> None:
    """Pictures of coloured noise, each in the folder of its own colour or of the other."""
    rng = np.random.default_rng(0)
    for number in range(count):
        small = rng.integers(0, 200, (side // 20, side // 20, 3), np.uint8)
        label = number % 2
        small[..., 1 - label if number < wrong * count else label] += 50
        picture = Image.fromarray(small).resize((side, side), Image.Resampling.BICUBIC)
        folder = root / "ab"[label]
        folder.mkdir(parents=True, exist_ok=True)
        picture.save(folder / f"{number:06}.jpg", quality=90)


def networks() -> list[Model]:
    """Two ResNet-18s of random weights in one geometry, that say which colour there is more of."""
    import torch
    from torch import nn

    from shiftbed.models import import_torchvision

    resnet18 = import_torchvision().models.resnet18
    torch.set_num_threads(1)

    class Colours(nn.Module):
        def __init__(self, seed: int) -> None:
            super().__init__()
            torch.manual_seed(seed)
            self.body = resnet18(weights=None, num_classes=2)

        def forward(self, pixels: torch.Tensor) -> torch.Tensor:
            # The body costs what it costs, and has little say.
            return 50 * pixels.mean((2, 3))[:, :2] + 1e-3 * self.body(pixels)

    how = {"size": 224, "resize": 256, "channels": 3, "classes": ("a", "b"), "outputs": 2}
    return [load(Colours(seed).eval(), name=f"colours-{seed}", **how) for seed in range(2)]


def plain_loop(root: Path, models: list[Model]) -> int:
    """Ten separate forward passes of every model for every picture; return how many survive."""
    kept = 0
    for path in sorted(root.rglob("*.jpg")):
        picture = np.asarray(Image.open(path).convert("RGB"))
        label = "ab".index(path.parent.name)
        right, most = False, 0.0
        for model in models:
            p = []
            for crop in ten_crops(model.geometry, picture):
                logits = model.logits(crop[None])[0].astype(float)
                right |= bool(logits.argmax() == label)
                p.append(np.exp(logits[label]) / np.exp(logits).sum())
            most = max(most, float(np.mean(p)))
        kept += not right and most <= 0.15
    return kept


def timed(work: Callable[[], int]) -> tuple[float, int]:
    """Return the processor time of all threads, which other programs do not change much."""
    begun = time.process_time()
    found = work()
    return time.process_time() - begun, found


def throughput(pictures: int) -> None:
    models = networks()
    for wrong in (0.5, 0.1):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder) / "heap"
            photographs(root, pictures, wrong)
            plain, kept = timed(partial(plain_loop, root, models))
            print(f"{pictures} pictures, two ResNet-18s; {kept} survive: plain loop 1", flush=True)
            ours = partial(hard, root, models, f"{folder}/found", per_confusion=10**6)
            seconds, found = timed(partial(survivors, ours))
            assert found == kept, (found, kept)
            print(f"  curate hard {plain / seconds:.1f} times as fast", flush=True)


def survivors(filtered: Callable[[], Shortlist]) -> int:
    return len(filtered().entries)


def tiny(root: Path, count: int) -> None:
    """So many pictures of 16 pixels, a thousand to a folder."""
    rng = np.random.default_rng(0)
    for number in range(count):
        label = number % 2
        folder = root / "ab"[label] / f"{number // 1000:04}"
        folder.mkdir(parents=True, exist_ok=True)
        pixels = rng.integers(0, 200, (16, 16, 3), np.uint8)
        pixels[..., label if number % 8 else 1 - label] += 50
        Image.fromarray(pixels).save(folder / f"{number:07}.bmp")


def colour(batch: np.ndarray) -> np.ndarray:
    """Say which colour there is more of."""
    return batch.mean((1, 2))[:, :2]


def one_memory(root: Path, output: Path) -> None:
    model = load(colour, name="colour", outputs=2, size=12, resize=14, classes=("a", "b"))
    begun = time.perf_counter()
    found = hard(root, model, output)
    seconds = time.perf_counter() - begun
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    left = found.funnel[-3].left
    count = found.funnel[0].left
    print(
        f"{count:>9,} pictures  {peak:6.0f} MiB  {count / seconds:6.0f} pictures/s  {left:,} wrong"
    )


def memory(sizes: list[int]) -> None:
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder) / "heap"
            tiny(root, size)
            words = [sys.executable, __file__, "one-memory", str(root), f"{folder}/found"]
            subprocess.run(words, check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parts = parser.add_subparsers(dest="part", required=True)
    fast = parts.add_parser("throughput")
    fast.add_argument("--pictures", type=int, default=40)
    large = parts.add_parser("memory")
    large.add_argument("--pictures", type=int, action="append")
    one = parts.add_parser("one-memory")
    one.add_argument("heap", type=Path)
    one.add_argument("output", type=Path)
    asked = parser.parse_args()
    if asked.part == "throughput":
        throughput(asked.pictures)
    elif asked.part == "memory":
        memory(asked.pictures or [1_000, 10_000, 100_000])
    else:
        one_memory(asked.heap, asked.output)


if __name__ == "__main__":
    main()
