"""Canny's edge detector, as scikit-image has it."""

from __future__ import annotations

import math

import numpy as np

from shiftbed.corruptions import _filters
from shiftbed.corruptions._jit import Array, kernel


def canny(image: Array, *, low: float = 0.1, high: float = 0.2) -> Array:
    """Return where a floating-point (H, W) image has edges, smoothed with a sigma of 1.

    >>> step = np.repeat([[0.0] * 4 + [1.0] * 4], 8, axis=0)
    >>> canny(step).any(axis=0).nonzero()[0].tolist()
    [3, 4]
    """
    weights = _filters.gaussian_weights(1.0, 4.0)
    # As if all were black outside; then make up for the loss at the border.
    smooth, gain = _smooth_inside(image, weights), _smooth_inside(np.ones_like(image), weights)
    edges = np.zeros(image.shape, np.uint8)
    _trace(smooth / (gain + np.finfo(float).eps), low, high, edges)
    return edges


@kernel
def _smooth_inside(image: Array, weights: Array) -> Array:
    height, width = image.shape
    reach = weights.size - 1
    padded = np.zeros((height + 2 * reach, width + 2 * reach))
    padded[reach : reach + height, reach : reach + width] = image
    columns = padded[reach : reach + height] * weights[0]
    for step in range(reach, 0, -1):
        above, below = padded[reach - step :], padded[reach + step :]
        columns += (above[:height] + below[:height]) * weights[step]
    out: Array = columns[:, reach : reach + width] * weights[0]
    for step in range(reach, 0, -1):
        left, right = columns[:, reach - step :], columns[:, reach + step :]
        out += (left[:, :width] + right[:, :width]) * weights[step]
    return out


@kernel
def _trace(smooth: Array, low: float, high: float, edges: Array) -> None:
    """Find the ridges of the gradient, and keep those that a strong one is part of."""
    height, width = smooth.shape
    down = np.empty((height, width))
    right = np.empty((height, width))
    size = np.empty((height, width))
    for y in range(height):
        above, below = max(y - 1, 0), min(y + 1, height - 1)
        for x in range(width):
            before, after = max(x - 1, 0), min(x + 1, width - 1)
            down[y, x] = 2 * (smooth[below, x] - smooth[above, x]) + (
                (smooth[below, before] - smooth[above, before])
                + (smooth[below, after] - smooth[above, after])
            )
            right[y, x] = 2 * (smooth[y, after] - smooth[y, before]) + (
                (smooth[above, after] - smooth[above, before])
                + (smooth[below, after] - smooth[below, before])
            )
            size[y, x] = math.hypot(down[y, x], right[y, x])
    weak = np.zeros((height, width), np.uint8)
    stack = np.empty((height * width, 2), np.int64)
    waiting = 0
    for y in range(1, height - 1):
        for x in range(1, width - 1):
            here = size[y, x]
            if here < low or here == 0.0:
                continue
            i, j = down[y, x], right[y, x]
            steep, flat = abs(i), abs(j)
            # The straight neighbour along the gradient, and the diagonal one beside it. Where
            # both directions fit, the later of scikit-image's four sectors counts.
            falling = (i <= 0 and j >= 0) or (i >= 0 and j <= 0)
            side = -1 if falling else 1
            if steep > flat or (steep == flat and falling):
                share = flat / steep
                ahead = size[y + 1, x + side] * share + size[y + 1, x] * (1 - share)
                behind = size[y - 1, x - side] * share + size[y - 1, x] * (1 - share)
            else:
                share = steep / flat
                ahead = size[y + side, x + 1] * share + size[y, x + 1] * (1 - share)
                behind = size[y - side, x - 1] * share + size[y, x - 1] * (1 - share)
            if ahead <= here and behind <= here:
                weak[y, x] = 1
                if here >= high:
                    edges[y, x] = 1
                    stack[waiting] = (y, x)
                    waiting += 1
    while waiting:
        waiting -= 1
        y, x = stack[waiting]
        for near_y in range(y - 1, y + 2):
            for near_x in range(x - 1, x + 2):
                if weak[near_y, near_x] and not edges[near_y, near_x]:
                    edges[near_y, near_x] = 1
                    stack[waiting] = (near_y, near_x)
                    waiting += 1
