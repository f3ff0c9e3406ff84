"""From a model's scores to what is kept of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["KEPT_CLASSES", "answers"]

#: How many of the best classes are kept.
KEPT_CLASSES = 5


def answers(
    index: npt.NDArray[np.int32],
    scores: npt.NDArray[np.float32],
    labels: npt.NDArray[np.int64] | npt.NDArray[np.bool_] | None,
    *,
    whole: bool = False,
) -> pa.Table:
    """Return the stored rows for pictures at ``index`` with (N, classes) logit scores.

    Equal scores are ordered by class number, so the order is always the same. ``whole`` keeps
    every class's score and truth too, which a ranking of pictures within each class needs.

    >>> rows = answers(np.array([7], np.int32), np.array([[0, 2, 1]], np.float32), np.array([2]))
    >>> row = rows.to_pylist()[0]
    >>> row["index"], row["class1"], row["class2"], row["class4"], row["rank_true"]
    (7, 1, 2, None, 2)
    >>> round(row["confidence"], 4)
    0.6652
    """
    import pyarrow as pa

    from shiftbed.results.schema import STORED

    best = _best_first(scores)
    columns: list[npt.NDArray[np.generic] | None] = [index, None]
    columns += [best[:, rank] if rank < best.shape[1] else None for rank in range(KEPT_CLASSES)]
    # In double precision: 1,000 exponentials in single would lose the last digits. The best
    # class's own is 1.
    exponentials = np.exp(scores.astype(np.float64) - scores.max(axis=1, keepdims=True))
    columns.append(1 / exponentials.sum(axis=1))
    true, unknown = _true_classes(scores, labels)
    columns[1] = true
    columns.append(_rank(scores, true))
    masks = {"label": unknown, "rank_true": unknown}
    rows_kept = pa.table(
        [
            pa.nulls(len(scores), field.type)
            if column is None
            else pa.array(column, mask=masks.get(field.name)).cast(field.type, safe=False)
            for field, column in zip(STORED, columns, strict=True)
        ],
        schema=STORED,
    )
    if not whole or labels is None:
        return rows_kept
    for name, values in (("scores", scores.astype(np.float32)), ("truth", labels)):
        flat = pa.array(np.ascontiguousarray(values).ravel())
        lists = pa.FixedSizeListArray.from_arrays(flat, values.shape[1])
        rows_kept = rows_kept.append_column(name, lists)
    return rows_kept


def _true_classes(
    scores: npt.NDArray[np.float32], labels: npt.NDArray[np.int64] | npt.NDArray[np.bool_] | None
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Return each picture's true class, and which pictures have none."""
    if labels is None:
        return np.zeros(len(scores), np.int64), np.ones(len(scores), np.bool_)
    if labels.ndim == 2:  # of several true classes, the one that the model likes best
        best = np.where(labels, scores, -np.inf).argmax(axis=1)
        return best, np.logical_not(labels.any(axis=1))
    unknown = np.less(labels, 0)
    return np.where(unknown, 0, labels).astype(np.int64), unknown


def _best_first(scores: npt.NDArray[np.float32]) -> npt.NDArray[np.int64]:
    """Return the best classes of every row, best first, ties by class number."""
    kept = min(KEPT_CLASSES, scores.shape[1])
    # The kept-th highest score is a threshold; only what reaches it needs sorting.
    threshold = np.partition(scores, -kept, axis=1)[:, -kept]
    best = np.empty((len(scores), kept), np.int64)
    reaching = scores >= threshold[:, None]
    if np.all(reaching.sum(axis=1) == kept):
        candidates = np.nonzero(reaching)[1].reshape(-1, kept)
        order = np.argsort(-np.take_along_axis(scores, candidates, 1), axis=1, kind="stable")
        return np.take_along_axis(candidates, order, 1)
    best[:] = np.argsort(-scores, axis=1, kind="stable")[:, :kept]
    return best


def _rank(scores: npt.NDArray[np.float32], true: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the place of the true class, 1 for the first, ties by class number."""
    score = np.take_along_axis(scores, true[:, None], axis=1)
    earlier = np.arange(scores.shape[1]) < true[:, None]
    rank: npt.NDArray[np.int64] = ((scores > score) | ((scores == score) & earlier)).sum(axis=1)
    return rank + 1
