"""The filters that several corruptions are made of.

The published pixels are floats truncated to whole grey levels, so that a difference in the
last bit of a float can show: a flat area can fall by a whole level. These kernels therefore
keep the order of the operations of the libraries that the benchmarks were made with, where
the result is next to a whole level, and are free in all else.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from shiftbed.corruptions._jit import Array, kernel

#: The grey levels in 0..1, as the published code scales them, in double and single precision.
UNIT = np.arange(256) / 255.0
UNIT32 = UNIT.astype(np.float32)


def unit(picture: Array, dtype: DTypeLike = np.float64, *, out: Array | None = None) -> Array:
    """Return a picture in 0..1, in a new array or in ``out``.

    >>> unit(np.array([0, 51, 255], np.uint8)).tolist()
    [0.0, 0.2, 1.0]
    """
    if out is None:
        out = np.empty(picture.shape, dtype)
    _scale(picture.reshape(-1), out.reshape(-1))
    return out


def to_level(value: Array) -> Array:
    """Return values of 0..1 as grey levels, truncated as the published code does.

    >>> to_level(np.array([-0.1, 0.999, 1.5])).tolist()
    [0, 254, 255]
    """
    out = np.empty(value.shape, np.uint8)
    _truncate(value.reshape(-1), out.reshape(-1))
    return out


def to_mnist_level(value: Array) -> Array:
    """Return values of 0..1 as grey levels; MNIST-C's code rounds to single precision first."""
    level: Array = (np.clip(value, 0, 1) * 255).astype(np.float32).astype(np.uint8)
    return level


@kernel
def _scale(picture: Array, out: Array) -> None:
    for i in range(picture.size):
        out[i] = picture[i] / 255.0


@kernel
def _truncate(value: Array, out: Array) -> None:
    white = value.dtype.type(255)
    for i in range(value.size):
        out[i] = np.uint8(np.int32(min(max(value[i], white * 0), white / white) * white))


# ---------------------------------------------------------------- Gaussian smoothing


@functools.cache
def gaussian_weights(sigma: float, truncate: float) -> Array:
    """Return the weights of distances 0, 1, ... of a truncated, normalised Gaussian."""
    radius = int(truncate * sigma + 0.5)
    scale = -0.5 / (sigma * sigma)
    weights = [math.exp((scale * i) * i) for i in range(-radius, radius + 1)]
    one_side: Array = np.asarray(weights[radius:]) / np.asarray(weights).sum()
    return one_side


def gaussian(
    image: Array,
    sigma: float,
    *,
    truncate: float = 4.0,
    axes: tuple[int, ...] = (0, 1),
    mirror: bool = False,
    out: Array | None = None,
) -> Array:
    """Smooth a floating-point (H, W, C) image along its height and width.

    Beyond the edge the edge pixel goes on, or the image is mirrored, edge pixels twice. Sums
    are in double precision, in SciPy's order. The result has the type of the image, unless a
    ``uint8`` array is given to put its grey levels in.
    """
    height, width, channels = image.shape
    none = np.ones(1)
    weights = none if sigma < 1e-15 else gaussian_weights(sigma, truncate)
    down, across = (weights if axis in axes else none for axis in (0, 1))
    if out is None:
        out = np.empty_like(image)
    _smooth(
        image.reshape(height, -1),
        down,
        _beyond(height, down.size - 1, mirror),
        across,
        _beyond(width, across.size - 1, mirror),
        channels,
        out.dtype == np.uint8,
        out.reshape(height, -1),
    )
    return out


@functools.lru_cache(maxsize=256)
def _beyond(size: int, radius: int, mirror: bool) -> Array:
    """Return which pixel stands at each place from ``-radius`` to ``size + radius``."""
    places = np.arange(-radius, size + radius)
    if mirror:
        places %= 2 * size
        return np.minimum(places, 2 * size - 1 - places)
    return np.clip(places, 0, size - 1)


