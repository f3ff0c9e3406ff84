"""Colours as the libraries of the published code convert them."""

from __future__ import annotations

import numpy as np

from shiftbed.corruptions._filters import UNIT, UNIT32
from shiftbed.corruptions._jit import Array, kernel

#: scikit-image's weights of red, green and blue in a grey level.
WEIGHTS = np.array([0.2125, 0.7154, 0.0721])


def grey_of_grey(value: Array) -> Array:
    """Return the grey of an (r, g, b) whose three values are all ``value``."""
    grey: Array = np.dot(np.stack([value] * 3, axis=-1), WEIGHTS)
    return grey


def luminance(picture: Array) -> Array:
    """Return the luminance of a picture in 0..1, in single precision, as OpenCV weighs it."""
    grey = np.empty(picture.shape[:2], np.float32)
    _luminance(picture, UNIT32, grey)
    return grey


@kernel
def _luminance(picture: Array, unit: Array, grey: Array) -> None:
    height, width, channels = picture.shape
    for y in range(height):
        for x in range(width):
            if channels == 1:
                grey[y, x] = unit[picture[y, x, 0]]
            else:
                red = unit[picture[y, x, 0]] * np.float32(0.299)
                green = unit[picture[y, x, 1]] * np.float32(0.587)
                blue = unit[picture[y, x, 2]] * np.float32(0.114)
                grey[y, x] = red + green + blue


def change_hsv(picture: Array, gain: float, saturation: float, value: float) -> Array:
    """Return an RGB picture with saturation ``gain * s + saturation`` and value ``v + value``.

    The steps, and so the roundings, are those of scikit-image's rgb2hsv and hsv2rgb.
    """
    out = np.empty_like(picture)
    _change_hsv(picture, UNIT, gain, saturation, value, out)
    return out


@kernel
def _change_hsv(
    picture: Array, unit: Array, gain: float, saturation: float, value: float, out: Array
) -> None:
    height, width, _ = picture.shape
    for y in range(height):
        for x in range(width):
            r = unit[picture[y, x, 0]]
            g = unit[picture[y, x, 1]]
            b = unit[picture[y, x, 2]]
            v = max(max(r, g), b)
            delta = v - min(min(r, g), b)
            s = h = 0.0
            if delta > 0.0:
                s = delta / v
                if b == v:
                    h = 4.0 + (r - g) / delta
                elif g == v:
                    h = 2.0 + (b - r) / delta
                else:
                    h = (g - b) / delta
                h = h / 6.0
                if h < 0.0:
                    h += 1.0
            s = min(max(s * gain + saturation, 0.0), 1.0)
            v = min(max(v + value, 0.0), 1.0)
            sector = np.floor(h * 6.0)
            f = h * 6.0 - sector
            p = v * (1.0 - s)
            q = v * (1.0 - f * s)
            t = v * (1.0 - (1.0 - f) * s)
            which = np.int64(sector) % 6
            if which == 0:
                r, g, b = v, t, p
            elif which == 1:
                r, g, b = q, v, p
            elif which == 2:
                r, g, b = p, v, t
            elif which == 3:
                r, g, b = p, q, v
            elif which == 4:
                r, g, b = t, p, v
            else:
                r, g, b = v, p, q
            out[y, x, 0] = np.uint8(np.int32(min(max(r, 0.0), 1.0) * 255.0))
            out[y, x, 1] = np.uint8(np.int32(min(max(g, 0.0), 1.0) * 255.0))
            out[y, x, 2] = np.uint8(np.int32(min(max(b, 0.0), 1.0) * 255.0))


def rgb_of_hsv(hue: Array, saturation: Array, value: Array) -> Array:
    """Return the (..., 3) RGB of hue, saturation and value, by scikit-image's steps."""
    sector = np.floor(hue * 6)
    f = hue * 6 - sector
    p = value * (1 - saturation)
    q = value * (1 - f * saturation)
    t = value * (1 - (1 - f) * saturation)
    sectors = [(value, t, p), (q, value, p), (p, value, t), (p, q, value), (t, p, value)]
    sectors.append((value, p, q))
    which = sector.astype(np.int64) % 6
    return np.stack([np.choose(which, channel) for channel in zip(*sectors, strict=True)], axis=-1)


def greyscale(picture: Array) -> Array:
    """Return the (H, W, 1) grey of an RGB picture, in the whole numbers of ITU-R 601."""
    weights = np.array([19595, 38470, 7471], np.uint32)
    grey = (picture @ weights + np.uint32(0x8000)) >> np.uint32(16)
    return grey.astype(np.uint8)[..., None]
