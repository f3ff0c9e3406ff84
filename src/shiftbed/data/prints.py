"""Prints of pictures: what shows that two files hold the same picture, whatever became of it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from shiftbed.data.sets import Picture

__all__ = ["NEAR", "Print", "bands", "distance", "print_of"]

#: The signs of a picture: is a cell of its thumbnail brighter than the one on its right?
_BITS = 256
#: So many of these may differ between two renderings of one picture (other size, quality).
NEAR = 12
#: Pictures whose thumbnails vary less than this are plain, and alike without being the same.
_PLAIN = 4.0
#: Bits of a band that count: with its number it fits into 63.
_WIDEST = 48


@dataclass(frozen=True)
class Print:
    """The same picture has the same ``pixels``; a rendering of it has nearly the same ``signs``."""

    #: A hash of the pixels and their shape.
    pixels: bytes
    #: 256 bits.
    signs: bytes
    #: Whether the signs say nothing, because there is hardly anything to see.
    plain: bool


def print_of(picture: Picture) -> Print:
    """Return a picture's print.

    >>> rng = np.random.default_rng(0)
    >>> picture = np.kron(rng.integers(0, 256, (16, 17), np.uint8), np.ones((4, 4), np.uint8))
    >>> darker = picture // 2
    >>> one, two = print_of(picture), print_of(darker)
    >>> one.pixels == two.pixels, distance(one.signs, two.signs) <= NEAR
    (False, True)
    """
    from PIL import Image

    grey = Image.fromarray(picture).convert("L").resize((17, 16), Image.Resampling.BOX)
    small = np.asarray(grey, np.int16)
    signs = np.packbits(small[:, 1:] > small[:, :-1]).tobytes()
    pixels = hashlib.sha256(str(picture.shape).encode() + picture.tobytes()).digest()
    return Print(pixels, signs, bool(small.std() < _PLAIN))


def distance(one: bytes, two: bytes) -> int:
    """Return in how many places two pictures' signs differ.

    >>> distance(bytes([0b1010]), bytes([0b0110]))
    2
    """
    return (int.from_bytes(one) ^ int.from_bytes(two)).bit_count()


def bands(signs: bytes, near: int = NEAR) -> list[int]:
    """Return ``near + 1`` numbers; signs that differ in at most ``near`` places share one.

    Each is made of every 13th bit or so, all over the picture, because neighbouring bits are
    equal in many pictures: those with a white margin, say.

    >>> rng = np.random.default_rng(0)
    >>> signs = rng.integers(0, 256, 32, np.uint8)
    >>> other = signs.copy()
    >>> other[rng.choice(32, 12, replace=False)] ^= 1
    >>> len(set(bands(signs.tobytes())) & set(bands(other.tobytes()))) >= 1
    True
    """
    bits = np.unpackbits(np.frombuffer(signs, np.uint8))[_order()]
    found = []
    for number in range(near + 1):
        packed = np.packbits(bits[number :: near + 1][:_WIDEST])
        found.append(number << _WIDEST | int.from_bytes(packed.tobytes()))
    return found


@cache
def _order() -> npt.NDArray[np.intp]:
    return np.random.RandomState(0).permutation(_BITS)
