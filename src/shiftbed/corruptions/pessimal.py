"""Pessimal noise: the covariance of a normal noise, trained to hurt one model most."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np

from shiftbed.errors import InputError

__all__ = ["PESSIMAL_NORM", "load_matrix", "train"]

Array = np.ndarray[tuple[int, ...], np.dtype[np.floating]]

#: The l2 norm of MNIST-C's pessimal noise, over a whole 28 x 28 picture of 0..1, times two.
PESSIMAL_NORM = 10.63


def load_matrix(matrix: Array | str | Path | None) -> Array:
    """Return the matrix of pessimal noise, from an array or a ``.npy`` file.

    >>> load_matrix(np.eye(196)).shape
    (196, 196)
    """
    if matrix is None:
        raise InputError(
            "pessimal_noise needs its matrix: pass matrix=FILE.npy, or train one with "
            "shiftbed.corruptions.pessimal.train"
        )
    if isinstance(matrix, (str, Path)):
        return _read_matrix(str(matrix))
    matrix = np.asarray(matrix)
    shape = matrix.shape
    if len(shape) != 2 or shape[0] != shape[1] or math.isqrt(shape[0]) ** 2 != shape[0]:
        raise InputError(
            f"the matrix of pessimal noise has shape {shape}; expected square, with the "
            "square of a tile's side, such as (196, 196)"
        )
    if matrix.dtype.kind not in "fiu" or not np.isfinite(matrix).all() or not matrix.any():
        raise InputError(
            "the matrix of pessimal noise gives no noise; expected finite numbers, not all zero"
        )
    return matrix


@functools.lru_cache(maxsize=4)
def _read_matrix(path: str) -> Array:
    try:
        matrix = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as problem:
        raise InputError(
            f"cannot read a matrix for pessimal_noise from {path}: {problem}"
        ) from None
    if not isinstance(matrix, np.ndarray):
        raise InputError(f"{path} holds several arrays; pessimal_noise needs a .npy file with one")
    return load_matrix(matrix)


def train(
    gradient: Callable[[Array, Array], Array],
    pictures: Array,
    labels: Array,
    *,
    tile: int = 14,
    epochs: int = 135,
    batch_size: int = 100,
    learning_rate: float = 1000.0,
    norm: float = PESSIMAL_NORM,
    seed: int = 0,
) -> Array:
    """Train a matrix against a model by stochastic gradient ascent, as MNIST-C's authors did.

    ``gradient(pictures, labels)`` returns the gradient of the model's mean loss in its input,
    for pictures of 0..1 with shape (N, H, W). With torch:

    .. code-block:: python

        def gradient(x, y):
            x = torch.tensor(x, dtype=torch.float32, requires_grad=True)
            F.cross_entropy(model(x[:, None]), torch.tensor(y)).backward()
            return x.grad.numpy()

    The learning rate falls tenfold in epoch 45 and a hundredfold more in epoch 90, out of
    135, or in proportion. The result goes to ``corrupt(..., "pessimal_noise", matrix=...)``.

    >>> weights = np.random.RandomState(0).normal(size=(4, 4))
    >>> trained = train(
    ...     lambda x, y: np.broadcast_to(weights, x.shape), np.full((8, 4, 4), 0.5), np.zeros(8),
    ...     tile=2, epochs=2, batch_size=4, learning_rate=1.0, norm=0.4)
    >>> trained.shape
    (4, 4)
    """
    count, height, width = pictures.shape
    if height % tile or width % tile:
        raise InputError(
            f"pictures of {height} x {width} cannot be tiled by {tile} x {tile}; "
            "choose a tile that divides both sides"
        )
    if len(labels) != count:
        raise InputError(f"{count} pictures were given with {len(labels)} labels")
    rng = np.random.default_rng(seed)
    matrix = np.eye(tile * tile)
    down, across = height // tile, width // tile
    for epoch in range(1, epochs + 1):
        progress = (epoch - 1) * 135 // epochs + 1
        rate = learning_rate * (1.0 if progress < 45 else 0.1 if progress < 90 else 0.001)
        order = rng.permutation(count)
        for start in range(0, count - batch_size + 1, batch_size):
            chosen = order[start : start + batch_size]
            normal = rng.standard_normal((batch_size, tile * tile))
            noise = normal @ matrix
            length = np.linalg.norm(noise, axis=1, keepdims=True)
            direction = noise / length
            tiles = (direction * norm / 4).reshape(-1, 1, tile, 1, tile)
            spread = np.broadcast_to(tiles, (batch_size, down, tile, across, tile))
            noisy = pictures[chosen] + spread.reshape(batch_size, height, width)
            slope = gradient(np.clip(noisy, 0, 1), labels[chosen])
            slope = slope * ((noisy >= 0) & (noisy <= 1))
            folded = slope.reshape(batch_size, down, tile, across, tile).sum(axis=(1, 3))
            flat = folded.reshape(batch_size, -1)
            along = (flat * direction).sum(axis=1, keepdims=True)
            matrix += rate * (normal.T @ ((flat - along * direction) / length)) * norm / 4
    return matrix
