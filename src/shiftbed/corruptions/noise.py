"""Noise: what a sensor adds, or an adversary who never sees the picture."""

from __future__ import annotations

import functools
import math
from pathlib import Path
from typing import Any

import numpy as np

from shiftbed.corruptions._filters import UNIT, to_level
from shiftbed.corruptions._jit import Array, kernel
from shiftbed.corruptions._random import Draws, Stream
from shiftbed.corruptions._registry import corruption
from shiftbed.corruptions.pessimal import PESSIMAL_NORM, load_matrix

_GREY = to_level(UNIT)


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
        chance, level, alias = _poisson_tables(photons)
        _count(picture.reshape(-1), rng.words(picture.size), chance, level, alias, out.reshape(-1))
    else:
        counts = rng.poisson(UNIT[picture] * photons)
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
        _salt(picture.reshape(-1), rng.words(picture.size), threshold, _GREY, out.reshape(-1))
        return out
    flipped = rng.random_sample(picture.shape) < np.cumsum([amount, 1 - amount])[0]
    salted = rng.random_sample(picture.shape) < 0.5
    np.take(_GREY, picture, out=out)
    out[flipped] = salted[flipped] * np.uint8(255)
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
    return to_level(UNIT[picture] + tiled)


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
def _salt(picture: Array, words: Array, threshold: Any, grey: Array, out: Array) -> None:
    for i in range(picture.size):
        word = words[i]
        if (word >> np.uint32(1)) < threshold:
            out[i] = 255 if word & np.uint32(1) else 0
        else:
            out[i] = grey[picture[i]]


@functools.lru_cache(maxsize=32)
def _poisson_tables(photons: int) -> tuple[Array, Array, Array]:
    """Return Walker's alias tables for the 256 rates that a grey level can have.

    Counts of ``photons`` and more are one outcome, white.
    """
    columns = 1 << photons.bit_length()
    chance = np.empty((256, columns), np.uint32)
    alias = np.empty((256, columns), np.uint8)
    level = np.full(columns, 255, np.uint8)
    level[:photons] = to_level(np.arange(photons) / photons)
    bits = 32 - columns.bit_length() + 1
    _make_aliases(UNIT * photons, photons, level, float(1 << bits), chance, alias)
    return chance, level, alias


@kernel
def _make_aliases(
    rates: Array, last: int, level: Array, one: float, chance: Array, alias: Array
) -> None:
    columns = level.size
    mass = np.empty(columns, np.float64)
    small = np.empty(columns, np.int64)
    large = np.empty(columns, np.int64)
    for row in range(rates.size):
        rate = rates[row]
        mass[:] = 0.0
        below = 0.0
        for count in range(last):
            if rate > 0.0:
                mass[count] = math.exp(count * math.log(rate) - rate - math.lgamma(count + 1.0))
            elif count == 0:
                mass[count] = 1.0
            below += mass[count]
        mass[last] = max(0.0, 1.0 - below)
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
            chance[row, less] = np.uint32(min(mass[less] * one, one - 1.0))
            alias[row, less] = level[more]
            mass[more] -= 1.0 - mass[less]
            if mass[more] < 1.0:
                larges -= 1
                small[smalls] = more
                smalls += 1
        for left in range(smalls + larges):  # whole columns, up to rounding
            column = small[left] if left < smalls else large[left - smalls]
            chance[row, column] = np.uint32(0)
            alias[row, column] = level[column]


@kernel
def _count(
    picture: Array, words: Array, chance: Array, level: Array, alias: Array, out: Array
) -> None:
    columns = level.size
    bits = np.uint32(0)
    while (1 << bits) < columns:
        bits += np.uint32(1)
    mask = np.uint32(columns - 1)
    for i in range(picture.size):
        rate = picture[i]
        column = words[i] & mask
        keep = (words[i] >> bits) < chance[rate, column]
        out[i] = level[column] if keep else alias[rate, column]
