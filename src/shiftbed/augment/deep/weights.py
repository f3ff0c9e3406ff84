"""What DeepAugment does to a network's weights: a small function each, in one table.

Each takes a convolution's filters (outputs, inputs, height, width), its biases (outputs,) and
the draws, and returns new ones.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch.nn import functional

__all__ = ["WEIGHT_DISTORTIONS", "distorted_weights"]

Filters = tuple[torch.Tensor, torch.Tensor]
Distortion = Callable[[torch.Tensor, torch.Tensor, np.random.Generator], Filters]

WEIGHT_DISTORTIONS: dict[str, Distortion] = {}


def weight_distortion(function: Distortion) -> Distortion:
    """Add a distortion of weights to those that are drawn from."""
    WEIGHT_DISTORTIONS[function.__name__] = function
    return function


def _uniform(rng: np.random.Generator, shape: tuple[int, ...] | torch.Size) -> torch.Tensor:
    return torch.from_numpy(rng.random(tuple(shape), np.float32))


def _convolved(weight: torch.Tensor, kernel: torch.Tensor) -> torch.Tensor:
    """Return filters that are themselves convolved, as pictures of as many channels."""
    return functional.conv2d(weight, kernel, padding=1)


@weight_distortion
def negate(weight: torch.Tensor, bias: torch.Tensor, rng: np.random.Generator) -> Filters:
    """Turn the sign of every weight and bias."""
    return -weight, -bias


@weight_distortion
def zero(weight: torch.Tensor, bias: torch.Tensor, rng: np.random.Generator) -> Filters:
    """Make every weight and bias 0."""
    return torch.zeros_like(weight), torch.zeros_like(bias)


@weight_distortion
def flip(weight: torch.Tensor, bias: torch.Tensor, rng: np.random.Generator) -> Filters:
    """Put the filters in the opposite order."""
    return weight.flip(0), bias.flip(0)


@weight_distortion
def mirror(weight: torch.Tensor, bias: torch.Tensor, rng: np.random.Generator) -> Filters:
    """Mirror each filter, left to right or upside down."""
    return weight.flip(int(rng.integers(2, 4))), bias


@weight_distortion
def transpose(weight: torch.Tensor, bias: torch.Tensor, rng: np.random.Generator) -> Filters:
    """Swap each filter's rows and columns, or inputs and outputs where there are as many."""
    if weight.shape[0] == weight.shape[1] and rng.random() < 0.5:
        return weight.transpose(0, 1), bias
    return weight.transpose(2, 3), bias


@weight_distortion
def rotate(weight: torch.Tensor, bias: torch.Tensor, rng: np.random.Generator) -> Filters:
    """Turn each filter by a quarter, a half or three quarters."""
    return torch.rot90(weight, int(rng.integers(1, 4)), (2, 3)), bias


@weight_distortion
def activate(weight: torch.Tensor, bias: torch.Tensor, rng: np.random.Generator) -> Filters:
    """Send the weights through an activation function, and turn their sign."""
    return -functional.gelu(weight), -functional.gelu(bias)


@weight_distortion
def outline(weight: torch.Tensor, bias: torch.Tensor, rng: np.random.Generator) -> Filters:
    """Weight each filter's middle against its neighbours, as edge detectors do."""
    height, width = weight.shape[2:]
    diagonal = rng.random() < 0.5
    mask = torch.full((height, width), -1.0 if diagonal else 0.0)
    middle = height // 2, width // 2
    if not diagonal:
        mask[middle[0]] = 1.0
        mask[:, middle[1]] = 1.0
    mask[middle] = 8.0 if diagonal else -4.0
    return _as_strong(weight * mask, weight), bias


@weight_distortion
def shift(weight: torch.Tensor, bias: torch.Tensor, rng: np.random.Generator) -> Filters:
    """Convolve the filters with single steps, each input's in a direction and sign of its own."""
    inputs = weight.shape[1]
    kernel = torch.zeros(inputs, inputs, 3, 3)
    rows, columns = rng.integers(0, 3, (2, inputs))
    signs = torch.from_numpy(rng.choice(np.array([-1, 1], np.float32), inputs))
    every = np.arange(inputs)
    kernel[every, every, rows, columns] = signs
    return _convolved(weight, kernel), bias


