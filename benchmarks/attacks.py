"""Time PGD against foolbox and, where it is installed, torchattacks, with the same parameters.

A ResNet-18 at 64 px in one thread, its weights trained for a moment to tell four photographs
apart, so that some crops of them are fooled early and some late. Seconds of the processor, and
how many are fooled: each picture is attacked by all.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import cv2
import foolbox
import numpy as np
import torch
from ratios import write
from skimage import data
from torch import nn

from shiftbed.attacks import attacked, attacks_named
from shiftbed.models import load
from shiftbed.models._torchvision import import_torchvision

SIDE = 64


def crops(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    sources = (data.astronaut(), data.coffee(), data.chelsea(), data.rocket())
    small = [cv2.resize(one, (96, 96), interpolation=cv2.INTER_AREA) for one in sources]
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 4, count)
    corners = rng.integers(0, 96 - SIDE, (count, 2))
    pictures = [
        small[label][top : top + SIDE, left : left + SIDE]
        for label, (top, left) in zip(labels, corners, strict=True)
    ]
    noise = rng.normal(0, 25, (count, SIDE, SIDE, 3))
    return np.clip(np.stack(pictures) + noise, 0, 255).astype(np.uint8), labels


def as_tensor(pictures: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(pictures.transpose(0, 3, 1, 2).copy()).float().div(255)


def trained() -> nn.Module:
    torch.manual_seed(0)
    network = import_torchvision().models.resnet18(num_classes=4)
    optimiser = torch.optim.Adam(network.parameters(), 1e-3)
    for step in range(25):
        pictures, labels = crops(24, step)
        optimiser.zero_grad()
        loss = nn.functional.cross_entropy(network(as_tensor(pictures)), torch.from_numpy(labels))
        torch.autograd.backward(loss)
        optimiser.step()
    return network.eval().requires_grad_(False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--count", type=int, default=32)
    parser.add_argument("--json", type=Path, help="write the ratios to this file")
    options = parser.parse_args()
    torch.set_num_threads(1)
    network = trained()
    model = load(network, name="crops", size=SIDE, channels=3, mean=(0.0,) * 3, std=(1.0,) * 3)
    pictures, labels = crops(options.count, 1000)
    pixels, truth = as_tensor(pictures), torch.from_numpy(labels)
    wrapped = foolbox.PyTorchModel(network, bounds=(0, 1), device="cpu")
    ratios: dict[str, float] = {}
    for name in ("pgd.linf.0.5.40steps", "pgd.linf.2.40steps", "pgd.l2.0.5.40steps"):
        [attack] = attacks_named(name)
        radius, steps = attack.radius(SIDE, SIDE), attack.gradients
        kind = foolbox.attacks.LinfPGD if attack.norm == "linf" else foolbox.attacks.L2PGD
        peer = kind(steps=steps, rel_stepsize=attack.step, random_start=False)

        def ours(attack: object = attack, **how: bool) -> torch.Tensor:
            found = attacked(model, pictures, attack, labels, **how)
            return torch.from_numpy(found.transpose(0, 3, 1, 2).copy())

        def theirs(peer: object = peer, radius: float = radius) -> torch.Tensor:
            return peer(wrapped, pixels, truth, epsilons=radius)[1]

        calls: dict[str, Callable[[], torch.Tensor]] = {
            "foolbox": theirs,
            "shiftbed": ours,
            "shiftbed, every step": lambda ours=ours: ours(stop_early=False),
        }
        if importlib.util.find_spec("torchattacks"):
            import torchattacks

            kinds = {"linf": torchattacks.PGD, "l2": torchattacks.PGDL2}
            other = kinds[attack.norm](
                network, eps=radius, alpha=attack.step * radius, steps=steps, random_start=False
            )
            calls["torchattacks"] = lambda other=other: other(pixels, truth)
        times: dict[str, list[float]] = {one: [] for one in calls}
        rates: dict[str, float] = {}
        for _ in range(options.rounds):
            for one, call in calls.items():
                start = time.process_time()
                found = call()
                times[one].append(time.process_time() - start)
                rates[one] = float((network(found).argmax(1) != truth).float().mean())
        whole = statistics.median(times["foolbox"])
        print(f"{name}, {options.count} pictures of {SIDE} px")
        for one, sample in times.items():
            spent = statistics.median(sample)
            error = math.sqrt(rates[one] * (1 - rates[one]) / options.count)
            print(
                f"  {one:24}{spent:8.2f} s{whole / spent:7.2f} x   "
                f"fooled {rates[one]:.3f} +- {error:.3f}",
                flush=True,
            )
        ratios[name] = whole / statistics.median(times["shiftbed"])
    write(options.json, ratios)


if __name__ == "__main__":
    main()
