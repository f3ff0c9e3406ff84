"""Blur: a lens, a hand or a window between the camera and the world."""

from __future__ import annotations

import functools

import numpy as np

from shiftbed.corruptions import _filters
from shiftbed.corruptions._filters import to_level, to_mnist_level, unit
from shiftbed.corruptions._jit import Array, kernel
from shiftbed.corruptions._random import Draws, Stream
from shiftbed.corruptions._registry import corruption

_GAUSSIAN = {
    "imagenet-c": (1, 2, 3, 4, 6),
    "imagenet-299": (1.5, 2.5, 3.5, 4.5, 6.5),
    "tiny-imagenet-c": (0.5, 0.75, 1, 1.25, 1.5),
    "cifar-c": (0.4, 0.6, 0.7, 0.8, 1),
}
_MNIST_GAUSSIAN = {"mnist-c": (1, 2, 3, 4, 6)}


@corruption(_GAUSSIAN, random=False)
def gaussian_blur(picture: Array, rng: Draws, sigma: float) -> Array:
    """Smooth by a Gaussian."""
    return _filters.gaussian(unit(picture), sigma, out=np.empty_like(picture))


@corruption(_MNIST_GAUSSIAN, name="gaussian_blur", standard={"mnist-c": 2}, random=False)
def mnist_gaussian_blur(picture: Array, rng: Draws, sigma: float) -> Array:
    """Smooth by a Gaussian, along the height only.

    The published code takes the width of a digit for its colour channels.
    """
    return to_mnist_level(_filters.gaussian(unit(picture), sigma, axes=(0,)))


@corruption(
    {
        "imagenet-c": ((0.7, 1, 2), (0.9, 2, 1), (1, 2, 3), (1.1, 3, 2), (1.5, 4, 2)),
        "imagenet-299": ((0.8, 1, 3), (1, 3, 1), (1.1, 2, 4), (1.2, 4, 2), (1.6, 5, 2)),
        "tiny-imagenet-c": ((0.1, 1, 1), (0.5, 1, 1), (0.6, 1, 2), (0.7, 2, 1), (0.9, 2, 2)),
        "cifar-c": ((0.05, 1, 1), (0.25, 1, 1), (0.4, 1, 1), (0.25, 1, 2), (0.4, 1, 2)),
    }
)
def glass_blur(picture: Array, rng: Draws, sigma: float, reach: int, rounds: int) -> Array:
    """Smooth, let each pixel copy a neighbour, several times over, and smooth again.

    The published code means to swap the two pixels, but on views of one colour array: the
    neighbour is copied and keeps its own value.
    """
    image = unit(picture)
    pixels = _filters.gaussian(image, sigma, out=np.empty_like(picture))
    height, width, _ = pixels.shape
    visits = max(0, height - 2 * reach) * max(0, width - 2 * reach)
    for _ in range(rounds):
        _copy_neighbours(pixels, rng.randint(-reach, reach, (visits, 2)), reach)
    return _filters.gaussian(unit(pixels, out=image), sigma, out=pixels)


@corruption(
    {"mnist-c": ((0.7, 1, 2), (0.9, 2, 1), (1, 2, 3), (1.1, 3, 2), (1.5, 4, 2))},
    name="glass_blur",
    standard={"mnist-c": 1},
)
def mnist_glass_blur(picture: Array, rng: Draws, sigma: float, reach: int, rounds: int) -> Array:
    """Smooth along the height, swap every other pixel with a neighbour, and smooth again."""
    pixels = to_level(_filters.gaussian(unit(picture), sigma, axes=(0,)))
    height, width, _ = pixels.shape
    visits = max(0, height - 2 * reach) * max(0, width - 2 * reach)
    for _ in range(rounds):
        if isinstance(rng, Stream):
            chosen = rng.randint(0, 2, visits) == 0
            steps = rng.randint(-reach, reach, (visits, 2))
        else:  # the published code draws a step only for the pixels that are chosen
            chosen = np.zeros(visits, bool)
            steps = np.zeros((visits, 2), np.int64)
            for visit in range(visits):
                chosen[visit] = rng.randint(0, 2, 1)[0] == 0
                if chosen[visit]:
                    steps[visit] = rng.randint(-reach, reach, 2)
        _swap_neighbours(pixels, chosen, steps, reach)
    return to_mnist_level(_filters.gaussian(unit(pixels), sigma, axes=(0,)))


_DEFOCUS = ((3, 0.1), (4, 0.5), (6, 0.5), (8, 0.5), (10, 0.5))


@corruption(
    {
        "imagenet-c": _DEFOCUS,
        "imagenet-299": ((4, 0.1), (5, 0.5), (7, 0.5), (10, 0.5), (12, 0.5)),
        "tiny-imagenet-c": ((0.5, 0.6), (1, 0.1), (1.5, 0.1), (2.5, 0.01), (3, 0.1)),
        "cifar-c": ((0.3, 0.4), (0.4, 0.5), (0.5, 0.6), (1, 0.2), (1.5, 0.1)),
    },
    random=False,
)
def defocus_blur(picture: Array, rng: Draws, radius: float, alias_blur: float) -> Array:
    """Spread each pixel over a disk, as a lens out of focus does."""
    return to_level(_filters.correlate_disk(picture, _disk(radius, alias_blur)))


