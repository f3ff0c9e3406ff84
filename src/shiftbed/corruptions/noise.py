"""Noise: what a sensor adds, or an adversary who never sees the picture."""

from __future__ import annotations

import functools
import math
from pathlib import Path
from typing import Any

import numpy as np

from shiftbed.corruptions._filters import UNIT, to_level, to_mnist_level, unit
from shiftbed.corruptions._jit import Array, kernel
from shiftbed.corruptions._random import Draws, Stream, legacy
from shiftbed.corruptions._registry import corruption
from shiftbed.corruptions.pessimal import PESSIMAL_NORM, load_matrix


@corruption(
    {
        "imagenet-c": (0.08, 0.12, 0.18, 0.26, 0.38),
        "imagenet-299": (0.09, 0.13, 0.19, 0.27, 0.40),
        "tiny-imagenet-c": (0.04, 0.08, 0.12, 0.15, 0.18),
        "cifar-c": (0.04, 0.06, 0.08, 0.09, 0.10),
        "mnist-c": (0.08, 0.12, 0.18, 0.26, 0.38),
    },
    standard={"mnist-c": 5},
)
def gaussian_noise(picture: Array, rng: Draws, scale: float) -> Array:
    """Add normal noise."""
    noise = rng.normal(0.0, scale, picture.shape)
    out = np.empty_like(picture)
    _add(picture.reshape(-1), noise.reshape(-1), noise.dtype.type(255), out.reshape(-1))
    return out


@corruption(
    {
        "imagenet-c": (0.15, 0.2, 0.35, 0.45, 0.6),
        "imagenet-299": (0.16, 0.21, 0.36, 0.46, 0.61),
        "tiny-imagenet-c": (0.15, 0.2, 0.25, 0.3, 0.35),
        "cifar-c": (0.06, 0.1, 0.12, 0.16, 0.2),
        "mnist-c": (0.15, 0.2, 0.35, 0.45, 0.6),
    },
    standard={"mnist-c": 5},
)
def speckle_noise(picture: Array, rng: Draws, scale: float) -> Array:
    """Add normal noise in proportion to the brightness."""
    noise = rng.normal(0.0, scale, picture.shape)
    out = np.empty_like(picture)
    _add_scaled(picture.reshape(-1), noise.reshape(-1), noise.dtype.type(255), out.reshape(-1))
    return out


@corruption(
    {
        "imagenet-c": (60, 25, 12, 5, 3),
        "imagenet-299": (50, 20, 10, 5, 3),
        "tiny-imagenet-c": (250, 100, 50, 30, 15),
        "cifar-c": (500, 250, 100, 75, 50),
        "mnist-c": (60, 25, 12, 5, 3),
    },
    standard={"mnist-c": 5},
)
def shot_noise(picture: Array, rng: Draws, photons: int) -> Array:
    """Count photons: Poisson noise, where white is a mean of ``photons``."""
    out = np.empty_like(picture)
    if isinstance(rng, Stream):
        table, level = _poisson_tables(photons)
        _count(picture.reshape(-1), rng.words(picture.size), table, level, out.reshape(-1))
    else:
        counts = legacy(rng).poisson(unit(picture) * photons)
        np.take(to_level(np.arange(counts.max() + 1) / photons), counts, out=out)
    return out


@corruption(
    {
        "imagenet-c": (0.03, 0.06, 0.09, 0.17, 0.27),
        "imagenet-299": (0.04, 0.07, 0.10, 0.18, 0.28),
        "tiny-imagenet-c": (0.01, 0.02, 0.05, 0.08, 0.14),
        "cifar-c": (0.01, 0.02, 0.03, 0.05, 0.07),
        "mnist-c": (0.03, 0.06, 0.09, 0.17, 0.27),
    },
    standard={"mnist-c": 4},
)
def impulse_noise(picture: Array, rng: Draws, amount: float) -> Array:
    """Set values to black or white at random: salt and pepper."""
    out = np.empty_like(picture)
    if isinstance(rng, Stream):
        threshold = np.uint32(round(amount * 2**31))
        _salt(picture.reshape(-1), rng.words(picture.size), threshold, out.reshape(-1))
    else:
        flip, salt = rng.random_sample(picture.size), rng.random_sample(picture.size)
        _salt_drawn(
            picture.reshape(-1), flip, salt, amount / (amount + (1 - amount)), out.reshape(-1)
        )
    return out


