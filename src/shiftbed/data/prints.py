"""Prints of pictures: what shows that two files hold the same picture, whatever became of it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
import numpy.typing as npt

from shiftbed.data.sets import Picture

__all__ = ["NEAR", "Print", "alike", "bands", "print_of"]

#: Cells of a thumbnail, down and across.
_CELLS = (16, 17)
#: The signs of a picture: is a cell of its thumbnail brighter than the one on its right?
_BITS = 256
#: So many of these may differ between two renderings of one picture (other size, quality).
NEAR = 12
#: And so much do their thumbnails correlate at least. Small things on plain ground, like digits,
#: have nearly the same signs, most of which are of the ground, but not this.
_LIKE = 0.99
#: Pictures whose thumbnails vary less than this are plain, and alike without being the same.
_PLAIN = 4.0
#: Bits of a band that count: with its number it fits into 63.
_WIDEST = 48


@dataclass(frozen=True)
class Print:
    """The same picture has the same ``pixels``; a rendering of it has nearly the same thumbnail."""

    #: A hash of the pixels and their shape.
    pixels: bytes
    #: 16 rows of 17 grey cells.
    thumbnail: bytes

    @cached_property
    def cells(self) -> npt.NDArray[np.int16]:
        """The thumbnail's grey levels."""
        return np.frombuffer(self.thumbnail, np.uint8).reshape(_CELLS).astype(np.int16)

    @cached_property
    def signs(self) -> bytes:
        """256 bits: is a cell brighter than the one on its right?"""
        return np.packbits(self.cells[:, 1:] > self.cells[:, :-1]).tobytes()

    @cached_property
    def plain(self) -> bool:
        """Whether the signs say nothing, because there is hardly anything to see."""
        return bool(self.cells.std() < _PLAIN)


def print_of(picture: Picture) -> Print:
    """Return a picture's print.

    >>> print_of(np.zeros((9, 9, 3), np.uint8)).plain
    True
    """
    from PIL import Image

    down, across = _CELLS
    grey = Image.fromarray(picture).convert("L").resize((across, down), Image.Resampling.BOX)
    pixels = hashlib.sha256(str(picture.shape).encode() + picture.tobytes()).digest()
    return Print(pixels, grey.tobytes())


def alike(one: Print, two: Print, near: int = NEAR) -> bool:
    """Return whether two prints are of renderings of one picture, as far as thumbnails show.

    >>> rng = np.random.default_rng(0)
    >>> picture = np.kron(rng.integers(0, 256, (16, 17), np.uint8), np.ones((4, 4), np.uint8))
    >>> darker, another = picture // 2, picture[::-1].copy()
    >>> alike(print_of(picture), print_of(darker)), alike(print_of(picture), print_of(another))
    (True, False)
    """
    if one.plain or two.plain:
        return False
    differ = (int.from_bytes(one.signs) ^ int.from_bytes(two.signs)).bit_count()
    if differ > near:
        return False
    return float(np.corrcoef(one.cells.ravel(), two.cells.ravel())[0, 1]) >= _LIKE


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
