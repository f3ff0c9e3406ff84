"""Weather: what comes between the camera and the scene, or lights it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from shiftbed.corruptions import _colour, _filters, _frost
from shiftbed.corruptions._filters import UNIT, UNIT32, to_level, to_mnist_level, unit
from shiftbed.corruptions._jit import Array, kernel
from shiftbed.corruptions._random import Draws
from shiftbed.corruptions._registry import corruption

_SNOW = (
    (0.1, 0.3, 3, 0.5, 10, 4, 0.8),
    (0.2, 0.3, 2, 0.5, 12, 4, 0.7),
    (0.55, 0.3, 4, 0.9, 12, 8, 0.7),
    (0.55, 0.3, 4.5, 0.85, 12, 8, 0.65),
    (0.55, 0.3, 2.5, 0.85, 12, 12, 0.55),
)


def _snow_layer(
    shape: tuple[int, int],
    rng: Draws,
    mean: float,
    spread: float,
    zoom: float,
    threshold: float,
    radius: float,
    sigma: float,
) -> Array:
    """Return falling flakes, as grey levels of shape (H, W, 1)."""
    flakes = rng.normal(mean, spread, shape)[..., None]
    zoomed = _filters.sum_of_zooms(flakes, (zoom,))
    zoomed[zoomed < threshold] = 0
    return _filters.motion(to_level(zoomed), radius, sigma, rng.uniform(-135, -45))


@corruption(
    {
        "imagenet-c": _SNOW,
        "imagenet-299": _SNOW,
        "tiny-imagenet-c": (
            (0.1, 0.2, 1, 0.6, 8, 3, 0.8),
            (0.1, 0.2, 1, 0.5, 10, 4, 0.8),
            (0.15, 0.3, 1.75, 0.55, 10, 4, 0.7),
            (0.25, 0.3, 2.25, 0.6, 12, 6, 0.65),
            (0.3, 0.3, 1.25, 0.65, 14, 12, 0.6),
        ),
        "cifar-c": (
            (0.1, 0.2, 1, 0.6, 8, 3, 0.95),
            (0.1, 0.2, 1, 0.5, 10, 4, 0.9),
            (0.15, 0.3, 1.75, 0.55, 10, 4, 0.9),
            (0.25, 0.3, 2.25, 0.6, 12, 6, 0.85),
            (0.3, 0.3, 1.25, 0.65, 14, 12, 0.8),
        ),
    }
)
def snow(picture: Array, rng: Draws, *parameters: float) -> Array:
    """Whiten the scene and let flakes fall, blurred along their way."""
    *flakes, opacity = parameters
    layer = _snow_layer(picture.shape[:2], rng, *flakes)
    out = np.empty_like(picture)
    grey = _colour.luminance(picture)
    _fall(picture, layer, grey, UNIT, np.float32(opacity), np.float32(1 - opacity), out)
    return out


@corruption({"mnist-c": _SNOW}, name="snow", standard={"mnist-c": 5})
def mnist_snow(picture: Array, rng: Draws, *parameters: float) -> Array:
    """Brighten a digit and let flakes fall, blurred along their way."""
    *flakes, opacity = parameters
    layer = unit(_snow_layer(picture.shape[:2], rng, *flakes))
    image = unit(picture, np.float32)
    white = np.float32(1.5) * image + np.float32(0.5)
    scene = np.float32(opacity) * image + np.float32(1 - opacity) * np.maximum(image, white)
    return to_mnist_level(scene + layer + np.rot90(layer, k=2))


@corruption(
    {
        "imagenet-c": ((1, 0.4, 1), (0.8, 0.6, 1), (0.7, 0.7, 1), (0.65, 0.7, 1), (0.6, 0.75, 1)),
        "imagenet-299": ((1, 0.4, 1), (0.8, 0.6, 1), (0.7, 0.7, 1), (0.65, 0.7, 1), (0.6, 0.75, 1)),
        "tiny-imagenet-c": (
            (1, 0.3, 0.3),
            (0.9, 0.4, 0.3),
            (0.8, 0.45, 0.3),
            (0.75, 0.5, 0.3),
            (0.7, 0.55, 0.3),
        ),
        "cifar-c": (
            (1, 0.2, 0.2),
            (1, 0.3, 0.2),
            (0.9, 0.4, 0.2),
            (0.85, 0.4, 0.2),
            (0.75, 0.45, 0.2),
        ),
    }
)
def frost(
    picture: Array,
    rng: Draws,
    clear: float,
    ice: float,
    scale: float,
    *,
    textures: str | Path | None = None,
) -> Array:
    """Lay a crop of a photograph of frost over the picture.

    The published code has six photographs and draws among the first five. ``textures`` is a
    folder with them; by default they are fetched once.
    """
    out = np.empty_like(picture)
    _overlay(picture, _frost_crop(picture.shape, rng, scale, textures), clear, ice, out)
    return out


@corruption(
    {"mnist-c": ((1, 0.4), (0.8, 0.6), (0.7, 0.7), (0.65, 0.7), (0.6, 0.75))},
    name="frost",
    standard={"mnist-c": 5},
)
def mnist_frost(
    picture: Array,
    rng: Draws,
    clear: float,
    ice: float,
    *,
    textures: str | Path | None = None,
) -> Array:
    """Lay a crop of a photograph of frost over a digit."""
    crop = _frost_crop(picture.shape, rng, 1, textures)
    mixed: Array = np.clip(clear * picture + ice * crop, 0, 255).astype(np.float32)
    return mixed.astype(np.uint8)


def _frost_crop(
    shape: tuple[int, ...], rng: Draws, scale: float, folder: str | Path | None
) -> Array:
    height, width, channels = shape
    texture = _frost.textures(folder, scale, channels == 1)[rng.randint(0, 5, 1)[0]]
    if texture.shape[0] <= height or texture.shape[1] <= width:
        import cv2

        grow = max((height + 1) / texture.shape[0], (width + 1) / texture.shape[1])
        size = (math.ceil(texture.shape[1] * grow), math.ceil(texture.shape[0] * grow))
        texture = cv2.resize(texture, size).reshape(size[1], size[0], channels)
    top = rng.randint(0, texture.shape[0] - height, 1)[0]
    left = rng.randint(0, texture.shape[1] - width, 1)[0]
    crop: Array = texture[top : top + height, left : left + width]
    return crop


@corruption(
    {
        "imagenet-c": ((1.5, 2, 256), (2, 2, 256), (2.5, 1.7, 256), (2.5, 1.5, 256), (3, 1.4, 256)),
        "imagenet-299": (
            (1.5, 2, 512),
            (2, 2, 512),
            (2.5, 1.8, 512),
            (2.5, 1.6, 512),
            (3, 1.5, 512),
        ),
        "tiny-imagenet-c": (
            (0.4, 3, 64),
            (0.7, 3, 64),
            (1, 2.5, 64),
            (1.5, 2, 64),
            (2, 1.75, 64),
        ),
        "cifar-c": ((0.2, 3, 32), (0.5, 3, 32), (0.75, 2.5, 32), (1, 2, 32), (1.5, 1.75, 32)),
        "mnist-c": ((1.5, 2, 256), (2, 2, 256), (2.5, 1.7, 256), (2.5, 1.5, 256), (3, 1.4, 256)),
    },
    standard={"mnist-c": 5},
)
def fog(picture: Array, rng: Draws, thickness: float, decay: float, side: int) -> Array:
    """Add a cloud of plasma fractal, and lower the contrast by as much."""
    side = _cloud_side(side, *picture.shape[:2])
    cloud = np.zeros((side, side))
    _plasma(rng.random_sample(side * side - 1), decay, cloud)
    low, high = cloud.min(), cloud.max()
    out = np.empty_like(picture)
    _hang(picture, cloud, low, high - low, thickness, UNIT[picture.max()], out)
    return out


def _cloud_side(least: int, height: int, width: int) -> int:
    """Return the side of a cloud for a picture: as long as it, but not for a thin strip.

    The cloud is periodic, so that a strip may go around it.
    """
    side = 1 << (max(height, width) - 1).bit_length()
    while side * side > 16 * height * width:
        side //= 2
    return max(side, least)


@corruption(
    {
        "imagenet-c": (0.1, 0.2, 0.3, 0.4, 0.5),
        "imagenet-299": (0.1, 0.2, 0.3, 0.4, 0.5),
        "tiny-imagenet-c": (0.1, 0.2, 0.3, 0.4, 0.5),
        "cifar-c": (0.05, 0.1, 0.15, 0.2, 0.3),
    },
    random=False,
)
def brightness(picture: Array, rng: Draws, amount: float) -> Array:
    """Raise the value of hue, saturation and value."""
    if picture.shape[2] == 1:
        return to_level(np.clip(UNIT + amount, 0, 1))[picture]
    return _colour.change_hsv(picture, 1.0, 0.0, amount)


@corruption(
    {"mnist-c": (0.1, 0.2, 0.3, 0.4, 0.5)},
    name="brightness",
    standard={"mnist-c": 5},
    random=False,
)
def mnist_brightness(picture: Array, rng: Draws, amount: float) -> Array:
    """Raise the value, through colour and back to grey as the published code does."""
    if picture.shape[2] == 3:
        return brightness(picture, rng, amount)
    return to_mnist_level(_colour.grey_of_grey(np.clip(UNIT + amount, 0, 1)))[picture]


_SPATTER = (
    (0.65, 0.3, 4, 0.69, 0.6, 0),
    (0.65, 0.3, 3, 0.68, 0.6, 0),
    (0.65, 0.3, 2, 0.68, 0.5, 0),
    (0.65, 0.3, 1, 0.65, 1.5, 1),
    (0.67, 0.4, 1, 0.65, 1.5, 1),
)
_WATER = np.array([175, 238, 238]) / 255
_MUD = np.array([63, 42, 20]) / 255


@corruption(
    {
        "imagenet-c": _SPATTER,
        "imagenet-299": (
            (0.65, 0.3, 4, 0.69, 0.9, 0),
            (0.65, 0.3, 3.5, 0.68, 0.9, 0),
            (0.65, 0.3, 3, 0.68, 0.8, 0),
            (0.65, 0.3, 1.2, 0.65, 1.8, 1),
            (0.67, 0.4, 1.2, 0.65, 1.8, 1),
        ),
        "tiny-imagenet-c": (
            (0.62, 0.1, 0.7, 0.7, 0.6, 0),
            (0.65, 0.1, 0.8, 0.7, 0.6, 0),
            (0.65, 0.3, 1, 0.69, 0.6, 0),
            (0.65, 0.1, 0.7, 0.68, 0.6, 1),
            (0.65, 0.1, 0.5, 0.67, 0.6, 1),
        ),
        "cifar-c": (
            (0.62, 0.1, 0.7, 0.7, 0.5, 0),
            (0.65, 0.1, 0.8, 0.7, 0.5, 0),
            (0.65, 0.3, 1, 0.69, 0.5, 0),
            (0.65, 0.1, 0.7, 0.69, 0.6, 1),
            (0.65, 0.1, 0.5, 0.68, 0.6, 1),
        ),
    }
)
def spatter(
    picture: Array,
    rng: Draws,
    mean: float,
    spread: float,
    sigma: float,
    threshold: float,
    strength: float,
    mud: int,
) -> Array:
    """Splash water on the lens, or mud in the two worst severities."""
    liquid = _liquid(picture, rng, mean, spread, sigma, threshold)
    colour = _MUD if mud else _WATER
    if picture.shape[2] == 1:
        colour = np.array([_colour.WEIGHTS @ colour])
    mask = _mud_mask(liquid, threshold, strength) if mud else _water_mask(liquid, strength)
    out = np.empty_like(picture)
    _splash(picture, UNIT32, mask, colour.astype(np.float32), bool(mud), out)
    return out


@corruption({"mnist-c": _SPATTER}, name="spatter", standard={"mnist-c": 4})
def mnist_spatter(
    picture: Array,
    rng: Draws,
    mean: float,
    spread: float,
    sigma: float,
    threshold: float,
    strength: float,
    mud: int,
) -> Array:
    """Splash mud on a digit, at every severity."""
    liquid = _liquid(picture, rng, mean, spread, sigma, threshold)
    mask = _mud_mask(liquid, threshold, strength)
    colour = np.full(picture.shape[2], _MUD[0], np.float32)
    out = np.empty_like(picture)
    _splash(picture, UNIT32, mask, colour, True, out)
    return out


def _liquid(
    picture: Array, rng: Draws, mean: float, spread: float, sigma: float, threshold: float
) -> Array:
    layer = rng.normal(mean, spread, picture.shape[:2])[..., None]
    smooth = _filters.gaussian(layer, sigma)[..., 0]
    smooth[smooth < threshold] = 0
    return smooth


def _mud_mask(liquid: Array, threshold: float, sigma: float) -> Array:
    mask = _filters.gaussian((liquid > threshold).astype(np.float32)[..., None], sigma)[..., 0]
    mask[mask < 0.8] = 0
    return mask


def _water_mask(liquid: Array, strength: float) -> Array:
    import cv2

    drops = (liquid * 255).astype(np.uint8)
    distance = cv2.distanceTransform(255 - cv2.Canny(drops, 50, 150), cv2.DIST_L2, 5)
    distance = cv2.blur(np.minimum(distance, 20), (3, 3)).astype(np.uint8)
    kernel_ = np.array([[-2, -1, 0], [-1, 1, 1], [0, 1, 2]])
    relief = cv2.filter2D(cv2.equalizeHist(distance), cv2.CV_8U, kernel_)
    mask: Array = drops * cv2.blur(relief, (3, 3)).astype(np.float32)
    peak = mask.max()
    return mask / peak * np.float32(strength) if peak > 0 else mask


# ---------------------------------------------------------------- kernels


@kernel
def _overlay(picture: Array, texture: Array, clear: float, ice: float, out: Array) -> None:
    height, width, channels = picture.shape
    for y in range(height):
        for x in range(width):
            for c in range(channels):
                value = clear * picture[y, x, c] + ice * texture[y, x, c]
                out[y, x, c] = np.uint8(np.int32(min(value, 255.0)))


@kernel
def _plasma(sample: Array, decay: float, cloud: Array) -> None:
    """Fill a square, whose side is a power of two, by the diamond-square algorithm."""
    side = cloud.shape[0]
    wrap = side - 1
    step = side
    wibble = 100.0
    drawn = 0
    while step >= 2:
        half = step // 2
        for top in range(0, side, step):
            bottom = (top + step) & wrap
            for left in range(0, side, step):
                right = (left + step) & wrap
                west = cloud[top, left] + cloud[bottom, left]
                east = cloud[top, right] + cloud[bottom, right]
                noise = -wibble + (2 * wibble) * sample[drawn]
                drawn += 1
                cloud[top + half, left + half] = (west + east) / 4 + wibble * noise
        for top in range(0, side, step):  # the middles of the horizontal edges
            above = (top - half) & wrap
            for left in range(0, side, step):
                middle = left + half
                vertical = cloud[top + half, middle] + cloud[above, middle]
                across = cloud[top, left] + cloud[top, (left + step) & wrap]
                noise = -wibble + (2 * wibble) * sample[drawn]
                drawn += 1
                cloud[top, middle] = (vertical + across) / 4 + wibble * noise
        for top in range(0, side, step):  # the middles of the vertical edges
            middle, bottom = top + half, (top + step) & wrap
            for left in range(0, side, step):
                horizontal = cloud[middle, left + half] + cloud[middle, (left - half) & wrap]
                along = cloud[top, left] + cloud[bottom, left]
                noise = -wibble + (2 * wibble) * sample[drawn]
                drawn += 1
                cloud[middle, left] = (horizontal + along) / 4 + wibble * noise
        step = half
        wibble /= decay


@kernel
def _hang(
    picture: Array, cloud: Array, low: float, span: float, thickness: float, peak: float, out: Array
) -> None:
    height, width, channels = picture.shape
    wrap = cloud.shape[0] - 1
    veil = np.empty(width * channels)
    for y in range(height):
        for x in range(width):
            for c in range(channels):
                veil[x * channels + c] = cloud[y & wrap, x & wrap]
        source, target = picture[y].reshape(-1), out[y].reshape(-1)
        for i in range(veil.size):
            hung = source[i] / 255.0 + thickness * ((veil[i] - low) / span)
            value = hung * peak / (peak + thickness)
            target[i] = np.uint8(np.int32(min(max(value, 0.0), 1.0) * 255.0))


@kernel
def _fall(
    picture: Array, layer: Array, grey: Array, unit: Array, opacity: Any, rest: Any, out: Array
) -> None:
    height, width, channels = picture.shape
    falling = np.empty(width * channels)
    rising = np.empty(width * channels)
    white = np.empty(width * channels, np.float32)
    for y in range(height):
        for x in range(width):
            down = unit[layer[y, x, 0]]
            up = unit[layer[height - 1 - y, width - 1 - x, 0]]
            light = grey[y, x] * np.float32(1.5) + np.float32(0.5)
            for i in range(x * channels, (x + 1) * channels):
                falling[i], rising[i], white[i] = down, up, light
        source, target = picture[y].reshape(-1), out[y].reshape(-1)
        for i in range(white.size):
            here = np.float32(source[i] / 255.0)
            scene = opacity * here + rest * max(here, white[i])
            value = (scene + falling[i]) + rising[i]
            target[i] = np.uint8(np.int32(min(max(value, 0.0), 1.0) * 255.0))


@kernel
def _splash(
    picture: Array, unit: Array, mask: Array, colour: Array, opaque: bool, out: Array
) -> None:
    height, width, channels = picture.shape
    one = np.float32(1)
    for y in range(height):
        for x in range(width):
            here = mask[y, x]
            through = one - here if opaque else one
            for c in range(channels):
                value = unit[picture[y, x, c]] * through + colour[c] * here
                level = min(max(value, np.float32(0)), one) * np.float32(255)
                out[y, x, c] = np.uint8(np.int32(level))
