"""How often the class is right."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from shiftbed.errors import InputError
from shiftbed.metrics import _check
from shiftbed.metrics.estimate import Estimate, clopper_pearson, proportion

__all__ = ["accuracy", "balanced_accuracy", "per_class_accuracy", "top_k_accuracy"]


def accuracy(predicted: npt.ArrayLike, labels: npt.ArrayLike, level: float = 0.95) -> Estimate:
    """Return the share of pictures whose predicted class is their label.

    The interval is Clopper-Pearson's.

    >>> print(accuracy([3, 1, 2, 2], [3, 1, 2, 0]))
    75.0% [19.4, 99.4], n = 4
    """
    right = _right(predicted, labels)
    return proportion(int(right.sum()), len(right), level)


def top_k_accuracy(
    ranked: npt.ArrayLike, labels: npt.ArrayLike, k: int = 5, level: float = 0.95
) -> Estimate:
    """Return the share of pictures whose label is among their ``k`` likeliest classes.

    ``ranked`` has one row of classes per picture, likeliest first, and at least ``k``
    columns. The interval is Clopper-Pearson's.

    >>> print(top_k_accuracy([[3, 0], [1, 2], [2, 1]], [0, 2, 5], k=2))
    66.7% [9.4, 99.2], n = 3
    """
    rows = _check.classes(ranked, "the ranked classes", ndim=2)
    truth = _check.classes(labels, "the labels")
    _check.same_kind(rows, truth, "ranked classes and labels")
    n = _check.same_length(ranked=rows, labels=truth)
    if not 1 <= k <= rows.shape[1]:
        raise InputError(f"top-{k} accuracy needs {k} ranked classes per picture, at least one")
    return proportion(int((rows[:, :k] == truth[:, None]).any(axis=1).sum()), n, level)


def per_class_accuracy(
    predicted: npt.ArrayLike, labels: npt.ArrayLike, level: float = 0.95
) -> dict[Any, Estimate]:
    """Return the accuracy on the pictures of each class, by class.

    The intervals are Clopper-Pearson's. Each holds for its class alone: among 1,000
    classes, some 50 of the 95% intervals miss.

    >>> for name, estimate in per_class_accuracy(["cat", "dog"], ["cat", "cat"]).items():
    ...     print(name, estimate)
    cat 50.0% [1.3, 98.7], n = 2
    """
    names, right, n = _by_class(predicted, labels)
    low, high = clopper_pearson(right, n, level)
    rows = zip(names.tolist(), right / n, low, high, n, strict=True)
    return {c: Estimate(float(v), float(a), float(b), int(m), level) for c, v, a, b, m in rows}


def balanced_accuracy(
    predicted: npt.ArrayLike, labels: npt.ArrayLike, level: float = 0.95
) -> Estimate:
    """Return the mean of the classes' accuracies, each class counting the same.

    The interval combines the classes' Clopper-Pearson intervals (Zou and Donner's
    MOVER), so it stays honest for classes of a few pictures that are all right.

    >>> print(balanced_accuracy([0, 0, 0, 1], [0, 0, 0, 0]))
    75.0% [19.4, 99.4], n = 4
    """
    _, right, n = _by_class(predicted, labels)
    low, high = clopper_pearson(right, n, level)
    each = right / n
    value = each.mean()
    down, up = (float(np.linalg.norm(end - each)) / len(n) for end in (low, high))
    return Estimate(float(value), float(value - down), float(value + up), int(n.sum()), level)


def _right(predicted: npt.ArrayLike, labels: npt.ArrayLike) -> npt.NDArray[np.bool_]:
    given = _check.classes(predicted, "the predictions")
    truth = _check.classes(labels, "the labels")
    _check.same_kind(given, truth, "predictions and labels")
    _check.same_length(predictions=given, labels=truth)
    return np.asarray(given == truth)


def _by_class(
    predicted: npt.ArrayLike, labels: npt.ArrayLike
) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    right = _right(predicted, labels)
    names, member = np.unique(_check.classes(labels, "the labels"), return_inverse=True)
    n = np.bincount(member, minlength=len(names))
    return names, np.bincount(member[right], minlength=len(names)), n
