"""Time AugMix against torchvision's, and DeepAugment against one picture at a time.

Pictures per second of the processor at 224 px, in one thread, and their ratios: medians over
interleaved rounds. DeepAugment's weights are untrained: what they are changes no speed.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import torch
from PIL import Image
from ratios import write
from skimage import data

from shiftbed.augment import augmentation
from shiftbed.augment.deep.network import find
from shiftbed.augment.deep.signals import Distorted
from shiftbed.augment.deep.weights import distorted_weights
from shiftbed.models._torchvision import import_torchvision

SIDE = 224


def photos(count: int) -> list[np.ndarray]:
    sources = (data.astronaut(), data.coffee(), data.chelsea(), data.rocket())
    small = [cv2.resize(one, (SIDE, SIDE), interpolation=cv2.INTER_AREA) for one in sources]
    return [small[number % 4] for number in range(count)]


def rates(calls: dict[str, Callable[[], object]], count: int, rounds: int) -> dict[str, float]:
    """Return how many pictures a second each call does."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            start = time.process_time()
            call()
            times[name].append(time.process_time() - start)
    return {name: count / statistics.median(sample) for name, sample in times.items()}


def shown(title: str, found: dict[str, float], peer: str) -> dict[str, float]:
    """Print rates beside the peer's, and return the ratios to it of the others."""
    print(title)
    for name, rate in found.items():
        print(f"  {name:44}{rate:9.2f} pictures/s{rate / found[peer]:8.2f} x", flush=True)
    return {f"{title}: {name}": found[name] / found[peer] for name in found if "shiftbed" in name}


def augmix(rounds: int) -> dict[str, float]:
    import_torchvision()
    from torchvision.transforms import v2

    pictures = photos(16)
    images = [Image.fromarray(one) for one in pictures]
    tensors = [torch.from_numpy(one.transpose(2, 0, 1).copy()) for one in pictures]
    ours = augmentation("augmix")
    theirs = v2.AugMix(severity=3, all_ops=False)
    keys = iter(range(10**9))
    calls = {
        "torchvision v2.AugMix, PIL": lambda: [theirs(one) for one in images],
        "torchvision v2.AugMix, uint8 tensors": lambda: [theirs(one) for one in tensors],
        "shiftbed, PIL": lambda: [ours(one, key=str(next(keys))) for one in images],
        "shiftbed, uint8 tensors": lambda: [ours(one, key=str(next(keys))) for one in tensors],
    }
    for call in calls.values():
        call()
    return shown("AugMix, severity 3", rates(calls, 16, rounds), "torchvision v2.AugMix, PIL")


def deepaugment(name: str, rounds: int, folder: Path) -> dict[str, float]:
    torch.manual_seed(0)
    weights = folder / f"{name}.pt"
    torch.save(find(name)().state_dict(), weights)
    pictures = photos(8)
    import_torchvision()
    from torchvision.transforms.functional import to_pil_image, to_tensor

    def one_at_a_time() -> None:
        """As the published scripts do it: read again, load, forward, to a picture."""
        rng = np.random.default_rng(0)
        net = find(name)().eval()
        net.load_state_dict(torch.load(weights, weights_only=True))
        for picture in pictures:
            if rng.random() < 0.05:
                clean = torch.load(weights, weights_only=True)
                net.load_state_dict(
                    distorted_weights(clean, dict(net.layers), net.distortions, rng)
                )
            with torch.no_grad():
                made = net(to_tensor(Image.fromarray(picture)).unsqueeze(0), Distorted(net, rng))
            to_pil_image(made.squeeze().clamp(0, 1))

    ours = augmentation("deepaugment", network=name, weights=str(weights))

    calls: dict[str, Callable[[], object]] = {
        "one picture at a time": one_at_a_time,
        "shiftbed": lambda: [ours(one, key=f"0:{i}") for i, one in enumerate(pictures)],
    }
    for call in calls.values():
        call()
    return shown(
        f"DeepAugment, {name}", rates(calls, len(pictures), rounds), "one picture at a time"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, help="write the ratios to this file")
    options = parser.parse_args()
    torch.set_num_threads(1)
    cv2.setNumThreads(1)
    ratios = augmix(options.rounds)
    with tempfile.TemporaryDirectory() as folder:
        for name in ("autoencoder", "edsr", "cae", "vgg7"):
            ratios |= deepaugment(name, options.rounds, Path(folder))
    write(options.json, ratios)


if __name__ == "__main__":
    main()