@corruption({"mnist-c": ((),)}, standard={"mnist-c": 1})
def pessimal_noise(
    picture: Array, rng: Draws, *, matrix: Array | str | Path | None = None
) -> Array:
    """Add normal noise of the covariance that hurts one model most, tiled two by two.

    ``matrix`` is that of :func:`shiftbed.corruptions.pessimal.train`, or a ``.npy`` file of
    it. Its side is the number of pixels of a tile: 196 for the 14 x 14 of MNIST-C. Larger
    pictures get more tiles.
    """
    transform = load_matrix(matrix)
    side = math.isqrt(len(transform))
    noise = rng.normal(0.0, 1.0, len(transform)) @ transform
    tile = (noise / np.linalg.norm(noise) * PESSIMAL_NORM / 4).reshape(side, side)
    height, width, _ = picture.shape
    tiled = np.tile(tile, (-(-height // side), -(-width // side)))[:height, :width, None]
    return to_mnist_level(unit(picture) + tiled)


# ---------------------------------------------------------------- kernels


@kernel
def _add(picture: Array, noise: Array, white: Any, out: Array) -> None:
    for i in range(picture.size):
        value = picture[i] / white + noise[i]
        out[i] = np.uint8(np.int32(min(max(value, white * 0), white / white) * white))


@kernel
def _add_scaled(picture: Array, noise: Array, white: Any, out: Array) -> None:
    for i in range(picture.size):
        value = picture[i] / white
        value += value * noise[i]
        out[i] = np.uint8(np.int32(min(max(value, white * 0), white / white) * white))


@kernel
def _salt(picture: Array, words: Array, threshold: Any, out: Array) -> None:
    for i in range(picture.size):
        white = np.uint8(0) - np.uint8(words[i] & np.uint32(1))
        out[i] = white if (words[i] >> np.uint32(1)) < threshold else picture[i]


@kernel
def _salt_drawn(picture: Array, flip: Array, salt: Array, amount: float, out: Array) -> None:
    for i in range(picture.size):
        white = np.uint8(255) if salt[i] < 0.5 else np.uint8(0)
        out[i] = white if flip[i] < amount else picture[i]


_CHANCE_BITS = 23


@functools.lru_cache(maxsize=32)
def _poisson_tables(photons: int) -> tuple[Array, Array]:
    """Return Walker's alias tables for the 256 rates that a grey level can have.

    Counts of ``photons`` and more are one outcome, white. An entry holds the chance of its
    column's own outcome, above the level of the other outcome in the low 8 bits.
    """
    columns = 1 << photons.bit_length()
    level = np.full(columns, 255, np.uint8)
    level[:photons] = to_level(np.arange(photons) / photons)
    table = np.empty((256, columns), np.uint32)
    _make_aliases(UNIT * photons, photons, level, 1 << _CHANCE_BITS, table)
    return table, level


@kernel
def _make_aliases(rates: Array, last: int, level: Array, one: int, table: Array) -> None:
    columns = level.size
    mass = np.empty(columns)
    small = np.empty(columns, np.int64)
    large = np.empty(columns, np.int64)
    for row in range(rates.size):
        rate = rates[row]
        mass[:] = 0.0
        mass[0] = math.exp(-rate)
        for count in range(1, last):
            if rate > 0.0:
                mass[count] = math.exp(count * math.log(rate) - rate - math.lgamma(count + 1.0))
        mass[last] = max(0.0, 1.0 - mass.sum())
        mass *= columns / mass.sum()
        smalls = larges = 0
        for column in range(columns):
            if mass[column] < 1.0:
                small[smalls] = column
                smalls += 1
            else:
                large[larges] = column
                larges += 1
        while smalls and larges:
            smalls -= 1
            less, more = small[smalls], large[larges - 1]
            chance = np.uint32(min(mass[less] * one, one - 1.0))
            table[row, less] = (chance << np.uint32(8)) | level[more]
            mass[more] -= 1.0 - mass[less]
            if mass[more] < 1.0:
                larges -= 1
                small[smalls] = more
                smalls += 1
        for left in range(smalls + larges):  # whole columns, up to rounding
            column = small[left] if left < smalls else large[left - smalls]
            table[row, column] = level[column]


@kernel
def _count(picture: Array, words: Array, table: Array, level: Array, out: Array) -> None:
    mask = np.uint32(level.size - 1)
    for i in range(picture.size):
        column = words[i] & mask
        entry = table[picture[i], column]
        own = (words[i] >> np.uint32(32 - _CHANCE_BITS)) < (entry >> np.uint32(8))
        # Chosen by arithmetic: a branch on random bits would be mispredicted half the time.
        one, other = np.uint32(level[column]), entry & np.uint32(255)
        chosen = other ^ ((one ^ other) & (np.uint32(0) - np.uint32(own)))
        out[i] = np.uint8(chosen)
