"""Occlusion: what is drawn over a picture."""

from __future__ import annotations

import itertools
import math

import numpy as np

from shiftbed.corruptions._filters import to_mnist_level, unit
from shiftbed.corruptions._jit import Array
from shiftbed.corruptions._random import Draws
from shiftbed.corruptions._registry import corruption

_SIDE = 28  # MNIST's; on larger pictures, the drawings grow with them
_REACH = 2.3


def _stroke(shape: tuple[int, ...], start: tuple[float, float], end: tuple[float, float]) -> Array:
    """Return the brightness of a soft straight line between two points (column, row)."""
    height, width = shape[:2]
    (first, top), (last, bottom) = start, end
    if first == last:
        return np.zeros((height, width))
    slope = (bottom - top) / (last - first)
    columns, rows = np.arange(width, dtype=float), np.arange(height, dtype=float)[:, None]
    distance = np.clip(np.abs(rows - (slope * (columns - first) + top)), 0, _REACH - 1e-10)
    light: Array = np.clip(np.log(1 - distance / _REACH) + 1, 0, 1)
    light[:, : math.floor(first)] = 0
    light[:, math.ceil(last) :] = 0
    return light


def _draw(picture: Array, light: Array) -> Array:
    return to_mnist_level(unit(picture) + light[..., None])


def _span(side: int, place: int) -> int:
    """Return a place along MNIST's 28 pixels as one along ``side``."""
    return place * side // _SIDE if side != _SIDE else place


@corruption({"mnist-c": ()})
def line(picture: Array, rng: Draws) -> Array:
    """Draw a soft line from the left to the right."""
    height, width, _ = picture.shape
    first = rng.randint(0, max(_span(width, 5), 1), 1)[0]
    start = _span(width, 22)
    last = rng.randint(start, max(_span(width, 27), start + 1), 1)[0]
    top, bottom = rng.randint(0, max(height - 1, 1), 2)
    return _draw(picture, _stroke(picture.shape, (first, top), (last, bottom)))


@corruption({"mnist-c": ()})
def dotted_line(picture: Array, rng: Draws) -> Array:
    """Draw a soft dotted line from side to side."""
    height, width, _ = picture.shape
    top, bottom = rng.randint(0, max(height - 1, 1), 2)
    light = _stroke(picture.shape, (0, top), (width - 1, bottom))
    light[:, np.arange(width) % 4 < 2] = 0
    return _draw(picture, light)


@corruption({"mnist-c": ()})
def zigzag(picture: Array, rng: Draws) -> Array:
    """Draw a soft zigzag from side to side."""
    height, width, _ = picture.shape
    length = amplitude = 2.0
    first, last = min(2, width - 1), max(width - 3, 0)
    top = rng.randint(0, max(height - 1, 1), 1)[0]
    bottom = top + rng.randint(-5, 5, 1)[0]
    if last <= first:
        return picture.copy()
    angle = np.arctan((bottom - top) / (last - first))
    total = (last - first) / np.cos(angle)
    points = [(0.0, 0.0)]
    for i in range(int((total - length) // (2 * length)) + 1):
        points.append(((2 * i + 1) * length, (-1) ** i * amplitude))
    whole = 2 * length * (total // (2 * length))
    if total != whole:
        points.append((total, points[-1][1] / (2 * (total - whole))))
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    corners = (turn @ np.array(points).T).T + np.array([first, top])
    image = unit(picture)
    for start, end in itertools.pairwise(corners):
        image = np.clip(image + _stroke(picture.shape, start, end)[..., None], 0, 1)
    return to_mnist_level(image)


@corruption({"mnist-c": ()}, random=False)
def stripe(picture: Array, rng: Draws) -> Array:
    """Invert the left and the right quarter, which leaves a stripe in the middle."""
    quarter = picture.shape[1] // 4
    out = picture.copy()
    out[:, :quarter] = 255 - picture[:, :quarter]
    out[:, picture.shape[1] - quarter :] = 255 - picture[:, picture.shape[1] - quarter :]
    return out
