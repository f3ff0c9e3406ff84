"""Digital: what storing, sending and displaying a picture does to it."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from shiftbed.corruptions import _colour, _edges
from shiftbed.corruptions._filters import UNIT, to_level, to_mnist_level, unit
from shiftbed.corruptions._jit import Array, kernel
from shiftbed.corruptions._random import Draws
from shiftbed.corruptions._registry import VARIANTS, corruption
from shiftbed.errors import InputError

#: The most that libjpeg takes.
_JPEG_SIDE = 65_500


@corruption(
    {
        "imagenet-c": (0.4, 0.3, 0.2, 0.1, 0.05),
        "imagenet-299": (0.4, 0.3, 0.2, 0.1, 0.05),
        "tiny-imagenet-c": (0.4, 0.3, 0.2, 0.1, 0.05),
        "cifar-c": (0.75, 0.5, 0.4, 0.3, 0.15),
        "mnist-c": (0.4, 0.3, 0.2, 0.1, 0.05),
    },
    standard={"mnist-c": 4},
    random=False,
)
def contrast(picture: Array, rng: Draws, factor: float) -> Array:
    """Bring every value nearer to the mean of its channel."""
    if picture.shape[2] == 1:
        mean = unit(picture).mean(keepdims=True)[0, 0]
    else:
        mean = _channel_sums(picture, UNIT) / (picture.shape[0] * picture.shape[1])
    out = np.empty_like(picture)
    _look_up(picture, to_level((UNIT[:, None] - mean) * factor + mean), out)
    return out


_SATURATE = ((0.3, 0), (0.1, 0), (2, 0), (5, 0.1), (20, 0.2))


@corruption(
    {
        "imagenet-c": _SATURATE,
        "imagenet-299": _SATURATE,
        "tiny-imagenet-c": ((0.3, 0), (0.1, 0), (2, 0), (5, 0.1), (30, 0.2)),
        "cifar-c": ((0.3, 0), (0.1, 0), (1.5, 0), (2, 0.1), (2.5, 0.2)),
    },
    random=False,
)
def saturate(picture: Array, rng: Draws, gain: float, offset: float) -> Array:
    """Raise or lower the saturation of hue, saturation and value."""
    if picture.shape[2] == 1:
        picture = np.repeat(picture, 3, axis=2)
        return _colour.greyscale(_colour.change_hsv(picture, gain, offset, 0.0))
    return _colour.change_hsv(picture, gain, offset, 0.0)


@corruption({"mnist-c": _SATURATE}, name="saturate", standard={"mnist-c": 5}, random=False)
def mnist_saturate(picture: Array, rng: Draws, gain: float, offset: float) -> Array:
    """Scale hue, saturation and value alike, as the published code does, and go back to grey."""
    if picture.shape[2] == 3:
        return saturate(picture, rng, gain, offset)
    value = np.clip(UNIT * gain + offset, 0, 1)
    full = np.full_like(value, min(offset, 1.0))
    grey = _colour.rgb_of_hsv(full, full, value) @ _colour.WEIGHTS
    return to_mnist_level(grey)[picture]


@corruption(
    {
        "imagenet-c": (25, 18, 15, 10, 7),
        "imagenet-299": (23, 16, 13, 8, 5),
        "tiny-imagenet-c": (65, 58, 50, 40, 25),
        "cifar-c": (80, 65, 58, 50, 40),
        "mnist-c": (25, 18, 15, 10, 7),
    },
    standard={"mnist-c": 5},
    random=False,
)
def jpeg_compression(picture: Array, rng: Draws, quality: int) -> Array:
    """Store as JPEG and read again."""
    import cv2

    if max(picture.shape) > _JPEG_SIDE:
        raise InputError(
            f"a JPEG file has at most {_JPEG_SIDE:,} pixels a side, but the picture's shape is "
            f"{picture.shape}"
        )
    # OpenCV writes the same bytes and reads the same pixels as Pillow, and faster.
    grey = picture.shape[2] == 1
    turned = picture if grey else cv2.cvtColor(picture, cv2.COLOR_RGB2BGR)
    _, data = cv2.imencode(".jpg", turned, [cv2.IMWRITE_JPEG_QUALITY, quality])
    decoded: Any = cv2.imdecode(data, cv2.IMREAD_GRAYSCALE if grey else cv2.IMREAD_COLOR)
    result: Array = decoded[..., None] if grey else cv2.cvtColor(decoded, cv2.COLOR_BGR2RGB)
    return result


@corruption(
    {
        "imagenet-c": (0.6, 0.5, 0.4, 0.3, 0.25),
        "imagenet-299": (0.5, 0.4, 0.3, 0.25, 0.2),
        "tiny-imagenet-c": (0.9, 0.8, 0.7, 0.6, 0.5),
        "cifar-c": (0.95, 0.9, 0.85, 0.75, 0.65),
    },
    random=False,
)
def pixelate(picture: Array, rng: Draws, factor: float) -> Array:
    """Scale down and up again, without interpolation."""
    return _pixelate(picture, factor, False)


@corruption(
    {"mnist-c": (0.6, 0.5, 0.4, 0.3, 0.25)},
    name="pixelate",
    standard={"mnist-c": 3},
    random=False,
)
def mnist_pixelate(picture: Array, rng: Draws, factor: float) -> Array:
    """Scale a digit down and up again, without interpolation.

    The published pictures have black lines where the scales fall together: from 16 pixels to
    28, the boxes of their Pillow hold no pixel at every seventh place.
    """
    return _pixelate(picture, factor, True)


def _pixelate(picture: Array, factor: float, gaps: bool) -> Array:
    height, width, channels = picture.shape
    low, narrow = max(1, int(height * factor)), max(1, int(width * factor))
    small = np.empty((low, narrow, channels), np.uint8)
    out = np.empty_like(picture)
    _average(picture, *_boxes(height, low, gaps), *_boxes(width, narrow, gaps), small)
    _average(small, *_boxes(low, height, gaps), *_boxes(narrow, width, gaps), out)
    return out


@corruption({"mnist-c": (5, 4, 3, 2, 1)}, standard={"mnist-c": 5}, random=False)
def quantize(picture: Array, rng: Draws, bits: int) -> Array:
    """Round to fewer levels."""
    steps = 2**bits - 1
    levels = np.arange(256, dtype=np.float32)
    levels *= steps / 255.0
    levels = levels.round()
    levels *= 255.0 / steps
    return levels.astype(np.uint8)[picture]


@corruption({"mnist-c": ()}, random=False)
def inverse(picture: Array, rng: Draws) -> Array:
    """Swap black and white."""
    return 255 - picture


@corruption({"mnist-c": ()}, random=False)
def canny_edges(picture: Array, rng: Draws) -> Array:
    """Keep the edges alone, by Canny's detector."""
    grey = UNIT[picture[..., 0]] if picture.shape[2] == 1 else _colour.luminance(picture)
    edges = _edges.canny(grey.astype(np.float64))
    return np.repeat((edges * np.uint8(255))[..., None], picture.shape[2], axis=2)


