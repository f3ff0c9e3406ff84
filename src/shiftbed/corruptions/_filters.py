"""The filters that several corruptions are made of.

The published pixels are floats truncated to whole grey levels, so that a difference in the
last bit of a float can show: a flat area can fall by a whole level. These kernels therefore
keep the order of the operations of the libraries that the benchmarks were made with, where
the result is next to a whole level, and are free in all else.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from shiftbed.corruptions._jit import Array, kernel

#: Grey levels as the published code scales them.
UNIT = np.arange(256) / 255.0
UNIT32 = UNIT.astype(np.float32)


def to_level(value: Array) -> Array:
    """Return values of 0..1 as grey levels, truncated as the published code does.

    >>> to_level(np.array([-0.1, 0.999, 1.5])).tolist()
    [0, 254, 255]
    """
    level: Array = (np.clip(value, 0, 1) * 255).astype(np.uint8)
    return level


# ---------------------------------------------------------------- Gaussian smoothing


@functools.cache
def gaussian_weights(sigma: float, truncate: float) -> Array:
    """Return the weights of distances 0, 1, ... of a truncated, normalised Gaussian."""
    radius = int(truncate * sigma + 0.5)
    scale = -0.5 / (sigma * sigma)
    weights = [math.exp((scale * i) * i) for i in range(-radius, radius + 1)]
    total = np.asarray(weights).sum()
    return np.asarray(weights[radius:]) / total


def gaussian(
    image: Array, sigma: float, *, truncate: float = 4.0, axes: tuple[int, ...] = (0, 1)
) -> Array:
    """Smooth a floating-point (H, W, C) image along its height and width.

    The edge pixel goes on beyond the edge. Sums are in double precision, in SciPy's order;
    the result has the type of the image.
    """
    if sigma < 1e-15:
        return image
    weights = gaussian_weights(sigma, truncate)
    height, width, channels = image.shape
    out = image
    if 0 in axes:
        source, out = out, np.empty_like(image)
        _smooth_columns(source.reshape(height, -1), weights, out.reshape(height, -1))
    if 1 in axes:
        source, out = out, np.empty_like(image)
        _smooth_rows(source.reshape(height, -1), weights, channels, out.reshape(height, -1))
    return out


def gaussian_reflected(field: Array, sigma: float, truncate: float) -> Array:
    """Smooth a floating-point (H, W) field that is mirrored, edge pixels twice, beyond its edges.

    A mirrored field is a sum of cosines, and smoothing scales each: so any width costs the
    same. The result has the type of the field.
    """
    if sigma < 1e-15:
        return field
    from scipy.fft import dctn, idctn

    height, width = field.shape
    gain = np.outer(_gain(sigma, truncate, height), _gain(sigma, truncate, width))
    smooth: Array = idctn(dctn(field) * gain.astype(field.dtype))
    return smooth


@functools.lru_cache(maxsize=64)
def _gain(sigma: float, truncate: float, size: int) -> Array:
    """Return what smoothing does to each cosine of a mirrored line of ``size`` pixels."""
    weights = gaussian_weights(sigma, truncate)
    angles = np.outer(np.arange(size) * (np.pi / size), np.arange(1, weights.size))
    gain: Array = weights[0] + 2 * (np.cos(angles) @ weights[1:])
    return gain


@kernel
def _smooth_columns(source: Array, weights: Array, out: Array) -> None:
    height, width = source.shape
    radius = weights.size - 1
    row = np.empty(width, np.float64)
    for y in range(height):
        here = source[y]
        for x in range(width):
            row[x] = here[x] * weights[0]
        for distance in range(radius, 0, -1):
            above = source[max(y - distance, 0)]
            below = source[min(y + distance, height - 1)]
            weight = weights[distance]
            for x in range(width):
                row[x] += (np.float64(above[x]) + np.float64(below[x])) * weight
        target = out[y]
        for x in range(width):
            target[x] = row[x]


@kernel
def _smooth_rows(source: Array, weights: Array, channels: int, out: Array) -> None:
    height, width = source.shape
    radius = weights.size - 1
    margin = radius * channels
    padded = np.empty(width + 2 * margin, np.float64)
    row = np.empty(width, np.float64)
    for y in range(height):
        for i in range(margin):
            padded[i] = source[y, i % channels]
            padded[margin + width + i] = source[y, width - channels + i % channels]
        padded[margin : margin + width] = source[y]
        for x in range(width):
            row[x] = padded[margin + x] * weights[0]
        for distance in range(radius, 0, -1):
            shift = distance * channels
            before = padded[margin - shift : margin - shift + width]
            after = padded[margin + shift : margin + shift + width]
            weight = weights[distance]
            for x in range(width):
                row[x] += (before[x] + after[x]) * weight
        for x in range(width):
            out[y, x] = row[x]


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
    padded = np.empty((height, left + width + right), np.float32)
    for y in range(height):
        for i in range(left):
            padded[y, i] = source[y, i % channels]
        for i in range(right):
            padded[y, left + width + i] = source[y, width - channels + i % channels]
        for x in range(width):
            padded[y, left + x] = source[y, x]
    row = np.empty(width, np.float32)
    for y in range(height):
        row[:] = 0
        for tap in range(taps):
            from_row = min(max(y + offsets[tap, 0], 0), height - 1)
            start = left + offsets[tap, 1] * channels
            shifted = padded[from_row, start : start + width]
            weight = np.float32(weights[tap] * 257.0)
            for x in range(width):
                row[x] += shifted[x] * weight
        for x in range(width):
            out[y, x] = np.uint8(np.int32(row[x] + np.float32(0.5)) // 257)


# ---------------------------------------------------------------- zoom


@functools.lru_cache(maxsize=256)
def _zoom_axis(size: int, factor: float) -> tuple[Array, Array]:
    """Return, for each pixel of a zoomed and trimmed axis, its left source pixel and offset.

    SciPy's geometry: the corners of the cut piece fall on the corners of the zoomed one.
    """
    cut = math.ceil(size / factor)
    start = (size - cut) // 2
    zoomed = round(cut * factor)
    trim = (zoomed - size) // 2
    step = (cut - 1) / (zoomed - 1) if zoomed > 1 else 0.0
    places = step * np.arange(trim, trim + size, dtype=np.float64)
    left = np.minimum(np.floor(places), max(cut - 2, 0))
    return (left + start).astype(np.int32), (places - left).astype(np.float32)


def add_zoomed(image: Array, factor: float, total: Array) -> None:
    """Add a ``float32`` (H, W, C) image, zoomed about its middle, to ``total``."""
    rows, down = _zoom_axis(image.shape[0], factor)
    columns, right = _zoom_axis(image.shape[1], factor)
    _add_zoomed(image, rows, down, columns, right, total)


@kernel
def _add_zoomed(
    image: Array, rows: Array, down: Array, columns: Array, right: Array, total: Array
) -> None:
    _, width, channels = image.shape
    last = width - 1
    upper = np.empty((width, channels), np.float32)
    lower = np.empty((width, channels), np.float32)
    upper_row = lower_row = -1
    bottom = image.shape[0] - 1
    for y in range(rows.size):
        first = rows[y]
        second = min(first + 1, bottom)
        if upper_row != first:
            if lower_row == first:
                upper, lower = lower, upper
                lower_row = -1
            else:
                _stretch(image[first], columns, right, last, upper)
            upper_row = first
        if lower_row != second:
            _stretch(image[second], columns, right, last, lower)
            lower_row = second
        share = down[y]
        for x in range(width):
            for c in range(channels):
                here = upper[x, c]
                total[y, x, c] += here + share * (lower[x, c] - here)


@kernel
def _stretch(row: Array, columns: Array, right: Array, last: int, out: Array) -> None:
    for x in range(columns.size):
        left = columns[x]
        share = right[x]
        for c in range(row.shape[1]):
            here = row[left, c]
            out[x, c] = here + share * (row[min(left + 1, last), c] - here)
