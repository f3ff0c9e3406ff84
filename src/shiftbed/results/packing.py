"""Predictions in few bytes: what is kept of a picture's answer once its cell is complete.

A picture's label is the same for every model, so it is kept with the pictures. Of the classes,
whichever is the label is known from ``rank_true``. The others are those that a model confuses
with the first one over and over; they are coded by how often they came together before
(:mod:`shiftbed.results.runners_up`). The confidence is kept as log-odds in tenths, with
subtractive dither: a shift that depends on the picture's place is added before rounding and taken
away after reading. So the error is at most half a step and has no pattern, and pictures do not
tie, which calibration and rankings would notice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from shiftbed.errors import InputError
from shiftbed.results.answers import KEPT_CLASSES

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["CONFIDENCE_SQL", "pack", "runners_up", "unpack"]

IntArray = npt.NDArray[np.int32]

_STEPS = 10  # to a unit of log-odds
_ZERO = 90  # what log-odds of 0 are kept as: 0 is -9, 255 is +16.5
_TURN = 0.6180339887498949  # the golden section spreads the shifts of neighbours
#: From what is kept to the confidence.
CONFIDENCE_SQL = f'1 / (1 + exp(-(odds::int - {_ZERO} - ("index" * {_TURN} % 1 - 0.5)) / {_STEPS}))'


def pack(rows: pa.Table, labels: IntArray | None) -> pa.Table:
    """Return whole answers in the columns that a complete cell keeps.

    ``labels`` are those kept with the pictures, by place, -1 where there is none. Without them,
    since a picture has several or none, the answers keep their own.
    """
    import pyarrow as pa

    index, rank = (_numbers(rows[name], 0) for name in ("index", "rank_true"))
    label = _numbers(rows["label"], -1)
    classes = [name for name in _class_names() if rows[name].null_count < len(rows)]
    top = np.stack([_numbers(rows[name], -1) for name in classes] or [index], axis=1)
    columns = {"index": rows["index"]}
    known = rank > 0
    if labels is None:
        columns["label"] = rows["label"]
    elif (labels[index[known]] != label[known]).any():
        raise InputError("these answers were judged by other labels than their pictures have")
    columns["rank_true"] = rows["rank_true"]
    columns["odds"] = pa.array(_odds(rows["confidence"].to_numpy(), index))
    columns["class1"] = pa.array(top[:, 0], mask=rank == 1)
    if top.shape[1] > 1:
        from shiftbed.results.runners_up import encoded

        stream = encoded(top, np.where(known, label, -1), rank)
        columns["others"] = pa.array([stream, *[None] * (len(rows) - 1)], pa.binary())
    columns |= {name: rows[name] for name in ("scores", "truth") if name in rows.column_names}
    return pa.table(columns, metadata=rows.schema.metadata)


def unpack(packed: pa.Table, labels: IntArray | None, *, others: bool = True) -> pa.Table:
    """Return the answers that were packed: the confidence to a twentieth of log-odds.

    The classes after the first take longer to read than all else; without ``others`` they are
    null.

    >>> from shiftbed.results.answers import answers
    >>> scores = np.random.default_rng(0).normal(0, 3, (6, 20)).astype(np.float32)
    >>> rows = answers(np.arange(6, dtype=np.int32), scores, np.arange(6))
    >>> again = unpack(pack(rows, np.arange(6, dtype=np.int32)), np.arange(6, dtype=np.int32))
    >>> again.drop(["confidence"]).equals(rows.drop(["confidence"]))
    True
    """
    import pyarrow as pa

    from shiftbed.results.schema import STORED

    index, rank = (_numbers(packed[name], 0) for name in ("index", "rank_true"))
    label = _labels(packed, labels, index)
    first = _numbers(packed["class1"], -1)
    right = rank == 1
    first[right] = label[right]
    columns: dict[str, pa.Array] = {
        "index": packed["index"],
        "label": pa.array(label, mask=rank < 1),
        "class1": pa.array(first),
    }
    rest = runners_up(packed, labels) if others else np.empty((len(packed), 0), np.int32)
    for place, name in enumerate(_class_names()[1:]):
        there = place < rest.shape[1]
        columns[name] = pa.array(rest[:, place]) if there else pa.nulls(len(packed), pa.int32())
    columns["confidence"] = pa.array(_confidence(packed["odds"].to_numpy(), index))
    columns["rank_true"] = packed["rank_true"]
    table = pa.table([columns[field.name] for field in STORED], schema=STORED)
    for name in ("scores", "truth"):
        if name in packed.column_names:
            table = table.append_column(name, packed[name])
    return table.replace_schema_metadata(packed.schema.metadata)


def runners_up(packed: pa.Table, labels: IntArray | None) -> IntArray:
    """Return the classes after the first, (N, up to 4), of packed answers."""
    if "others" not in packed.column_names or not len(packed):
        return np.empty((len(packed), 0), np.int32)
    from shiftbed.results.runners_up import decoded

    index, rank = (_numbers(packed[name], 0) for name in ("index", "rank_true"))
    label = _labels(packed, labels, index)
    first = np.where(rank == 1, label, _numbers(packed["class1"], -1))
    stream = packed["others"][0].as_py()
    return decoded(stream or b"", first, np.where(rank > 0, label, -1), rank)


def _labels(packed: pa.Table, labels: IntArray | None, index: IntArray) -> IntArray:
    if "label" in packed.column_names:
        return _numbers(packed["label"], -1)
    if labels is None:
        return np.full(len(packed), -1, np.int32)
    if len(index) and not 0 <= index.min() <= index.max() < len(labels):
        raise ValueError("a picture's place is not in its image set")
    return labels[index]


def _odds(confidence: npt.NDArray[np.float64], index: IntArray) -> npt.NDArray[np.uint8]:
    sure = np.clip(confidence, 1e-9, 1 - 1e-9)
    steps = np.rint(_STEPS * (np.log(sure) - np.log1p(-sure)) + _shift(index)) + _ZERO
    odds: npt.NDArray[np.uint8] = np.clip(steps, 0, 255).astype(np.uint8)
    return odds


def _confidence(odds: npt.NDArray[np.uint8], index: IntArray) -> npt.NDArray[np.float64]:
    steps: npt.NDArray[np.float64] = odds.astype(np.float64) - _ZERO - _shift(index)
    return 1 / (1 + np.exp(-steps / _STEPS))


def _shift(index: IntArray) -> npt.NDArray[np.float64]:
    """Between minus and plus half a step, by a picture's place alone."""
    return index.astype(np.float64) * _TURN % 1 - 0.5


def _numbers(column: pa.ChunkedArray, missing: int) -> IntArray:
    filled = column.fill_null(missing) if column.null_count else column
    return np.array(filled.to_numpy(), np.int32)


def _class_names() -> list[str]:
    return [f"class{rank}" for rank in range(1, KEPT_CLASSES + 1)]
