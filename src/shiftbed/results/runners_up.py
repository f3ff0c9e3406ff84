"""The second to fifth class of every picture, coded by what came together before.

A model confuses the same few classes over and over. So for each class, those that were among
the best with it are kept in a list, the most frequent first, and a picture's next class is named
by its place in the list of its first. Encoder and decoder keep the same lists as they go. The
places are written with an adaptive binary range coder (as in LZMA: G. N. N. Martin, 1979), a
class that is not in the list by its number. A class that is the label is not written at all:
its rank is known.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from shiftbed.corruptions._jit import Array, kernel

__all__ = ["decoded", "encoded"]

IntArray = npt.NDArray[np.int32]
Bytes = npt.NDArray[np.uint8]

_LISTS = 4096  # classes whose numbers differ by this share a list
_LONGEST = 63
_ESCAPE = 6  # places 0 to 62 have six sizes: 0, 1-2, 3-6, 7-14, ...
_HALF = 1024  # of a probability in 2048ths
# The coder's registers.
_LOW, _RANGE, _HELD, _WAITING, _AT = range(5)


def encoded(top: IntArray, label: IntArray, rank: IntArray) -> bytes:
    """Return the classes after the first of (N, K) best classes.

    ``label`` is -1 where there is none; ``rank`` is 1 where the label comes first.
    """
    bits = max(int(top.max(initial=0)), 1).bit_length()
    room = np.empty(64 + top.size * (bits // 8 + 8), np.uint8)
    length = _encode(np.ascontiguousarray(top), label, rank, bits, room)
    return bytes([top.shape[1], bits]) + room[:length].tobytes()


def decoded(stream: bytes, first: IntArray, label: IntArray, rank: IntArray) -> IntArray:
    """Return (N, K - 1) classes after the first, or raise ValueError for what is no such code.

    >>> top = np.array([[3, 5, 4], [3, 5, 9], [7, 3, 5]], np.int32)
    >>> label, rank = np.array([3, 9, -1], np.int32), np.array([1, 3, 0], np.int32)
    >>> decoded(encoded(top, label, rank), top[:, 0], label, rank).tolist()
    [[5, 4], [5, 9], [3, 5]]
    """
    if len(stream) < 2 or not 2 <= stream[0] <= 8 or not 1 <= stream[1] <= 31:
        raise ValueError("the classes after the first are damaged")
    top = np.empty((len(first), stream[0]), np.int32)
    top[:, 0] = first
    code = np.frombuffer(stream, np.uint8)[2:]
    if not _decode(code, label, rank, stream[1], top):
        raise ValueError("the classes after the first are damaged")
    return top[:, 1:]


@kernel
def _encode(top: Array, label: Array, rank: Array, bits: int, out: Array) -> int:
    """Write the code to ``out`` and return its length."""
    near, times, lengths, odds = _lists(top.shape[1])
    coder = np.array([0, 0xFFFFFFFF, 0, 0, 0], np.int64)
    for row in range(len(top)):
        best = top[row]
        line = best[0] & (_LISTS - 1)
        for k in range(1, len(best)):
            if rank[row] == k + 1:
                continue
            place = 0
            found = False
            for i in range(lengths[line]):
                if near[line, i] == best[k]:
                    found = True
                    break
                if not _taken(near[line, i], best, k, label[row]):
                    place += 1
            size = _ESCAPE
            if found:
                size = 0
                while (2 << size) - 1 <= place:
                    size += 1
            _put(coder, out, odds, 64 * 8 + 8 * k, size, 3)
            if found:
                _put(coder, out, odds, 64 * size, place - ((1 << size) - 1), size)
            else:
                for bit in range(bits - 1, -1, -1):
                    _put_bit(coder, out, odds, -1, (best[k] >> bit) & 1)
        _learn(near, times, lengths, best)
    for _ in range(5):
        _shift_low(coder, out)
    return int(coder[_AT])


@kernel
def _decode(code: Array, label: Array, rank: Array, bits: int, top: Array) -> bool:
    """Fill in ``top`` after its first column; return whether the code fits."""
    near, times, lengths, odds = _lists(top.shape[1])
    coder = np.array([0, 0xFFFFFFFF, 0, 0, 0], np.int64)
    for _ in range(4):
        _take_byte(coder, code)
    for row in range(len(top)):
        best = top[row]
        line = best[0] & (_LISTS - 1)
        for k in range(1, len(best)):
            if rank[row] == k + 1:
                best[k] = label[row]
                continue
            size = _get(coder, code, odds, 64 * 8 + 8 * k, 3)
            if size == _ESCAPE:
                number = 0
                for _ in range(bits):
                    number = 2 * number + _get_bit(coder, code, odds, -1)
                best[k] = number
                continue
            if size > _ESCAPE:
                return False
            place = _get(coder, code, odds, 64 * size, size) + (1 << size) - 1
            i = 0
            while i < lengths[line]:
                if not _taken(near[line, i], best, k, label[row]):
                    if place == 0:
                        break
                    place -= 1
                i += 1
            if i == lengths[line]:
                return False
            best[k] = near[line, i]
        _learn(near, times, lengths, best)
    return True


# What came together


@kernel
def _lists(kept: int) -> tuple[Array, Array, Array, Array]:
    """Return the lists, how often each of their classes came, their lengths, and all odds."""
    near = np.zeros((_LISTS, _LONGEST), np.int32)
    times = np.zeros((_LISTS, _LONGEST), np.int32)
    odds = np.full(64 * 8 + 8 * kept, _HALF, np.int64)
    return near, times, np.zeros(_LISTS, np.int32), odds


@kernel
def _taken(one: int, best: Array, k: int, label: int) -> bool:
    """Whether a class cannot be the k-th: it came already, or its place is known."""
    if one == label:
        return True
    for i in range(k):  # noqa: SIM110 - compiled
        if best[i] == one:
            return True
    return False


@kernel
def _learn(near: Array, times: Array, lengths: Array, best: Array) -> None:
    """Count the classes of one picture in each other's lists."""
    for i in range(len(best)):
        line = best[i] & (_LISTS - 1)
        for j in range(len(best)):
            if i == j:
                continue
            place = 0
            while place < lengths[line] and near[line, place] != best[j]:
                place += 1
            if place == lengths[line]:
                if place < _LONGEST:
                    lengths[line] += 1
                else:  # instead of the rarest
                    place -= 1
                times[line, place] = 0
            count = times[line, place] + (2 if i == 0 else 1)
            while place > 0 and times[line, place - 1] <= count:
                near[line, place] = near[line, place - 1]
                times[line, place] = times[line, place - 1]
                place -= 1
            near[line, place] = best[j]
            times[line, place] = count