@corruption(dict.fromkeys(VARIANTS, ()), random=False)
def greyscale(picture: Array, rng: Draws) -> Array:
    """Take the colour away; the picture keeps its number of channels."""
    if picture.shape[2] == 1:
        return picture.copy()
    return np.repeat(_colour.greyscale(picture), 3, axis=2)


# ---------------------------------------------------------------- kernels


@kernel
def _look_up(picture: Array, levels: Array, out: Array) -> None:
    height, width, channels = picture.shape
    for y in range(height):
        for x in range(width):
            for c in range(channels):
                out[y, x, c] = levels[picture[y, x, c], c]


@kernel
def _channel_sums(picture: Array, unit: Array) -> Array:
    """Return the sums of an RGB picture in 0..1, pixel after pixel as NumPy adds them up."""
    sums = np.zeros(3)
    height, width, _ = picture.shape
    for y in range(height):
        for x in range(width):
            for c in range(3):
                sums[c] += unit[picture[y, x, c]]
    return sums


@functools.lru_cache(maxsize=256)
def _boxes(size: int, resized: int, gaps: bool) -> tuple[Array, Array]:
    """Return where the box of each resized pixel begins, and how many pixels it holds.

    A pixel belongs to a box if its middle does; a middle on the seam belongs to the later
    one, as in the Pillow of the published pictures. Today's Pillow takes the earlier one.
    """
    scale = size / resized
    reach = max(scale, 1.0)
    boxes = []
    for place in range(resized):
        centre = (place + 0.5) * scale
        first = max(0, int(centre - reach / 2 + 0.5))
        last = min(size, int(centre + reach / 2 + 0.5))
        inside = [i for i in range(first, last) if -0.5 <= (i - centre + 0.5) / reach < 0.5]
        if inside:
            boxes.append((inside[0], len(inside)))
        else:
            boxes.append((first, 0 if gaps else 1))
    begins, counts = np.array(boxes, np.int32).T.copy()
    return begins, counts


#: What Pillow multiplies the sum of so many pixels by, before it drops 22 bits.
_SHARES = np.array(
    [0, *(int(0.5 + (1.0 / count) * (1 << 22)) for count in range(1, 4096))], np.int32
)


@kernel
def _average(
    picture: Array, tops: Array, heights: Array, lefts: Array, widths: Array, out: Array
) -> None:
    """Average over boxes, first along the lines and then down, rounding twice as Pillow does."""
    height, _, channels = picture.shape
    half = np.int32(1 << 21)
    across = np.empty((height, lefts.size, channels), np.uint8)
    for y in range(height):
        line, target = picture[y], across[y]
        for x in range(lefts.size):
            left, count = lefts[x], widths[x]
            if count == 1:
                for c in range(channels):
                    target[x, c] = line[left, c]
            elif channels == 3:
                red = green = blue = np.int32(0)
                for i in range(left, left + count):
                    red += line[i, 0]
                    green += line[i, 1]
                    blue += line[i, 2]
                share = _SHARES[count]
                target[x, 0] = (red * share + half) >> 22
                target[x, 1] = (green * share + half) >> 22
                target[x, 2] = (blue * share + half) >> 22
            else:
                total = np.int32(0)
                for i in range(left, left + count):
                    total += line[i, 0]
                target[x, 0] = (total * _SHARES[count] + half) >> 22
    sums = np.empty(lefts.size * channels, np.int32)
    for y in range(tops.size):
        target, count = out[y].reshape(-1), heights[y]
        if y and tops[y] == tops[y - 1] and count == heights[y - 1]:
            line = out[y - 1].reshape(-1)
            for x in range(line.size):
                target[x] = line[x]
        elif count == 1:
            line = across[tops[y]].reshape(-1)
            for x in range(line.size):
                target[x] = line[x]
        else:
            sums[:] = 0
            for i in range(tops[y], tops[y] + count):
                line = across[i].reshape(-1)
                for x in range(sums.size):
                    sums[x] += line[x]
            share = _SHARES[count]
            for x in range(sums.size):
                target[x] = np.uint8((sums[x] * share + half) >> np.int32(22))