@kernel
def _smooth(
    source: Array,
    down: Array,
    rows: Array,
    across: Array,
    columns: Array,
    channels: int,
    levels: bool,
    out: Array,
) -> None:
    height, width = source.shape
    reach_y, reach_x = down.size - 1, across.size - 1
    margin = reach_x * channels
    line = np.empty(width)
    padded = np.empty(width + 2 * margin)
    for y in range(height):
        here = source[y]
        for x in range(width):
            line[x] = here[x] * down[0]
        for step in range(reach_y, 0, -1):
            above, below = source[rows[reach_y + y - step]], source[rows[reach_y + y + step]]
            weight = down[step]
            for x in range(width):
                line[x] += (np.float64(above[x]) + np.float64(below[x])) * weight
        for x in range(width):
            line[x] = source.dtype.type(line[x])
            padded[margin + x] = line[x]
        for place in range(reach_x):
            before, after = columns[place], columns[columns.size - reach_x + place]
            for c in range(channels):
                padded[place * channels + c] = line[before * channels + c]
                padded[margin + width + place * channels + c] = line[after * channels + c]
        for x in range(width):
            line[x] = padded[margin + x] * across[0]
        for step in range(reach_x, 0, -1):
            left, right = padded[margin - step * channels :], padded[margin + step * channels :]
            weight = across[step]
            for x in range(width):
                line[x] += (left[x] + right[x]) * weight
        target = out[y]
        if levels:
            for x in range(width):
                target[x] = np.uint8(np.int32(min(max(line[x], 0.0), 1.0) * 255.0))
        else:
            for x in range(width):
                target[x] = line[x]


def smooth_field(field: Array, sigma: float, truncate: float) -> Array:
    """Smooth a floating-point (H, W) field that is mirrored beyond its edges.

    A mirrored field is a sum of cosines, and smoothing scales each: so a wide Gaussian costs
    no more than a narrow one.
    """
    if truncate * sigma < 12:
        return gaussian(field[..., None], sigma, truncate=truncate, mirror=True)[..., 0]
    from scipy.fft import dctn, idctn

    height, width = field.shape
    gain = np.outer(_gain(sigma, truncate, height), _gain(sigma, truncate, width))
    smooth: Array = idctn(dctn(field) * gain.astype(field.dtype), overwrite_x=True)
    return smooth


@functools.lru_cache(maxsize=64)
def _gain(sigma: float, truncate: float, size: int) -> Array:
    """Return what smoothing does to each cosine of a mirrored line of ``size`` pixels."""
    weights = gaussian_weights(sigma, truncate)
    angles = np.outer(np.arange(size) * (np.pi / size), np.arange(1, weights.size))
    gain: Array = weights[0] + 2 * (np.cos(angles) * weights[1:]).sum(axis=1)
    return gain


# ---------------------------------------------------------------- defocus


class Disk:
    """A kernel that is even inside and the same in its four quadrants, but for its rim."""

    def __init__(self, weights: Array) -> None:
        middle = weights.shape[0] // 2
        quadrant = weights[middle:, middle:].astype(np.float64)
        self.weight = float(quadrant[0, 0])
        # A weight this small is lost in the sum.
        quadrant[quadrant < self.weight * 1e-18] = 0.0
        self.reach = int(np.nonzero(quadrant)[0].max())
        quadrant = quadrant[: self.reach + 1, : self.reach + 1]
        even = quadrant == self.weight
        #: How far the even part of each line goes from the middle: -1 where there is none.
        self.spans = np.where(even.all(axis=1), self.reach, even.argmin(axis=1) - 1)
        rim = [
            (quadrant[place], *place)
            for place in np.ndindex(*quadrant.shape)
            if place[1] > self.spans[place[0]] and quadrant[place]
        ]
        rim.sort()
        self.rim_weights = np.array([weight for weight, _, _ in rim])
        self.rim_places = np.array([place for _, *place in rim], np.int64).reshape(-1, 2)


def correlate_disk(picture: Array, disk: Disk) -> Array:
    """Return a ``uint8`` picture, in 0..1, correlated with a disk.

    Beyond the edge the picture is mirrored about the edge pixel.
    """
    height, width, channels = picture.shape
    lines = np.empty((height + 2 * disk.reach, (width + 2 * disk.reach) * channels), np.int16)
    rows, columns = (_mirror_about_edge(size, disk.reach) for size in (height, width))
    _pad(picture.reshape(height, -1), rows, columns, channels, lines)
    out = np.empty((height, width * channels))
    _correlate(lines, disk.weight, disk.spans, disk.rim_weights, disk.rim_places, channels, out)
    return out.reshape(picture.shape)


