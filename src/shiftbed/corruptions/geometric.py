"""Geometric: the same scene, bent, turned, scaled or moved."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from shiftbed.corruptions import _filters
from shiftbed.corruptions._filters import unit
from shiftbed.corruptions._jit import Array, kernel
from shiftbed.corruptions._random import Draws
from shiftbed.corruptions._registry import corruption


def _elastic(side: int, *levels: tuple[float, float, float]) -> tuple[tuple[float, ...], ...]:
    """Return the levels of elastic_transform, given as fractions of a side."""
    return tuple(tuple(side * fraction for fraction in level) for level in levels)


_ELASTIC = (
    (2, 0.7, 0.1),
    (2, 0.08, 0.2),
    (0.05, 0.01, 0.02),
    (0.07, 0.01, 0.02),
    (0.12, 0.01, 0.02),
)


@corruption(
    {
        "imagenet-c": _elastic(244, *_ELASTIC),
        "imagenet-299": _elastic(360, *_ELASTIC),
        "tiny-imagenet-c": _elastic(
            64,
            (0, 0, 0.08),
            (0.05, 0.3, 0.06),
            (0.1, 0.08, 0.06),
            (0.1, 0.03, 0.03),
            (0.16, 0.03, 0.02),
        ),
        "cifar-c": _elastic(
            32,
            (0, 0, 0.08),
            (0.05, 0.2, 0.07),
            (0.08, 0.06, 0.06),
            (0.1, 0.04, 0.05),
            (0.1, 0.03, 0.03),
        ),
    }
)
def elastic_transform(
    picture: Array, rng: Draws, amplitude: float, sigma: float, jitter: float
) -> Array:
    """Shear the picture at random, then move each pixel along a smooth random field."""
    return _bend(picture, rng, amplitude, sigma, jitter, True)


@corruption({"mnist-c": _elastic(28, *_ELASTIC)}, name="elastic_transform", standard={"mnist-c": 1})
def mnist_elastic_transform(
    picture: Array, rng: Draws, amplitude: float, sigma: float, jitter: float
) -> Array:
    """Shear and bend a digit; what comes in from outside is black."""
    return _bend(picture, rng, amplitude, sigma, jitter, False)


def _bend(
    picture: Array, rng: Draws, amplitude: float, sigma: float, jitter: float, reflect: bool
) -> Array:
    import cv2

    height, width, _ = picture.shape
    # The published code gives the middle as (y, x) where OpenCV takes (x, y).
    middle = np.array([height // 2, width // 2])
    reach = max(min(height, width) // 3, 1)
    steps = np.array([[reach, reach], [reach, -reach], [-reach, -reach]])
    corners = (middle + steps).astype(np.float32)
    moved = corners + _uniform(rng, jitter, (3, 2)).astype(np.float32)
    forward = cv2.getAffineTransform(corners, moved)
    sheared = np.empty(picture.shape, np.float32)
    _shear(unit(picture, np.float32), _inverse(forward), reflect, sheared)
    right = _filters.smooth_field(_uniform(rng, 1.0, (height, width)), sigma, 3.0)
    down = _filters.smooth_field(_uniform(rng, 1.0, (height, width)), sigma, 3.0)
    out = np.empty_like(picture)
    _displace(sheared, right, down, amplitude, reflect, out)
    return out


def _uniform(rng: Draws, reach: float, size: tuple[int, ...]) -> Array:
    """Draw values uniform in [-reach, reach)."""
    values = rng.random_sample(size)
    values *= 2 * reach
    values -= reach
    return values


def _inverse(matrix: Array) -> Array:
    """Return the inverse of an affine map, by the steps of OpenCV's warpAffine."""
    (a, b, x), (c, d, y) = matrix.tolist()
    scale = a * d - b * c
    scale = 1.0 / scale if scale else 0.0
    e, f, g, h = d * scale, -b * scale, -c * scale, a * scale
    return np.array([[e, f, -e * x - f * y], [g, h, -g * x - h * y]])


def _affine(picture: Array, matrix: Array) -> Array:
    """Sample a picture at ``matrix @ (x, y, 1)``, black outside, bilinearly."""
    out = np.empty_like(picture)
    image = unit(picture)
    _sample(image, matrix, image.min(), image.max(), out)
    return out


