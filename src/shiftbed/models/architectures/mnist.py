"""The small networks of the MNIST-C paper."""

from __future__ import annotations

from torch import nn

__all__ = ["conv1", "conv2"]


def conv1(*, outputs: int, channels: int = 1) -> nn.Module:
    """Two convolutions of 20 and 50 channels, then 500 hidden units: LeNet as libraries teach it.

    >>> sum(one.numel() for one in conv1(outputs=10).parameters())
    431080
    """
    return _convolutional(channels, outputs, (20, 50), 500, padding=0, side=4)


def conv2(*, outputs: int, channels: int = 1) -> nn.Module:
    """Convolutions of 32 and 64 channels, then 1,024 units, as Madry et al. train against PGD."""
    return _convolutional(channels, outputs, (32, 64), 1024, padding=2, side=7)


def _convolutional(
    channels: int, outputs: int, widths: tuple[int, int], hidden: int, *, padding: int, side: int
) -> nn.Module:
    first, second = widths
    return nn.Sequential(
        nn.Conv2d(channels, first, 5, padding=padding),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(first, second, 5, padding=padding),
        nn.ReLU(),
        nn.MaxPool2d(2),
        # Nothing to do at 28 px, for which these networks were made.
        nn.AdaptiveAvgPool2d(side),
        nn.Flatten(),
        nn.Linear(second * side * side, hidden),
        nn.ReLU(),
        nn.Linear(hidden, outputs),
    )
