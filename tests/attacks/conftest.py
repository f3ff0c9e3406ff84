from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from torch import nn

from shiftbed.models import Model, load


@dataclass(frozen=True)
class Digits:
    model: Model
    network: nn.Module
    pictures: np.ndarray
    labels: np.ndarray


@pytest.fixture(scope="session")
def digits() -> Digits:
    """A convolutional network trained on real digits of 8 px, and those that it has not seen."""
    held = load_digits()
    pictures = np.clip(held.images * 16, 0, 255).astype(np.uint8)[..., None]
    labels = held.target.astype(np.int64)
    order = np.random.default_rng(0).permutation(len(labels))
    train, test = order[:1200], order[1200:]
    pixels = torch.from_numpy(pictures[train].copy()).permute(0, 3, 1, 2).float().div(255)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(256, 10),
        )
        optimiser = torch.optim.Adam(network.parameters(), 0.01)
        for _ in range(60):
            optimiser.zero_grad()
            nn.functional.cross_entropy(network(pixels), torch.from_numpy(labels[train])).backward()
            optimiser.step()
    model = load(network, name="digits", size=8, channels=1)
    assert (model.logits(pictures[test]).argmax(1) == labels[test]).mean() > 0.93
    return Digits(model, network.eval(), pictures[test], labels[test])
