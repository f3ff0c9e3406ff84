"""Evaluate real models on real pictures, corrupted in memory: MNIST-C and ImageNet photographs.

Everything is fetched once with the clients of the package registries, and kept: a second run
needs no network. The results stay in a directory that the other commands read.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

import shiftbed as sb
from shiftbed.data import ImageSet, open_set
from shiftbed.evaluation import show
from shiftbed.models import Model, load
from shiftbed.run import sample

console = Console()

PRETRAINED = [
    "package:squeezenet1_1_keras",
    "package:efficientnet_lite0",
    "package:efficientnet_lite1",
    "package:efficientnet_lite2",
]
#: How many of the photographs that nobody labelled.
UNLABELLED = 5


def main(output: Path) -> None:
    """Train three small models and evaluate them, then four pretrained ones."""
    results = output / "results"
    with timed("fetching MNIST, 20 + 15 photographs and the pretrained models"):
        digits = open_set("mnist-train")
        for name in ("mnist-test", "imagenet-photos", "natural-photos"):
            open_set(name)
        for spec in PRETRAINED:
            load(spec)
    models = small_models(digits, output / "models")
    with timed("3 models x 15 corruptions of MNIST-C x 10,000 test digits"):
        run = sb.evaluate(models, "mnist-c", results=results, baseline=models[0])
    show(run, console)
    with timed(
        f"{len(PRETRAINED)} pretrained models x 15 corruptions x 5 severities x "
        f"20 labelled and {UNLABELLED} unlabelled photographs"
    ):
        few = sample(open_set("natural-photos"), UNLABELLED)
        photos = {"imagenet-photos": open_set("imagenet-photos"), "few-natural-photos": few}
        run = sb.evaluate(
            PRETRAINED,
            "imagenet-c",
            photos,
            results=results,
            baseline=PRETRAINED[0],
            backend="onnxruntime",
        )
    show(run, console)
    console.print(f"every prediction is in {results}: try")
    query = "select model, avg(confidence) from predictions where rank_true > 1 group by model"
    console.print(f'  shiftbed results sql "{query}" {results}', soft_wrap=True)


def small_models(digits: ImageSet, folder: Path) -> list[Model]:
    """Train, once, a logistic regression, a multilayer perceptron and a small CNN."""
    import torch

    folder.mkdir(parents=True, exist_ok=True)
    pixels = np.stack([digits.load(index) for index in range(len(digits))])
    assert digits.labels is not None
    labels = np.asarray(digits.labels)

    regression = folder / "logistic_regression.skops"
    if not regression.exists():
        with timed("training a logistic regression"):
            train_regression(pixels[::2], labels[::2], regression)
    models = [load(f"sklearn:{regression}")]
    for name, build, epochs in (("mlp", mlp, 3), ("cnn", cnn, 2)):
        torch.manual_seed(0)
        network, weights = build(), folder / f"{name}.pt"
        if not weights.exists():
            with timed(f"training a {name.upper()}"):
                train_network(network, pixels, labels, epochs)
                torch.save(network.state_dict(), weights)
        network.load_state_dict(torch.load(weights, weights_only=True))
        models.append(load(network, name=name, size=28, channels=1, classes=DIGITS))
    return models


DIGITS = tuple(str(digit) for digit in range(10))


def train_regression(pixels: Any, labels: Any, file: Path) -> None:
    import warnings

    from sklearn.linear_model import LogisticRegression
    from skops import io

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it need not converge to be a baseline
        estimator = LogisticRegression(max_iter=20)
        # The keys of its classes are the digits' names.
        estimator.fit(pixels.reshape(len(pixels), -1) / np.float32(255), labels.astype(str))
    io.dump(estimator, file)


def train_network(network: Any, pixels: Any, labels: Any, epochs: int) -> None:
    import torch

    torch.set_num_threads(1)  # so small a network only waits for a second one
    pictures = torch.from_numpy(pixels)[:, None].float() / 255
    truth = torch.from_numpy(labels)
    steps = epochs * (len(pictures) // 100)
    optimiser = torch.optim.AdamW(network.parameters(), lr=2e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, max_lr=4e-3, total_steps=steps)
    for _ in range(epochs):
        for chosen in torch.randperm(len(pictures)).split(100):
            optimiser.zero_grad()
            loss = torch.nn.functional.cross_entropy(network(pictures[chosen]), truth[chosen])
            loss.backward()
            optimiser.step()
            schedule.step()
    network.eval()


def mlp() -> Any:
    from torch import nn

    return nn.Sequential(nn.Flatten(), nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10))


def cnn() -> Any:
    from torch import nn

    return nn.Sequential(
        nn.Conv2d(1, 16, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(32 * 7 * 7, 10),
    )


class timed:  # noqa: N801 - reads as a verb
    """Say what is being done, and how long it took."""

    def __init__(self, what: str) -> None:
        self.what = what

    def __enter__(self) -> None:
        self.begun = time.perf_counter()
        console.print(f"[bold]{self.what}[/] ...")

    def __exit__(self, *problem: object) -> None:
        console.print(f"[dim]{time.perf_counter() - self.begun:.0f} s[/]\n")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo"))
