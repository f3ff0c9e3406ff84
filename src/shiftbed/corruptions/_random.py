"""Where the corruptions' randomness comes from.

Every corruption draws from its generator through the few methods that it shares with
:class:`numpy.random.RandomState`, in the order in which the benchmarks' published code
draws. Two kinds of generator have them: a ``RandomState``, which then gives the authors'
pixels, and :class:`Stream`, the fast default, which gives pixels of the same distribution.
"""

from __future__ import annotations

import hashlib
import math
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from shiftbed.corruptions._jit import Array, kernel
from shiftbed.errors import InputError

Size = int | tuple[int, ...]


class Draws(Protocol):
    """What a corruption may ask of its generator."""

    def normal(self, loc: float, scale: float, size: Size) -> NDArray[Any]:
        """Draw normal values."""
        ...

    def random_sample(self, size: Size) -> NDArray[Any]:
        """Draw values uniform in [0, 1)."""
        ...

    def uniform(self, low: float, high: float) -> float:
        """Draw one value uniform in [low, high)."""
        ...

    def randint(self, low: int, high: int, size: Size) -> NDArray[Any]:
        """Draw integers uniform in [low, high)."""
        ...


class Stream:
    """A fast, seekless stream of random numbers: SFC64, with a ziggurat for normals.

    The whole state is 256 bits: a digest of what names the stream, or bits drawn from a
    NumPy generator. Arrays come in single precision, which is finer than any grey level.

    >>> Stream.keyed(0, "cat.jpg", "fog", 3).randint(0, 10, 4).tolist()
    [5, 4, 1, 6]
    """

    def __init__(self, state: NDArray[np.uint64]) -> None:
        self._state = state
        _warm_up(state)

    @classmethod
    def keyed(cls, *parts: object) -> Stream:
        """Return the stream that belongs to a sequence of names and numbers."""
        digest = hashlib.blake2b(repr(parts).encode("utf-8", "surrogatepass"), digest_size=32)
        return cls(np.frombuffer(digest.digest(), "<u8").astype(np.uint64))

    @classmethod
    def from_generator(cls, generator: np.random.Generator) -> Stream:
        """Return a stream seeded by 256 bits drawn from a NumPy generator."""
        return cls(generator.integers(0, 2**64, 4, dtype=np.uint64))

    def normal(self, loc: float, scale: float, size: Size) -> NDArray[np.float32]:
        """Draw normal values."""
        out = np.empty(size, np.float32)
        _fill_normal(self._state, out.reshape(-1), np.float32(loc), np.float32(scale), *_ZIGGURAT)
        return out

    def random_sample(self, size: Size) -> NDArray[np.float32]:
        """Draw values uniform in [0, 1)."""
        out = np.empty(size, np.float32)
        _fill_uniform(self._state, out.reshape(-1))
        return out

    def uniform(self, low: float, high: float) -> float:
        """Draw one value uniform in [low, high)."""
        return low + (high - low) * float(self.random_sample(1)[0])

    def randint(self, low: int, high: int, size: Size) -> NDArray[np.int32]:
        """Draw integers uniform in [low, high)."""
        out = np.empty(size, np.int32)
        _fill_integers(self._state, out.reshape(-1), low, high - low)
        return out

    def words(self, size: int) -> NDArray[np.uint32]:
        """Draw 32-bit words."""
        out = np.empty(size, np.uint32)
        _fill_words(self._state, out)
        return out


def draws(rng: np.random.RandomState | np.random.Generator | Stream) -> Draws:
    """Return the drawing methods of a generator that a caller gave."""
    if isinstance(rng, np.random.Generator):
        return Stream.from_generator(rng)
    if not isinstance(rng, np.random.RandomState | Stream):
        raise InputError(
            f"rng is a numpy.random.RandomState or a numpy.random.Generator, but {rng!r} was given"
        )
    return rng


def legacy(rng: Draws) -> np.random.RandomState:
    """Return a generator that is not a :class:`Stream` as what it then is."""
    assert isinstance(rng, np.random.RandomState)
    return rng


# ---------------------------------------------------------------- kernels

Word = Any  # numpy.uint64, for Numba alone


@kernel
def _step(a: Word, b: Word, c: Word, d: Word) -> tuple[Word, Word, Word, Word, Word]:
    """Advance SFC64: (a, b, c, counter) -> (a, b, c, counter, output)."""
    out = a + b + d
    rotated = (c << np.uint64(24)) | (c >> np.uint64(40))
    return (
        b ^ (b >> np.uint64(11)),
        c + (c << np.uint64(3)),
        rotated + out,
        d + np.uint64(1),
        out,
    )


@kernel
def _warm_up(state: Array) -> None:
    a, b, c, d = state[0], state[1], state[2], state[3]
    for _ in range(12):
        a, b, c, d, _out = _step(a, b, c, d)
    state[0], state[1], state[2], state[3] = a, b, c, d


@kernel
def _fill_words(state: Array, out: Array) -> None:
    a, b, c, d = state[0], state[1], state[2], state[3]
    n = out.size
    for i in range(0, n - 1, 2):
        a, b, c, d, word = _step(a, b, c, d)
        out[i] = np.uint32(word >> np.uint64(32))
        out[i + 1] = np.uint32(word & np.uint64(0xFFFFFFFF))
    if n % 2:
        a, b, c, d, word = _step(a, b, c, d)
        out[n - 1] = np.uint32(word >> np.uint64(32))
    state[0], state[1], state[2], state[3] = a, b, c, d