def _about_the_middle(picture: Array, linear: tuple[tuple[float, float], ...]) -> Array:
    """Return the affine map that keeps the middle of the picture in its place."""
    (a, b), (c, d) = linear
    x, y = (picture.shape[1] - 1) / 2, (picture.shape[0] - 1) / 2
    return np.array([[a, b, x * (1 - a) - y * b], [c, d, y * (1 - d) - x * c]])


def _sign(rng: Draws) -> int:
    return (-1, 1)[rng.randint(0, 2, 1)[0]]


@corruption({"mnist-c": (0.2, 0.4, 0.6, 0.8, 1.0)}, standard={"mnist-c": 2})
def shear(picture: Array, rng: Draws, angle: float) -> Array:
    """Shear to the left or the right."""
    angle *= _sign(rng)
    linear = ((1.0, -math.sin(angle)), (0.0, math.cos(angle)))
    return _affine(picture, _about_the_middle(picture, linear))


@corruption({"mnist-c": (0.2, 0.4, 0.6, 0.8, 1.0)}, standard={"mnist-c": 2})
def rotate(picture: Array, rng: Draws, angle: float) -> Array:
    """Rotate to the left or the right."""
    angle *= _sign(rng)
    linear = ((math.cos(angle), -math.sin(angle)), (math.sin(angle), math.cos(angle)))
    return _affine(picture, _about_the_middle(picture, linear))


@corruption(
    {"mnist-c": (1 / 0.9, 1 / 0.8, 1 / 0.7, 1 / 0.6, 1 / 0.5)},
    standard={"mnist-c": 3},
    random=False,
)
def scale(picture: Array, rng: Draws, factor: float) -> Array:
    """Make smaller, within a black frame."""
    return _affine(picture, _about_the_middle(picture, ((factor, 0.0), (0.0, factor))))


@corruption({"mnist-c": (1, 2, 3, 4, 5)}, standard={"mnist-c": 3})
def translate(picture: Array, rng: Draws, pixels: int) -> Array:
    """Move along both axes, either way."""
    right, down = np.where(rng.randint(0, 2, 2) == 0, -pixels, pixels)
    return _affine(picture, np.array([[1.0, 0.0, right], [0.0, 1.0, down]]))


# ---------------------------------------------------------------- kernels


@kernel
def _sample(image: Array, matrix: Array, darkest: float, brightest: float, out: Array) -> None:
    """Sample bilinearly; as in scikit-image, no value leaves the picture's range but black."""
    height, width, channels = image.shape
    for y in range(height):
        for x in range(width):
            from_x = matrix[0, 0] * x + matrix[0, 1] * y + matrix[0, 2]
            from_y = matrix[1, 0] * x + matrix[1, 1] * y + matrix[1, 2]
            left, top = math.floor(from_x), math.floor(from_y)
            right, bottom = math.ceil(from_x), math.ceil(from_y)
            across, along = from_x - left, from_y - top
            for c in range(channels):
                corner = np.zeros(4)
                if 0 <= top < height:
                    if 0 <= left < width:
                        corner[0] = image[top, left, c]
                    if 0 <= right < width:
                        corner[1] = image[top, right, c]
                if 0 <= bottom < height:
                    if 0 <= left < width:
                        corner[2] = image[bottom, left, c]
                    if 0 <= right < width:
                        corner[3] = image[bottom, right, c]
                upper = (1 - across) * corner[0] + across * corner[1]
                lower = (1 - across) * corner[2] + across * corner[3]
                value = (1 - along) * upper + along * lower
                if value != 0.0:
                    value = min(max(value, darkest), brightest)
                level = np.float32(value * 255.0)
                out[y, x, c] = np.uint8(np.int32(level))


@kernel
def _mirrored(place: int, size: int) -> int:
    """Return an index reflected about the first and last pixel."""
    if 0 <= place < size:
        return place
    if size == 1:
        return 0
    period = 2 * size - 2
    place %= period
    return period - place if place >= size else place