@weight_distortion
def convolve(weight: torch.Tensor, bias: torch.Tensor, rng: np.random.Generator) -> Filters:
    """Convolve the filters with noise."""
    inputs = weight.shape[1]
    kernel = _uniform(rng, (inputs, inputs, 3, 3)) * (2 * float(rng.random())) - 1
    return _as_strong(_convolved(weight, kernel), weight), bias


@weight_distortion
def average(weight: torch.Tensor, bias: torch.Tensor, rng: np.random.Generator) -> Filters:
    """Convolve the filters with random averages, each nearly a single step."""
    inputs = weight.shape[1]
    drawn = rng.dirichlet([0.1] * 9, (inputs, inputs)).astype(np.float32)
    kernel = torch.from_numpy(drawn).view(inputs, inputs, 3, 3)
    return _as_strong(_convolved(weight, kernel), weight), bias


@weight_distortion
def add_noise(weight: torch.Tensor, bias: torch.Tensor, rng: np.random.Generator) -> Filters:
    """Add uniform noise, up to twice as strong as the weights."""
    strength = 2 * float(rng.random()) * float(weight.std()) * 12**0.5
    return weight + (_uniform(rng, weight.shape) - 0.5) * strength, bias


@weight_distortion
def multiply_noise(weight: torch.Tensor, bias: torch.Tensor, rng: np.random.Generator) -> Filters:
    """Multiply each weight by a factor of its own, from 1 to at most 5."""
    return weight * (1 + 4 * float(rng.random()) * _uniform(rng, weight.shape)), bias


@weight_distortion
def negate_some(weight: torch.Tensor, bias: torch.Tensor, rng: np.random.Generator) -> Filters:
    """Turn the sign of half of the weights."""
    return weight * (2 * _uniform(rng, weight.shape).round() - 1), bias


@weight_distortion
def zero_some(weight: torch.Tensor, bias: torch.Tensor, rng: np.random.Generator) -> Filters:
    """Make half of the weights 0."""
    return weight * _uniform(rng, weight.shape).round(), bias


@weight_distortion
def negate_filters(weight: torch.Tensor, bias: torch.Tensor, rng: np.random.Generator) -> Filters:
    """Turn the sign of some filters, a fifth to a half of them."""
    luck = _uniform(rng, (len(weight),))
    turned = luck <= max(float(rng.uniform(0.2, 0.5)), float(luck.min()))
    return torch.where(turned.view(-1, 1, 1, 1), -weight, weight), bias


@weight_distortion
def keep_largest(weight: torch.Tensor, bias: torch.Tensor, rng: np.random.Generator) -> Filters:
    """Keep the largest weight of each filter's part for an input, and no other."""
    flat = weight.flatten(2)
    places = flat.argmax(2, keepdim=True)
    kept = torch.zeros_like(flat).scatter(2, places, flat.gather(2, places))
    return kept.view_as(weight), bias


def _as_strong(changed: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Return changed filters, made as large as they were: what is louder only saturates."""
    norm = torch.linalg.vector_norm
    as_strong: torch.Tensor = changed * (norm(weight) / norm(changed).clamp_min(1e-12))
    return as_strong


def distorted_weights(
    weights: dict[str, torch.Tensor],
    layers: dict[str, float],
    distortions: int,
    rng: np.random.Generator,
) -> dict[str, torch.Tensor]:
    """Return weights with some layers distorted, each in a share of its filters.

    Between one and ``distortions`` distortions are drawn, one after the other.
    """
    changed = dict(weights)
    names, kinds = list(layers), list(WEIGHT_DISTORTIONS.values())
    for _ in range(int(rng.integers(1, distortions + 1))):
        name = names[int(rng.integers(len(names)))]
        distort = kinds[int(rng.integers(len(kinds)))]
        weight, bias = changed[f"{name}.weight"], changed[f"{name}.bias"]
        new_weight, new_bias = distort(weight, bias, rng)
        count = max(1, round(layers[name] * len(weight)))
        chosen = torch.from_numpy(rng.permutation(len(weight)) < count)
        changed[f"{name}.weight"] = torch.where(chosen.view(-1, 1, 1, 1), new_weight, weight)
        changed[f"{name}.bias"] = torch.where(chosen, new_bias, bias)
    return changed
