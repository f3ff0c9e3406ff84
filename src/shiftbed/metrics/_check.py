"""What the metrics accept, and the sentences that refuse the rest."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from shiftbed.errors import InputError

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

#: Rows of float16 softmax outputs over 1,000 classes sum to one within this.
_SUM_TOLERANCE = 5e-3

#: Sums of float32 probabilities end up this far above 1.
_ROUNDING = 1e-6


def same_length(**arrays: npt.NDArray[Any]) -> int:
    """Return the number of pictures that all arrays agree on."""
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{n:,} {name}" for name, n in lengths.items())
        raise InputError(f"one value per picture is needed in every array; given are {told}")
    n = next(iter(lengths.values()))
    if n == 0:
        raise InputError(f"there are no pictures: {' and '.join(lengths)} are empty")
    return n


def numbers(values: npt.ArrayLike, what: str) -> FloatArray:
    """Return ``values`` as floats of any shape; None becomes NaN."""
    try:
        return np.asarray(values, float)
    except (TypeError, ValueError) as error:
        raise InputError(f"{what} must be numbers, in rows of equal length if in rows") from error


def finite(values: npt.ArrayLike, what: str, ndim: int = 1) -> FloatArray:
    """Return ``values`` as floats of ``ndim`` dimensions, none of them NaN or infinite."""
    array = numbers(values, what)
    if array.ndim != ndim:
        shape = "one number per picture" if ndim == 1 else "one row per picture"
        raise InputError(f"{what} must be {shape}; given is an array of shape {array.shape}")
    broken = np.count_nonzero(~np.isfinite(array))
    if broken:
        raise InputError(f"{what} must be finite; {broken:,} of {array.size:,} are NaN or infinite")
    return array


def logits(values: npt.ArrayLike) -> FloatArray:
    """Return one row of finite logits per picture."""
    array = finite(values, "the logits", ndim=2)
    if array.size == 0:
        raise InputError(f"there are no logits: given is an array of shape {array.shape}")
    return array


def at_least_one(value: int, what: str) -> None:
    """Refuse a count of less than one."""
    if value < 1:
        raise InputError(f"{what} must be at least 1; given is {value}")


def fractions(values: npt.ArrayLike, what: str, ndim: int = 1) -> FloatArray:
    """Return ``values`` as fractions; percent are refused, not guessed at."""
    array = finite(values, what, ndim)
    inside = np.clip(array, 0, 1)
    if array.size and (far := np.abs(array - inside)).max() > _ROUNDING:
        worst = array.flat[np.argmax(far)]
        percent = "; divide percent by 100" if 1 < worst <= 100 else ""
        raise InputError(f"{what} must lie between 0 and 1; one is {worst:g}{percent}")
    return inside


def truths(values: npt.ArrayLike, what: str, ndim: int = 1) -> BoolArray:
    """Return ``values`` as booleans; they may be given as zeros and ones."""
    array = finite(values, what, ndim)
    if np.any((array != 0) & (array != 1)):
        raise InputError(f"{what} must be true or false (1 or 0) for every picture")
    return np.asarray(array == 1)


def classes(values: npt.ArrayLike, what: str, ndim: int = 1) -> npt.NDArray[Any]:
    """Return ``values`` as class names or class numbers."""
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise InputError(f"{what} must be in rows of equal length") from error
    if array.dtype.kind == "O" and all(isinstance(name, str) for name in array.flat):
        array = array.astype(str)
    if array.dtype.kind in "iuUT" and array.ndim == ndim:
        return array
    values = finite(array, what, ndim)
    if np.any(values != np.floor(values)):
        raise InputError(f"{what} must be whole class numbers or class names")
    return values.astype(int)


def same_kind(first: npt.NDArray[Any], second: npt.NDArray[Any], what: str) -> None:
    """Refuse to compare class numbers with class names."""
    if (first.dtype.kind in "iu") != (second.dtype.kind in "iu"):
        raise InputError(f"{what} must both be class numbers or both be class names")


def probabilities(values: npt.ArrayLike) -> FloatArray:
    """Return rows of class probabilities that sum to one."""
    array = finite(values, "the probabilities", ndim=2)
    if array.size == 0:
        raise InputError("there are no pictures: probabilities are empty")
    least, sums = array.min(axis=1), array.sum(axis=1)
    if least.min() < 0:
        found = f"one of picture {least.argmin()} is {least.min():g}"
    elif (far := np.abs(sums - 1)).max() > _SUM_TOLERANCE:
        found = f"those of picture {far.argmax()} sum to {sums[far.argmax()]:g}"
    else:
        return array
    raise InputError(
        f"the probabilities of each picture must be at least 0 and sum to 1; {found}: "
        "are they logits?"
    )