@functools.lru_cache(maxsize=64)
def _mirror_about_edge(size: int, radius: int) -> Array:
    places = np.arange(-radius, size + radius)
    if size == 1:
        return np.zeros_like(places)
    places %= 2 * size - 2
    return np.minimum(places, 2 * size - 2 - places)


@kernel
def _pad(source: Array, rows: Array, columns: Array, channels: int, out: Array) -> None:
    margin = (columns.size - source.shape[1] // channels) // 2
    for y in range(rows.size):
        line, target = source[rows[y]], out[y]
        for place in range(columns.size):
            if margin <= place < columns.size - margin:
                continue
            for c in range(channels):
                target[place * channels + c] = line[columns[place] * channels + c]
        for x in range(line.size):
            target[margin * channels + x] = line[x]


@kernel
def _correlate(
    lines: Array,
    weight: float,
    spans: Array,
    rim_weights: Array,
    rim_places: Array,
    channels: int,
    out: Array,
) -> None:
    height, width = out.shape
    reach = spans.size - 1
    margin = reach * channels
    pairs = np.empty((reach + 1, lines.shape[1]), np.int16)
    change = np.empty(width, np.int32)
    inside = np.empty(width, np.int32)
    group = np.empty(width, np.int16)
    rim = np.empty(width)
    for y in range(height):
        rim[:] = 0.0
        change[:] = 0
        inside[:channels] = 0
        for down in range(reach + 1):
            above, below, pair = lines[y + reach - down], lines[y + reach + down], pairs[down]
            for x in range(pair.size):
                pair[x] = above[x] + below[x] if down else above[x]
            span = spans[down]
            if span >= 0:  # how the sum over the even part changes from a pixel to the next
                for x in range(channels):
                    for i in range(-span, span + 1):
                        inside[x] += pair[margin + x + i * channels]
                # From the second pixel on; the first has no pixel that leaves.
                entering = pair[margin + (span + 1) * channels :]
                leaving = pair[margin - span * channels :]
                for x in range(width - channels):
                    change[x] += entering[x] - leaving[x]
        for x in range(channels, width):
            inside[x] = inside[x - channels] + change[x - channels]
        group[:] = 0
        for place in range(rim_weights.size):
            pair, across = pairs[rim_places[place, 0]], rim_places[place, 1] * channels
            left, right = pair[margin - across :], pair[margin + across :]
            if across:
                for x in range(width):
                    group[x] += left[x] + right[x]
            else:
                for x in range(width):
                    group[x] += left[x]
            # Equal weights share a multiplication, as long as 16 bits hold their sum.
            full = place % 32 == 31 or place + 1 == rim_weights.size
            if full or rim_weights[place + 1] != rim_weights[place]:
                for x in range(width):
                    rim[x] += rim_weights[place] * group[x]
                    group[x] = 0
        for x in range(width):
            out[y, x] = (rim[x] + weight * inside[x]) / 255.0


# ---------------------------------------------------------------- motion blur


def motion(image: Array, radius: float, sigma: float, angle: float) -> Array:
    """Blur a ``uint8`` (H, W, C) image along a line, as ImageMagick 6 does.

    One side of a Gaussian, sampled at whole pixels along the direction ``angle`` in degrees;
    sums are rounded to 16 bits and then cut to 8.
    """
    width = 2 * math.ceil(radius) + 1
    weights = [math.exp(-(i * i) / (2.0 * sigma * sigma)) for i in range(width)]
    weights = [weight / (math.sqrt(2.0 * math.pi) * sigma) for weight in weights]
    total = 0.0
    for weight in weights:
        total += weight
    down = width * math.sin(math.radians(angle))
    right = width * math.cos(math.radians(angle))
    length = math.hypot(down, right)
    offsets = [
        (math.ceil(i * down / length - 0.5), math.ceil(i * right / length - 0.5))
        for i in range(width)
    ]
    out = np.empty_like(image)
    height, _, channels = image.shape
    _motion(
        image.reshape(height, -1),
        np.array(weights) / total,
        np.array(offsets),
        channels,
        out.reshape(height, -1),
    )
    return out


@kernel
def _motion(source: Array, weights: Array, offsets: Array, channels: int, out: Array) -> None:
    height, width = source.shape
    taps = weights.size
    left = max(0, -offsets[:, 1].min()) * channels
    right = max(0, offsets[:, 1].max()) * channels
    padded = np.empty((height, left + width + right))
    for y in range(height):
        for i in range(left):
            padded[y, i] = source[y, i % channels]
        for i in range(right):
            padded[y, left + width + i] = source[y, width - channels + i % channels]
        for x in range(width):
            padded[y, left + x] = source[y, x]
    row = np.empty(width)
    for y in range(height):
        row[:] = 0
        for tap in range(taps):
            from_row = min(max(y + offsets[tap, 0], 0), height - 1)
            start = left + offsets[tap, 1] * channels
            shifted = padded[from_row, start : start + width]
            weight = weights[tap] * 257.0
            for x in range(width):
                row[x] += shifted[x] * weight
        for x in range(width):
            out[y, x] = np.uint8(np.int32(row[x] + 0.5) // 257)


# ---------------------------------------------------------------- zoom


@functools.lru_cache(maxsize=256)
def _zoom_axis(size: int, factor: float, channels: int) -> tuple[Array, Array]:
    """Return where each value of a zoomed and trimmed line begins, and how far beyond it is.

    SciPy's geometry: the corners of the cut piece fall on the corners of the zoomed one.
    """
    cut = math.ceil(size / factor)
    start = (size - cut) // 2
    zoomed = round(cut * factor)
    trim = (zoomed - size) // 2
    step = (cut - 1) / (zoomed - 1) if zoomed > 1 else 0.0
    places = step * np.arange(trim, trim + size, dtype=np.float64)
    left = np.minimum(np.floor(places), max(cut - 2, 0))
    values = (left + start)[:, None] * channels + np.arange(channels)
    return values.reshape(-1).astype(np.uint32), np.repeat(places - left, channels)


def sum_of_zooms(image: Array, factors: Sequence[float]) -> Array:
    """Return the sum of an (H, W, C) image zoomed about its middle by several factors.

    Each zoom is computed in double precision, and summed up in the type of the image.
    """
    height, width, channels = image.shape
    # One more pixel at the end of each line, which is weighed with nothing.
    lines = np.zeros((height, (width + 1) * channels))
    lines[:, :-channels] = image.reshape(height, -1)
    total = np.zeros((height, width * channels), image.dtype)
    for factor in factors:
        if factor == 1:
            total += lines[:, :-channels]
        else:
            rows, columns = _zoom_axis(height, factor, 1), _zoom_axis(width, factor, channels)
            _add_zoomed(lines, *rows, *columns, total)
    return total.reshape(image.shape)


@kernel
def _add_zoomed(
    lines: Array, rows: Array, down: Array, values: Array, right: Array, total: Array
) -> None:
    height, width = total.shape
    channels = np.uint32(lines.shape[1] - width)
    upper, lower = np.empty(width), np.empty(width)
    upper_row = lower_row = -1
    for y in range(height):
        first = int(rows[y])
        second = min(first + 1, height - 1)
        if upper_row != first:
            if lower_row == first:
                upper, lower = lower, upper
                lower_row = -1
            else:
                _stretch(lines[first], values, right, channels, upper)
            upper_row = first
        if lower_row != second:
            _stretch(lines[second], values, right, channels, lower)
            lower_row = second
        share = down[y]
        sums = total[y]
        for x in range(width):
            sums[x] += total.dtype.type(upper[x] + share * (lower[x] - upper[x]))


@kernel
def _stretch(line: Array, values: Array, right: Array, channels: Any, out: Array) -> None:
    for x in range(values.size):
        here = line[values[x]]
        out[x] = here + right[x] * (line[values[x] + channels] - here)