@kernel
def _fill_uniform(state: Array, out: Array) -> None:
    a, b, c, d = state[0], state[1], state[2], state[3]
    n = out.size
    unit = np.float32(2.0**-24)
    for i in range(0, n - 1, 2):
        a, b, c, d, word = _step(a, b, c, d)
        out[i] = np.float32(np.int32(word >> np.uint64(40))) * unit
        out[i + 1] = np.float32(np.int32((word >> np.uint64(8)) & np.uint64(0xFFFFFF))) * unit
    if n % 2:
        a, b, c, d, word = _step(a, b, c, d)
        out[n - 1] = np.float32(np.int32(word >> np.uint64(40))) * unit
    state[0], state[1], state[2], state[3] = a, b, c, d


@kernel
def _fill_integers(state: Array, out: Array, low: int, span: int) -> None:
    # Multiply and shift; the bias is span / 2**32, far under what any draw can show.
    a, b, c, d = state[0], state[1], state[2], state[3]
    n = out.size
    wide = np.uint64(span)
    for i in range(0, n - 1, 2):
        a, b, c, d, word = _step(a, b, c, d)
        out[i] = low + np.int32(((word >> np.uint64(32)) * wide) >> np.uint64(32))
        out[i + 1] = low + np.int32(((word & np.uint64(0xFFFFFFFF)) * wide) >> np.uint64(32))
    if n % 2:
        a, b, c, d, word = _step(a, b, c, d)
        out[n - 1] = low + np.int32(((word >> np.uint64(32)) * wide) >> np.uint64(32))
    state[0], state[1], state[2], state[3] = a, b, c, d


_TAIL = 3.442619855899  # where the ziggurat's last layer ends


def _ziggurat() -> tuple[Array, Array, Array]:
    """Return the widths, heights and acceptance bounds of 128 layers of equal area."""
    layers, edge, area = 128, _TAIL, 9.91256303526217e-3

    def density(x: float) -> float:
        return math.exp(-0.5 * x * x)

    x = [0.0] * (layers + 1)
    x[0], x[1] = area / density(edge), edge
    for i in range(2, layers):
        x[i] = math.sqrt(-2.0 * math.log(area / x[i - 1] + density(x[i - 1])))
    width = np.array([value * 2.0**-24 for value in x[:layers]], np.float32)
    height = np.array([density(value) for value in x], np.float32)
    bound = np.array([int(2**24 * x[i + 1] / x[i]) for i in range(layers)], np.int32)
    return width, height, bound


_ZIGGURAT = _ziggurat()


@kernel
def _open_interval(bits: Word) -> Any:
    """Return 24 bits as a number in (0, 1), never 0."""
    return (np.float32(np.int32(bits)) + np.float32(0.5)) * np.float32(2.0**-24)


_BLOCK = 512


@kernel
def _fill_normal(
    state: Array, out: Array, loc: Any, scale: Any, width: Array, height: Array, bound: Array
) -> None:
    """Fill with normals by Marsaglia and Tsang's ziggurat, 32 bits to a draw.

    Of the draws, 98.8% fall into a layer's core and are done at once, two to a word. The
    others wait for the end of their block, so that the quick loop has no branch.
    """
    a, b, c, d = state[0], state[1], state[2], state[3]
    n = out.size
    words = np.empty(_BLOCK, np.uint32)
    late = np.empty(_BLOCK, np.int64)
    for begin in range(0, n, _BLOCK):
        for i in range(0, _BLOCK, 2):
            a, b, c, d, word = _step(a, b, c, d)
            words[i] = np.uint32(word >> np.uint64(32))
            words[i + 1] = np.uint32(word & np.uint64(0xFFFFFFFF))
        waiting = 0
        for i in range(min(_BLOCK, n - begin)):
            bits = words[i]
            layer = bits & np.uint32(127)
            magnitude = np.int32(bits >> np.uint32(8))
            x = np.float32(magnitude) * width[layer]
            out[begin + i] = loc + scale * (-x if bits & np.uint32(128) else x)
            late[waiting] = i
            waiting += magnitude >= bound[layer]
        for place in range(waiting):
            bits = words[late[place]]
            while True:
                layer = bits & np.uint32(127)
                magnitude = np.int32(bits >> np.uint32(8))
                x = np.float32(magnitude) * width[layer]
                if magnitude < bound[layer]:
                    break
                a, b, c, d, word = _step(a, b, c, d)
                u = _open_interval(word >> np.uint64(40))
                if layer == 0:  # the tail beyond the last layer, by Marsaglia's method
                    while True:
                        v = _open_interval((word >> np.uint64(8)) & np.uint64(0xFFFFFF))
                        beyond = -math.log(u) / _TAIL
                        if -2.0 * math.log(v) > beyond * beyond:
                            break
                        a, b, c, d, word = _step(a, b, c, d)
                        u = _open_interval(word >> np.uint64(40))
                    x = np.float32(_TAIL + beyond)
                    break
                if height[layer] + u * (height[layer + 1] - height[layer]) < math.exp(-0.5 * x * x):
                    break
                a, b, c, d, word = _step(a, b, c, d)
                bits = np.uint32(word >> np.uint64(32))
            out[begin + late[place]] = loc + scale * (-x if bits & np.uint32(128) else x)
    state[0], state[1], state[2], state[3] = a, b, c, d
