"""One call for every corruption of every benchmark."""

from __future__ import annotations

import operator
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftbed.corruptions import _registry
from shiftbed.errors import InputError

Picture = NDArray[np.uint8]


def corrupt(
    picture: Picture,
    name: str,
    severity: int | None = None,
    *,
    variant: str = "imagenet-c",
    seed: int = 0,
    key: str | Sequence[str] = "",
    rng: np.random.RandomState | np.random.Generator | None = None,
    workers: int | None = None,
    **options: Any,
) -> Picture:
    """Return a corrupted copy of a picture, or of a batch of pictures.

    A picture is a ``uint8`` array of shape (H, W), (H, W, 1) or (H, W, 3), of any size; a
    batch is (N, H, W, 1 or 3), and ``key`` is then a list with a name for each picture (its
    position, if no list is given). What is drawn depends on (seed, key, name, severity)
    alone, so that a picture's corruption is the same in any batch, order or thread.

    With ``rng`` given, the draws come from it instead, picture after picture. A
    ``RandomState`` gives the pixels of the benchmark's published code.

    ``severity`` may be left out where the benchmark has a standard one (MNIST-C) or the
    corruption has none. ``options`` go to the corruptions that take some, such as
    ``textures`` of frost and ``matrix`` of pessimal noise. ``workers`` is the number of
    threads for a batch: by default, one for each core.

    >>> import numpy as np
    >>> picture = np.full((24, 32, 3), 100, np.uint8)
    >>> corrupt(picture, "contrast", 3).shape
    (24, 32, 3)
    >>> digit = np.zeros((28, 28), np.uint8)
    >>> corrupt(digit, "stripe", variant="mnist-c")[0, ::7].tolist()
    [255, 0, 0, 255]
    """
    spec = _registry.get(name, variant)
    arguments = spec.arguments(severity)
    _check_options(spec, options)
    check_picture(picture)
    if picture.ndim == 4:
        keys = _batch_keys(key, len(picture))
    elif isinstance(key, str):
        keys = [key]
    else:
        raise InputError(
            f"one picture has one key, a string, but {key!r} was given; "
            "a list of keys goes with a batch (N, H, W, 3)"
        )
    # Numbers and words of NumPy name the same stream as Python's own.
    step = int(severity) if severity is not None else spec.standard
    seed = _whole(seed)

    from shiftbed.corruptions._random import Stream, draws

    def one(source: Picture, key: str) -> Picture:
        generator = None
        if rng is not None:
            generator = draws(rng)
        elif spec.random:
            generator = Stream.keyed(seed, str(key), name, step)
        source = np.require(source, requirements=["C", "W"])  # what the kernels are compiled for
        pixels = source if source.ndim == 3 else source[..., None]
        corrupted: Picture = spec.function(pixels, generator, *arguments, **options)
        return corrupted.reshape(source.shape)

    if picture.ndim < 4:
        return one(picture, keys[0])
    out = np.empty_like(picture, order="C")

    def place(i: int) -> None:
        out[i] = one(picture[i], keys[i])

    threads = 1 if rng is not None else min(workers or os.cpu_count() or 1, len(keys))
    waiting = iter(range(len(keys)))

    def work(_: int) -> None:
        for i in waiting:  # shared: each thread takes the next picture
            place(i)

    if threads <= 1:
        work(0)
    else:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(work, range(threads)))
    return out


def _whole(seed: int) -> int:
    try:
        return operator.index(seed)
    except TypeError:
        raise InputError(f"a seed is a whole number, but {seed!r} was given") from None


def _check_options(spec: _registry.Spec, options: dict[str, Any]) -> None:
    for option in options:
        if option not in spec.options:
            takes = f"it takes {', '.join(spec.options)}" if spec.options else "it takes none"
            raise InputError(f"{spec.name} has no option {option!r}; {takes}")


def check_picture(picture: object) -> None:
    """Refuse what is no uint8 picture, or batch of pictures, with channels last."""
    if not isinstance(picture, np.ndarray):
        raise InputError(
            f"a picture is a uint8 NumPy array, but a {type(picture).__name__} was given; "
            "Corruption(...) takes PIL pictures and torch tensors"
        )
    if picture.dtype != np.uint8:
        advice = {
            "uint16": "16-bit pictures are not supported: scale them to 8 bits",
            "bool": "multiply by 255 and convert it",
        }.get(picture.dtype.name, "scale it to 0..255 and convert it")
        raise InputError(f"a picture is a uint8 array, but {picture.dtype} was given; {advice}")
    shape = picture.shape
    if picture.ndim not in (2, 3, 4) or (picture.ndim > 2 and shape[-1] not in (1, 3)):
        advice = ""
        if picture.ndim > 2 and shape[-1] in (2, 4):
            advice = "; alpha is not supported: convert the picture to RGB"
        elif picture.ndim > 2 and shape[-3] in (1, 3):
            advice = "; channels come last"
        raise InputError(
            "a picture has shape (H, W), (H, W, 1) or (H, W, 3), a batch (N, H, W, 1 or 3), "
            f"but {shape} was given{advice}"
        )
    if 0 in (shape[1:] if picture.ndim == 4 else shape):
        raise InputError(f"a picture of shape {shape} has no pixels")


def _batch_keys(key: str | Sequence[str], count: int) -> Sequence[str]:
    if isinstance(key, str) and not key:
        return [str(i) for i in range(count)]
    if isinstance(key, str) or not isinstance(key, Sequence | np.ndarray):
        raise InputError(
            f"a batch of {count} pictures needs a list of {count} keys, but {key!r} was given"
        )
    if len(key) != count:
        raise InputError(f"a batch of {count} pictures needs {count} keys, not {len(key)}")
    return key
