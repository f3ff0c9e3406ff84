"""Residual and dense networks of three stages, as they are built for CIFAR's 32 px."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional

__all__ = ["densenet", "resnet", "resnext", "shakeshake"]

_Branch = Callable[[int, int, int], nn.Module]


def resnet(
    depth: int = 20, width: int = 16, stride: int = 1, *, outputs: int, channels: int = 3
) -> nn.Module:
    """He et al.'s ResNet for CIFAR-10: ``depth`` is 6n + 2, ``width`` that of the first stage.

    Where a stage begins, the shortcut is a convolution (their option B).
    """

    def branch(inside: int, out: int, stride: int) -> nn.Module:
        return nn.Sequential(
            *_convolution(inside, out, 3, stride), nn.ReLU(), *_convolution(out, out, 3)
        )

    return _residual((depth - 2) // 6, width, stride, 1, branch, channels, outputs)


def resnext(
    depth: int = 29,
    groups: int = 8,
    width: int = 32,
    stride: int = 1,
    *,
    outputs: int,
    channels: int = 3,
) -> nn.Module:
    """Xie et al.'s ResNeXt for CIFAR-10: ``depth`` is 9n + 2, ``width`` that of each group."""
    stage, branch = groups * width, _bottleneck(groups)
    return _residual((depth - 2) // 9, stage, stride, 1, branch, channels, outputs)


def shakeshake(
    depth: int = 29,
    groups: int = 4,
    width: int = 32,
    stride: int = 1,
    *,
    outputs: int,
    channels: int = 3,
) -> nn.Module:
    """A ResNeXt of two branches a block, which are mixed at random in training (Gastaldi)."""
    stage, branch = groups * width, _bottleneck(groups)
    return _residual((depth - 2) // 9, stage, stride, 2, branch, channels, outputs)


def _bottleneck(groups: int) -> _Branch:
    def branch(inside: int, out: int, stride: int) -> nn.Module:
        # A stage's output is as wide as its groups together: small, so that CPUs can train it.
        return nn.Sequential(
            *_convolution(inside, out, 1),
            nn.ReLU(),
            *_convolution(out, out, 3, stride, groups),
            nn.ReLU(),
            *_convolution(out, out, 1),
        )

    return branch


def _convolution(
    inside: int, out: int, side: int, stride: int = 1, groups: int = 1
) -> tuple[nn.Module, nn.Module]:
    convolution = nn.Conv2d(inside, out, side, stride, side // 2, groups=groups, bias=False)
    return convolution, nn.BatchNorm2d(out)


class _Block(nn.Module):
    """A sum of what came in and of one branch, or of a random mixture of two."""

    def __init__(self, branches: list[nn.Module], shortcut: nn.Module) -> None:
        super().__init__()
        self.branches = nn.ModuleList(branches)
        self.shortcut = shortcut

    def forward(self, seen: torch.Tensor) -> torch.Tensor:
        found = [branch(seen) for branch in self.branches]
        added = found[0] if len(found) == 1 else self._mixed(*found)
        return functional.relu(self.shortcut(seen) + added)

    def _mixed(self, one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        if not self.training:
            return (one + other) / 2
        draws = torch.rand(2, len(one), 1, 1, 1, device=one.device, dtype=one.dtype)
        forward, backward = draws.unbind()
        # The value is mixed by one draw, and the gradient by another.
        mixed = torch.lerp(other, one, backward)
        return mixed + ((forward - backward) * (one - other)).detach()


def _residual(
    blocks: int,
    stage: int,
    first: int,
    branches: int,
    branch: _Branch,
    channels: int,
    outputs: int,
) -> nn.Module:
    layers: list[nn.Module] = [*_convolution(channels, stage, 3, first), nn.ReLU()]
    inside = stage
    for number in range(3):
        out = stage * 2**number
        for place in range(blocks):
            stride = 2 if number and not place else 1
            same = inside == out and stride == 1
            shortcut = (
                nn.Identity() if same else nn.Sequential(*_convolution(inside, out, 1, stride))
            )
            layers.append(_Block([branch(inside, out, stride) for _ in range(branches)], shortcut))
            inside = out
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inside, outputs)]
    return _initialised(nn.Sequential(*layers))


class _Dense(nn.Module):
    """What came in, and beside it the new channels made from it."""

    def __init__(self, inside: int, growth: int) -> None:
        super().__init__()
        self.grow = nn.Sequential(
            nn.BatchNorm2d(inside), nn.ReLU(), nn.Conv2d(inside, growth, 3, padding=1, bias=False)
        )

    def forward(self, seen: torch.Tensor) -> torch.Tensor:
        return torch.cat([seen, self.grow(seen)], dim=1)


def densenet(depth: int = 40, growth: int = 12, *, outputs: int, channels: int = 3) -> nn.Module:
    """Huang et al.'s DenseNet for CIFAR-10: ``depth`` is 3n + 4, ``growth`` the rate k."""
    inside = 2 * growth
    layers: list[nn.Module] = [nn.Conv2d(channels, inside, 3, padding=1, bias=False)]
    for number in range(3):
        for _ in range((depth - 4) // 3):
            layers.append(_Dense(inside, growth))
            inside += growth
        layers += [nn.BatchNorm2d(inside), nn.ReLU()]
        if number < 2:
            layers += [nn.Conv2d(inside, inside, 1, bias=False), nn.AvgPool2d(2)]
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inside, outputs)]
    return _initialised(nn.Sequential(*layers))


def _initialised(network: nn.Module) -> nn.Module:
    for layer in network.modules():
        if isinstance(layer, nn.Conv2d):
            nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
    return network
