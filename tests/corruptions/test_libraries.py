"""The corruptions as the usual libraries would make them, where no reference outputs reach.

The 299-pixel parameters have no reference outputs, nor have sides that are not equal. Here the
same steps are written down with NumPy, SciPy, OpenCV and scikit-image of today, from the figures
in the authors' scripts, and drawn from the same legacy stream. Libraries have changed since 2019,
so that a value may round to the next level.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
import pytest
from scipy import ndimage
from skimage import color, data, filters

from shiftbed.corruptions import corrupt

Picture = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.floating]
Draws = np.random.RandomState

#: The share of values that may be rounded to a neighbouring level, 0.5% but where stated, and the
#: share that may be further away: OpenCV's warp no longer samples at multiples of 1/32 pixel.
ROUNDED = {"elastic_transform": (0.1, 0.001)}


def levels(values: Floats) -> Picture:
    return (np.clip(values, 0, 1) * 255).astype(np.uint8)


def gaussian_noise(x: Floats, rng: Draws, scale: float) -> Floats:
    return x + rng.normal(size=x.shape, scale=scale)


def shot_noise(x: Floats, rng: Draws, photons: float) -> Floats:
    return np.asarray(rng.poisson(x * photons) / photons)


def impulse_noise(x: Floats, rng: Draws, amount: float) -> Floats:
    flipped = rng.random_sample(x.shape) < amount
    salted = rng.random_sample(x.shape) < 0.5
    return np.where(flipped, salted * 1.0, x)


def speckle_noise(x: Floats, rng: Draws, scale: float) -> Floats:
    return x + x * rng.normal(size=x.shape, scale=scale)


def gaussian_blur(x: Floats, rng: Draws, sigma: float) -> Floats:
    return np.asarray(filters.gaussian(x, sigma, channel_axis=-1))


def glass_blur(x: Floats, rng: Draws, sigma: float, reach: int, rounds: int) -> Floats:
    pixels = levels(gaussian_blur(x, rng, sigma))
    height, width, _ = pixels.shape
    for _ in range(rounds):
        for row in reversed(range(reach + 1, height - reach + 1)):
            for column in reversed(range(reach + 1, width - reach + 1)):
                right, down = rng.randint(-reach, reach, size=2)
                pixels[row, column] = pixels[row + down, column + right]
    return gaussian_blur(pixels / 255, rng, sigma)


def defocus_blur(x: Floats, rng: Draws, radius: float, soft: float) -> Floats:
    reach, side = (8, 3) if radius <= 8 else (radius, 5)
    grid = np.arange(-reach, reach + 1) ** 2
    disk = (np.add.outer(grid, grid) <= radius**2).astype(np.float32)
    disk = cv2.GaussianBlur(disk / disk.sum(), (side, side), soft)
    return np.asarray(cv2.filter2D(x, -1, disk))


def motion_blur(x: Floats, rng: Draws, radius: float, sigma: float) -> Floats:
    """By hand: the weighted mean along a line that begins at each pixel."""
    angle = np.deg2rad(rng.uniform(-45, 45))
    along = np.arange(2 * int(np.ceil(radius)) + 1)
    weights = np.exp(-(along**2) / (2 * sigma**2))
    total = np.zeros_like(x)
    height, width, _ = x.shape
    for step, weight in zip(along, weights / weights.sum(), strict=True):
        rows = np.arange(height) + int(np.ceil(step * np.sin(angle) - 0.5))
        columns = np.arange(width) + int(np.ceil(step * np.cos(angle) - 0.5))
        total += weight * x[np.clip(rows, 0, height - 1)][:, np.clip(columns, 0, width - 1)]
    return total + 0.5 / 65535  # rounded to 16 bits before it is cut


def zoom_blur(x: Floats, rng: Draws, stop: float, step: float) -> Floats:
    x = x.astype(np.float32)
    total, factors = x.copy(), np.arange(1, stop, step)
    for factor in factors:
        total += zoomed(x, factor)
    return total / np.float32(len(factors) + 1)


def zoomed(x: Floats, factor: float) -> Floats:
    kept = [int(np.ceil(side / factor)) for side in x.shape[:2]]
    starts = [(side - keep) // 2 for side, keep in zip(x.shape[:2], kept, strict=True)]
    cut = x[starts[0] : starts[0] + kept[0], starts[1] : starts[1] + kept[1]]
    large = ndimage.zoom(cut, (factor, factor, 1), order=1)
    trims = [(large.shape[axis] - x.shape[axis]) // 2 for axis in (0, 1)]
    inside = tuple(slice(trim, trim + side) for trim, side in zip(trims, x.shape[:2], strict=True))
    return np.asarray(large[inside])


def fog(x: Floats, rng: Draws, thick: float, decay: float, side: int) -> Floats:
    cloud = np.zeros((side, side))
    step, wide = side, 100.0
    while step >= 2:
        half = step // 2
        corners = cloud[::step, ::step]
        square = sum(
            np.roll(corners, shift, (0, 1)) for shift in ((0, 0), (-1, 0), (0, -1), (-1, -1))
        )
        cloud[half::step, half::step] = square / 4 + wide * rng.uniform(-wide, wide, square.shape)
        middles = cloud[half::step, half::step]
        for axis, (rows, columns) in enumerate(((0, half), (half, 0))):
            near = middles + np.roll(middles, 1, axis) + corners + np.roll(corners, -1, 1 - axis)
            drawn = wide * rng.uniform(-wide, wide, near.shape)
            cloud[rows::step, columns::step] = near / 4 + drawn
        step, wide = half, wide / decay
    cloud -= cloud.min()
    veil = (cloud / cloud.max())[: x.shape[0], : x.shape[1], None]
    return (x + thick * veil) * x.max() / (x.max() + thick)


def brightness(x: Floats, rng: Draws, amount: float) -> Floats:
    hsv = color.rgb2hsv(x)
    hsv[..., 2] = np.clip(hsv[..., 2] + amount, 0, 1)
    return np.asarray(color.hsv2rgb(hsv))


def saturate(x: Floats, rng: Draws, gain: float, more: float) -> Floats:
    hsv = color.rgb2hsv(x)
    hsv[..., 1] = np.clip(hsv[..., 1] * gain + more, 0, 1)
    return np.asarray(color.hsv2rgb(hsv))


def contrast(x: Floats, rng: Draws, factor: float) -> Floats:
    mean = x.mean(axis=(0, 1), keepdims=True)
    return (x - mean) * factor + mean


def elastic_transform(x: Floats, rng: Draws, reach: float, sigma: float, jitter: float) -> Floats:
    x = x.astype(np.float32)
    height, width, channels = x.shape
    middle, arm = np.array([height // 2, width // 2]), min(height, width) // 3
    corners = (middle + arm * np.array([[1, 1], [1, -1], [-1, -1]])).astype(np.float32)
    moved = corners + rng.uniform(-jitter, jitter, (3, 2)).astype(np.float32)
    shear = cv2.getAffineTransform(corners, moved)
    x = np.asarray(cv2.warpAffine(x, shear, (width, height), borderMode=cv2.BORDER_REFLECT_101))
    fields = [
        reach
        * filters.gaussian(rng.uniform(-1, 1, (height, width)), sigma, mode="reflect", truncate=3)
        for _ in range(2)
    ]
    places = np.indices((height, width)) + np.stack(fields[::-1]).astype(np.float32)
    layers = [
        ndimage.map_coordinates(x[..., c], places, order=1, mode="reflect") for c in range(channels)
    ]
    bent = np.stack(layers, axis=-1)
    outside = (places < 0) | (places > np.reshape([height - 1, width - 1], (2, 1, 1)))
    bent[outside.any(axis=0)] = np.nan  # SciPy reflects otherwise than in 2019
    return bent


#: The steps, and the figures of the 299-pixel script for each severity.
AT_299: dict[str, tuple[Callable[..., Floats], list[tuple[Any, ...]]]] = {
    "gaussian_noise": (gaussian_noise, [(0.09,), (0.13,), (0.19,), (0.27,), (0.40,)]),
    "shot_noise": (shot_noise, [(50,), (20,), (10,), (5,), (3,)]),
    "impulse_noise": (impulse_noise, [(0.04,), (0.07,), (0.10,), (0.18,), (0.28,)]),
    "speckle_noise": (speckle_noise, [(0.16,), (0.21,), (0.36,), (0.46,), (0.61,)]),
    "gaussian_blur": (gaussian_blur, [(1.5,), (2.5,), (3.5,), (4.5,), (6.5,)]),
    "glass_blur": (glass_blur, [(0.8, 1, 3), (1, 3, 1), (1.1, 2, 4), (1.2, 4, 2), (1.6, 5, 2)]),
    "defocus_blur": (defocus_blur, [(4, 0.1), (5, 0.5), (7, 0.5), (10, 0.5), (12, 0.5)]),
    "motion_blur": (motion_blur, [(12, 4), (17, 6), (17, 9), (17, 13), (22, 16)]),
    "zoom_blur": (
        zoom_blur,
        [(1.11, 0.01), (1.16, 0.01), (1.21, 0.02), (1.26, 0.02), (1.31, 0.03)],
    ),
    "fog": (fog, [(1.5, 2, 512), (2, 2, 512), (2.5, 1.8, 512), (2.5, 1.6, 512), (3, 1.5, 512)]),
    "brightness": (brightness, [(0.1,), (0.2,), (0.3,), (0.4,), (0.5,)]),
    "contrast": (contrast, [(0.4,), (0.3,), (0.2,), (0.1,), (0.05,)]),
    "saturate": (saturate, [(0.3, 0), (0.1, 0), (2, 0), (5, 0.1), (20, 0.2)]),
    "elastic_transform": (
        elastic_transform,
        [
            (360 * 2, 360 * 0.7, 360 * 0.1),
            (360 * 2, 360 * 0.08, 360 * 0.2),
            (360 * 0.05, 360 * 0.01, 360 * 0.02),
            (360 * 0.07, 360 * 0.01, 360 * 0.02),
            (360 * 0.12, 360 * 0.01, 360 * 0.02),
        ],
    ),
}


@pytest.mark.parametrize("severity", range(1, 6))
@pytest.mark.parametrize("name", AT_299)
@pytest.mark.parametrize("shape", [(299, 299), (70, 111), (90, 64)], ids=["299", "wide", "tall"])
def test_the_libraries_of_today_make_the_same(
    name: str, severity: int, shape: tuple[int, int]
) -> None:
    if name == "glass_blur" and shape == (299, 299) and severity in (1, 3):
        shape = (149, 149)  # pixel by pixel, in a Python loop
    source = np.ascontiguousarray(data.astronaut()[20 : 20 + shape[0], 150 : 150 + shape[1]])
    steps, figures = AT_299[name]
    values = steps(source / 255, Draws(17), *figures[severity - 1])
    rng = Draws(17)
    ours = corrupt(source, name, severity, variant="imagenet-299", rng=rng)
    known = np.isfinite(values)
    apart = np.abs(ours[known].astype(int) - levels(values[known]))
    rounded, moved = ROUNDED.get(name, (0.005, 0.0))
    assert np.count_nonzero(apart) / apart.size <= rounded
    assert np.count_nonzero(apart > 1) / apart.size <= moved
