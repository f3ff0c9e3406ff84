"""Frames that a person finds alike, and whether the model agrees with itself on them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from shiftbed.errors import InputError
from shiftbed.metrics import _check
from shiftbed.metrics.estimate import Estimate, proportion

__all__ = ["flip_rate", "pm_accuracy"]


def pm_accuracy(
    correct: npt.ArrayLike,
    frame_set: npt.ArrayLike,
    offset: npt.ArrayLike,
    k: int = 10,
    level: float = 0.95,
) -> Estimate:
    """Return the pm-k accuracy: the share of frame sets right on every frame within k.

    ``frame_set`` says to which set a frame belongs, ``offset`` how many frames it lies
    after (or, if negative, before) its set's anchor. pm-0 is the accuracy on the anchors
    alone. The interval is Clopper-Pearson's over frame sets, not frames.

    >>> correct, sets, offset = [1, 1, 0, 1, 1], ["a", "a", "a", "b", "b"], [-1, 0, 1, 0, 3]
    >>> print(pm_accuracy(correct, sets, offset, k=0))
    100.0% [15.8, 100.0], n = 2
    >>> print(pm_accuracy(correct, sets, offset, k=10))
    50.0% [1.3, 98.7], n = 2
    """
    right = _check.truths(correct, "the results")
    distance = np.abs(_check.finite(offset, "the offsets"))
    names = _check.classes(frame_set, "the frame sets")
    _check.same_length(results=right, frame_sets=names, offsets=distance)
    if k < 0:
        raise InputError(f"pm-k needs k of at least 0; given is {k}")
    sets, member = np.unique(names, return_inverse=True)
    anchors = np.bincount(member[distance == 0], minlength=len(sets))
    if np.any(anchors != 1):
        odd = int(np.argmax(anchors != 1))
        raise InputError(
            "every frame set needs exactly one anchor, the frame at offset 0; "
            f"{sets[odd]} has {anchors[odd]}"
        )
    wrong = np.bincount(member[(distance <= k) & ~right], minlength=len(sets))
    return proportion(int((wrong == 0).sum()), len(sets), level)


def flip_rate(predicted: npt.ArrayLike, other: npt.ArrayLike, level: float = 0.95) -> Estimate:
    """Return the share of pictures whose predicted class changes between two settings.

    Both arrays show the same pictures in the same order. The consistency rate is one
    minus this. The interval is Clopper-Pearson's.

    >>> print(flip_rate([1, 2, 3, 4], [1, 2, 3, 5]))
    25.0% [0.6, 80.6], n = 4
    """
    before = _check.classes(predicted, "the predictions")
    after = _check.classes(other, "the other predictions")
    _check.same_kind(before, after, "the predictions")
    n = _check.same_length(predictions=before, others=after)
    return proportion(int((before != after).sum()), n, level)
