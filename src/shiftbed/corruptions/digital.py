"""Digital: what storing, sending and displaying a picture does to it."""

from __future__ import annotations

import io

import numpy as np

from shiftbed.corruptions import _colour, _edges
from shiftbed.corruptions._filters import UNIT, to_level
from shiftbed.corruptions._jit import Array, kernel
from shiftbed.corruptions._random import Draws
from shiftbed.corruptions._registry import VARIANTS, corruption


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
    mean = UNIT[picture].mean(axis=(0, 1))
    out = np.empty_like(picture)
    levels = to_level((UNIT[:, None] - mean) * factor + mean)
    _look_up(picture, levels, out)
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
    return to_level(grey)[picture]


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
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(picture if picture.shape[2] == 3 else picture[..., 0]).save(
        file, "JPEG", quality=quality
    )
    return np.asarray(Image.open(file)).reshape(picture.shape)


@corruption(
    {
        "imagenet-c": (0.6, 0.5, 0.4, 0.3, 0.25),
        "imagenet-299": (0.5, 0.4, 0.3, 0.25, 0.2),
        "tiny-imagenet-c": (0.9, 0.8, 0.7, 0.6, 0.5),
        "cifar-c": (0.95, 0.9, 0.85, 0.75, 0.65),
        "mnist-c": (0.6, 0.5, 0.4, 0.3, 0.25),
    },
    standard={"mnist-c": 3},
    random=False,
)
def pixelate(picture: Array, rng: Draws, factor: float) -> Array:
    """Scale down and up again, without interpolation."""
    from PIL import Image

    height, width, channels = picture.shape
    image = Image.fromarray(picture if channels == 3 else picture[..., 0])
    small = image.resize(
        (max(1, int(width * factor)), max(1, int(height * factor))), Image.Resampling.BOX
    )
    return np.asarray(small.resize((width, height), Image.Resampling.BOX)).reshape(picture.shape)


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