# The range coder. An ``at`` of -1 is an even chance.


@kernel
def _put(coder: Array, out: Array, odds: Array, at: int, value: int, bits: int) -> None:
    """Write a number of so many bits, highest first, each with odds that depend on those above."""
    node = 1
    for bit in range(bits - 1, -1, -1):
        one = (value >> bit) & 1
        _put_bit(coder, out, odds, at + node, one)
        node = 2 * node + one


@kernel
def _get(coder: Array, code: Array, odds: Array, at: int, bits: int) -> int:
    node = 1
    for _ in range(bits):
        node = 2 * node + _get_bit(coder, code, odds, at + node)
    return node - (1 << bits)


@kernel
def _put_bit(coder: Array, out: Array, odds: Array, at: int, bit: int) -> None:
    chance = _HALF if at < 0 else odds[at]
    bound = (coder[_RANGE] >> 11) * chance
    if bit:
        coder[_LOW] += bound
        coder[_RANGE] -= bound
    else:
        coder[_RANGE] = bound
    if at >= 0:
        odds[at] += -(chance >> 5) if bit else (2048 - chance) >> 5
    while coder[_RANGE] < 1 << 24:
        coder[_RANGE] <<= 8
        _shift_low(coder, out)


@kernel
def _shift_low(coder: Array, out: Array) -> None:
    """Write the highest byte, once it is sure that no carry will change it."""
    if coder[_LOW] < 0xFF000000 or coder[_LOW] > 0xFFFFFFFF:
        carry = coder[_LOW] >> 32
        byte = coder[_HELD]
        for _ in range(coder[_WAITING]):
            out[coder[_AT]] = (byte + carry) & 0xFF
            coder[_AT] += 1
            byte = 0xFF
        coder[_WAITING] = 0
        coder[_HELD] = (coder[_LOW] >> 24) & 0xFF
    coder[_WAITING] += 1
    coder[_LOW] = (coder[_LOW] & 0x00FFFFFF) << 8


@kernel
def _get_bit(coder: Array, code: Array, odds: Array, at: int) -> int:
    chance = _HALF if at < 0 else odds[at]
    bound = (coder[_RANGE] >> 11) * chance
    bit = 0
    if coder[_LOW] < bound:
        coder[_RANGE] = bound
    else:
        bit = 1
        coder[_LOW] -= bound
        coder[_RANGE] -= bound
    if at >= 0:
        odds[at] += -(chance >> 5) if bit else (2048 - chance) >> 5
    while coder[_RANGE] < 1 << 24:
        coder[_RANGE] <<= 8
        _take_byte(coder, code)
    return bit


@kernel
def _take_byte(coder: Array, code: Array) -> None:
    byte = code[coder[_AT]] if coder[_AT] < len(code) else 0
    coder[_LOW] = ((coder[_LOW] << 8) | byte) & 0xFFFFFFFF
    coder[_AT] += 1
