"""What a grid costs: as models are added, and against the loop that everybody writes.

    python benchmarks/grid.py [--pictures 16]

The plain loop is kept generous: one DataLoader with a worker per core for all 76 settings of
a model (no start-up per setting), the corruptions of ``imagecorruptions-imaug``, eager torch.
Both read the same JPEG files, in the same geometry, with the same untrained networks, since
only the time matters; that their answers on clean pictures are the same is checked.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from ratios import write

from shiftbed.corruptions import corrupt, corruption_names
from shiftbed.data import ImageSet, open_set
from shiftbed.models import Geometry, Model, load
from shiftbed.models._torchvision import import_torchvision
from shiftbed.results import Results, Store
from shiftbed.run import execute, make_plan
from shiftbed.settings import resolve

NETWORKS = ("squeezenet1_1", "mobilenet_v3_small", "resnet18")
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def photographs(folder: Path, count: int) -> ImageSet:
    """JPEG files of ImageNet's usual size, with the spectrum of photographs."""
    rng = np.random.default_rng(0)
    for number in range(count):
        coarse = [rng.normal(0, 1, (side, side * 4 // 3, 3)) for side in (3, 9, 30, 90, 375)]
        sizes = [Image.Resampling.BICUBIC] * len(coarse)
        layers = [
            np.stack(
                [
                    np.asarray(
                        Image.fromarray(layer[..., c].astype(np.float32)).resize((500, 375), size)
                    )
                    for c in range(3)
                ],
                axis=-1,
            )
            / 2**octave
            for octave, (layer, size) in enumerate(zip(coarse, sizes, strict=True))
        ]
        picture = np.clip(127 + 60 * sum(layers), 0, 255).astype(np.uint8)
        target = folder / "photos" / f"class {number % 4}"
        target.mkdir(parents=True, exist_ok=True)
        Image.fromarray(picture).save(target / f"{number:03}.jpg", quality=90)
    return open_set(folder / "photos")


def tiny(number: int) -> Model:
    """A model that costs next to nothing."""
    weights = np.random.default_rng(number).normal(0, 1, (3, 4))
    return Model(
        name=f"tiny {number}",
        spec="python:benchmark",
        geometry=Geometry((224, 224), (256, 256), channels=3),
        outputs=4,
        predict=lambda batch: batch[:, ::56, ::56].mean((1, 2)) @ weights,
        weights=str(number),
    )


def evaluated(models: list[Model], images: ImageSet, folder: Path) -> tuple[float, float]:
    """Return the seconds that the whole grid took, and those of its pictures alone."""
    keys = {"class_map": {name: [i] for i, name in enumerate(images.classes)}}
    settings = resolve(["imagenet-c"], images, **keys)
    store = Store(folder)
    plan = make_plan(models, settings, store)
    begun = time.perf_counter()
    execute(plan, store)
    took = time.perf_counter() - begun
    timings = folder.glob("cells/*/timing.json")
    # A setting's pictures are made once, and noted with each of its cells.
    pictures = sum(json.loads(file.read_text())["seconds_for_pictures"] for file in timings)
    return took, pictures / len(models)


def grid_cost(images: ImageSet, folder: Path) -> dict[str, float]:
    """Print what a grid takes as models are added; return how many times less pictures then take.

    That is against making them anew for each model: 8 for eight models, if they are shared.
    """
    print(f"{len(images)} pictures x 76 settings, as tiny models are added")
    print(f"{'models':>8} {'seconds':>9} {'pictures, thread-seconds':>25} {'against 1 model':>16}")
    first = alone = None
    for count in (1, 2, 4, 8):
        took, pictures = evaluated([tiny(n) for n in range(count)], images, folder / str(count))
        first, alone = first or took, alone or pictures
        print(f"{count:8} {took:9.1f} {pictures:25.1f} {took / first:15.2f}x")
    return {"pictures of 8 models, shared": count * alone / pictures}


def against_plain_loop(images: ImageSet, folder: Path) -> dict[str, float]:
    networks = untrained()
    models = [load(network, name=name, size=224, resize=256) for name, network in networks.items()]
    ours, _ = evaluated(models, images, folder / "ours")
    theirs, answers = plain_loop(networks, images)
    results = Results(folder / "ours")
    for name, expected in answers.items():
        found = results.predictions(name, "photos")["class1"].to_numpy()
        assert (found == expected).all(), f"{name} answers otherwise on clean pictures"
    print(f"\n{len(images)} pictures x 76 settings x {len(networks)} models, {CORES} cores")
    print(f"  imagecorruptions + DataLoader + eager torch  {theirs:8.1f} s")
    print(f"  shiftbed                                     {ours:8.1f} s")
    print(f"  ratio                                        {theirs / ours:8.1f}x")
    return {"the whole grid, plain loop": theirs / ours}


def untrained() -> dict[str, Any]:
    import torch

    torch.manual_seed(0)
    library = import_torchvision().models
    return {name: getattr(library, name)(num_classes=4).eval() for name in NETWORKS}


def plain_loop(networks: dict[str, Any], images: ImageSet) -> tuple[float, dict[str, Any]]:
    """Every model over every setting: decode, resize, crop, corrupt, normalise, forward."""
    import torch
    from imagecorruptions import corrupt as theirs
    from torch.utils.data import DataLoader, Dataset
    from torchvision import transforms

    geometry = transforms.Compose([transforms.Resize(256), transforms.CenterCrop(224)])
    to_tensor = transforms.ToTensor()
    files = [images.root / name for name in images.ids]
    settings = [None, *((n, s) for n in corruption_names() for s in range(1, 6))]

    class Corrupted(Dataset):
        def __len__(self) -> int:
            return len(settings) * len(files)

        def __getitem__(self, index: int) -> torch.Tensor:
            setting = settings[index // len(files)]
            picture = geometry(Image.open(files[index % len(files)]).convert("RGB"))
            if setting is not None:
                pixels = np.asarray(picture)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    pixels = theirs(pixels, corruption_name=setting[0], severity=setting[1])
                picture = Image.fromarray(pixels)
            return to_tensor(picture)

    answers = {}
    begun = time.perf_counter()
    for name, network in networks.items():
        found = []
        with torch.no_grad():
            for batch in DataLoader(Corrupted(), batch_size=32, num_workers=CORES):
                found.append(network(batch).argmax(1))
        answers[name] = torch.cat(found)[: len(files)].numpy()
    return time.perf_counter() - begun, answers


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pictures", type=int, default=16)
    parser.add_argument("--json", type=Path, help="write the ratios to this file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        images = photographs(folder, options.pictures)
        sample = np.zeros((224, 224, 3), np.uint8)
        for corruption in corruption_names():  # compile what is compiled on first use
            corrupt(sample, corruption, 1)
        write(options.json, grid_cost(images, folder) | against_plain_loop(images, folder))


if __name__ == "__main__":
    main()