@corruption({"mnist-c": _DEFOCUS}, name="defocus_blur", standard={"mnist-c": 1}, random=False)
def mnist_defocus_blur(picture: Array, rng: Draws, radius: float, alias_blur: float) -> Array:
    """Spread each pixel of a digit over a disk."""
    return to_mnist_level(_filters.correlate_disk(picture, _disk(radius, alias_blur)))


_MOTION = ((10, 3), (15, 5), (15, 8), (15, 12), (20, 15))


@corruption(
    {
        "imagenet-c": _MOTION,
        "imagenet-299": ((12, 4), (17, 6), (17, 9), (17, 13), (22, 16)),
        "tiny-imagenet-c": ((10, 1), (10, 1.5), (10, 2), (10, 2.5), (12, 3)),
        "cifar-c": ((6, 1), (6, 1.5), (6, 2), (8, 2), (9, 2.5)),
        "mnist-c": _MOTION,
    },
    standard={"mnist-c": 1},
)
def motion_blur(picture: Array, rng: Draws, radius: float, sigma: float) -> Array:
    """Blur along a line, as a moving camera does."""
    return _filters.motion(picture, radius, sigma, rng.uniform(-45, 45))


def _zooms(*ranges: tuple[float, float]) -> tuple[tuple[tuple[float, ...]], ...]:
    return tuple((tuple(np.arange(1, end, step).tolist()),) for end, step in ranges)


_ZOOM = _zooms((1.11, 0.01), (1.16, 0.01), (1.21, 0.02), (1.26, 0.02), (1.31, 0.03))
_SMALL_ZOOM = _zooms((1.06, 0.01), (1.11, 0.01), (1.16, 0.01), (1.21, 0.01), (1.26, 0.01))


@corruption(
    {
        "imagenet-c": _ZOOM,
        "imagenet-299": _ZOOM,
        "tiny-imagenet-c": _SMALL_ZOOM,
        "cifar-c": _SMALL_ZOOM,
        "mnist-c": _ZOOM,
    },
    standard={"mnist-c": 5},
    random=False,
)
def zoom_blur(picture: Array, rng: Draws, factors: tuple[float, ...]) -> Array:
    """Average over zooms into the middle, as a camera does that moves forward."""
    image = unit(picture, np.float32)
    total = _filters.sum_of_zooms(image, factors)
    return to_level((image + total) / np.float32(len(factors) + 1))


# ---------------------------------------------------------------- kernels


@functools.cache
def _disk(radius: float, alias_blur: float) -> _filters.Disk:
    """Return a disk of even weights, its rim smoothed."""
    reach, size = (8, 3) if radius <= 8 else (int(radius), 5)
    x, y = np.meshgrid(np.arange(-reach, reach + 1), np.arange(-reach, reach + 1))
    disk = (x**2 + y**2 <= radius**2).astype(np.float32)
    disk /= disk.sum()
    return _filters.Disk(_softened(_softened(disk, alias_blur, size).T, alias_blur, size).T)


def _softened(image: Array, sigma: float, size: int) -> Array:
    """Smooth along the lines by a Gaussian of ``size`` weights, mirrored about the edges.

    The last bit of a weight decides whether a flat area falls by a level. So each step is in
    single precision, as in the OpenCV of 2019; today's has steps of its own for each processor.
    """
    reach = size // 2
    weights = np.exp(-0.5 / sigma**2 * np.arange(-reach, reach + 1.0) ** 2).astype(np.float32)
    weights = (weights * (1 / weights.sum(dtype=np.float64))).astype(np.float32)[reach:]
    padded = np.pad(image, ((0, 0), (reach, reach)), mode="reflect")
    width = image.shape[1]
    out: Array = image * weights[0]
    for step in range(1, reach + 1):
        left, right = padded[:, reach - step :][:, :width], padded[:, reach + step :][:, :width]
        out += (left + right) * weights[step]
    return out


@kernel
def _copy_neighbours(pixels: Array, steps: Array, reach: int) -> None:
    height, width, channels = pixels.shape
    visit = 0
    for y in range(height - reach, reach, -1):
        for x in range(width - reach, reach, -1):
            from_x, from_y = x + steps[visit, 0], y + steps[visit, 1]
            visit += 1
            for c in range(channels):
                pixels[y, x, c] = pixels[from_y, from_x, c]


@kernel
def _swap_neighbours(pixels: Array, chosen: Array, steps: Array, reach: int) -> None:
    height, width, channels = pixels.shape
    visit = 0
    for y in range(height - reach, reach, -1):
        for x in range(width - reach, reach, -1):
            if chosen[visit]:
                other_x, other_y = x + steps[visit, 0], y + steps[visit, 1]
                for c in range(channels):
                    kept = pixels[y, x, c]
                    pixels[y, x, c] = pixels[other_y, other_x, c]
                    pixels[other_y, other_x, c] = kept
            visit += 1