@kernel
def _shear(image: Array, inverse: Array, reflect: bool, out: Array) -> None:
    """Sample as OpenCV 4's warpAffine: places in 1/32 of a pixel, summed up in 1/1024."""
    height, width, channels = image.shape
    one, zero = np.float32(1), np.float32(0)
    steps_x = np.rint(inverse[0, 0] * np.arange(width) * 1024.0).astype(np.int64)
    steps_y = np.rint(inverse[1, 0] * np.arange(width) * 1024.0).astype(np.int64)
    for y in range(height):
        start_x = np.int64(np.rint((inverse[0, 1] * y + inverse[0, 2]) * 1024.0)) + 16
        start_y = np.int64(np.rint((inverse[1, 1] * y + inverse[1, 2]) * 1024.0)) + 16
        for x in range(width):
            at_x, at_y = (start_x + steps_x[x]) >> 5, (start_y + steps_y[x]) >> 5
            left, top = at_x >> 5, at_y >> 5
            right, bottom = left + 1, top + 1
            across = np.float32(at_x & 31) * np.float32(1 / 32)
            along = np.float32(at_y & 31) * np.float32(1 / 32)
            weight_a, weight_b = (one - along) * (one - across), (one - along) * across
            weight_c, weight_d = along * (one - across), along * across
            if not (left >= 0 and right < width and top >= 0 and bottom < height):
                if not reflect:
                    has_left, has_right = 0 <= left < width, 0 <= right < width
                    has_top, has_bottom = 0 <= top < height, 0 <= bottom < height
                    weight_a = weight_a if has_top and has_left else zero
                    weight_b = weight_b if has_top and has_right else zero
                    weight_c = weight_c if has_bottom and has_left else zero
                    weight_d = weight_d if has_bottom and has_right else zero
                left, right = _mirrored(left, width), _mirrored(right, width)
                top, bottom = _mirrored(top, height), _mirrored(bottom, height)
            for c in range(channels):
                out[y, x, c] = (
                    image[top, left, c] * weight_a
                    + image[top, right, c] * weight_b
                    + image[bottom, left, c] * weight_c
                ) + image[bottom, right, c] * weight_d


@kernel
def _folded(place: float, size: int) -> float:
    """Fold a place back into the picture, as SciPy 1.2's mode "reflect" does."""
    if 0 <= place <= size - 1:
        return place
    period = 2.0 * size
    if place < 0:
        if place < -period:
            place += period * np.floor(-place / period)
        return place + period if place < -size else -place - 1
    place -= period * np.floor(place / period)
    return period - place - 1 if place >= size else place


@kernel
def _blend(values: Array, corners: Any, weights: Any, channel: Any) -> Any:
    """Return the level of a channel between the four corners around a place."""
    value = (
        values[corners[0] + channel] * weights[0]
        + values[corners[1] + channel] * weights[1]
        + values[corners[2] + channel] * weights[2]
        + values[corners[3] + channel] * weights[3]
    )
    level = min(max(np.float32(value), np.float32(0)), np.float32(1))
    return np.uint8(np.int32(level * np.float32(255)))


@kernel
def _displace(
    image: Array, right: Array, down: Array, amplitude: float, reflect: bool, out: Array
) -> None:
    height, width, channels = image.shape
    values, line, target = image.reshape(-1), width * channels, out.reshape(-1)
    for y in range(height):
        for x in range(width):
            from_y = y + float(np.float32(down[y, x] * amplitude))
            from_x = x + float(np.float32(right[y, x] * amplitude))
            if not (0 <= from_y < height - 1 and 0 <= from_x < width - 1):
                if reflect:
                    from_y, from_x = _folded(from_y, height), _folded(from_x, width)
                elif not (0 <= from_y <= height - 1 and 0 <= from_x <= width - 1):
                    out[y, x] = 0
                    continue
            top, left = math.floor(from_y), math.floor(from_x)
            along, across = from_y - top, from_x - left
            bottom, after = top + 1, left + 1
            if not (0 <= top < height - 1 and 0 <= left < width - 1):
                bottom, after = _mirrored(bottom, height), _mirrored(after, width)
                top, left = _mirrored(top, height), _mirrored(left, width)
            weights = (
                (1 - along) * (1 - across),
                (1 - along) * across,
                along * (1 - across),
                along * across,
            )
            corners = (
                np.uint64(top * line + left * channels),
                np.uint64(top * line + after * channels),
                np.uint64(bottom * line + left * channels),
                np.uint64(bottom * line + after * channels),
            )
            place = np.uint64((y * width + x) * channels)
            target[place] = _blend(values, corners, weights, np.uint64(0))
            if channels == 3:  # written out: a loop of unknown length is slower
                for channel in range(1, 3):
                    c = np.uint64(channel)
                    target[place + c] = _blend(values, corners, weights, c)
