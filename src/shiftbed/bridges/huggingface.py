"""Hugging Face: data sets that are corrupted, answers as a data set, and a metric."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from shiftbed import metrics
from shiftbed.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Metric", "as_dataset", "corrupted"]


def corrupted(
    dataset: Any,
    name: str,
    severity: int | None = None,
    *,
    column: str = "image",
    variant: str = "imagenet-c",
    seed: int = 0,
) -> Any:
    """Return a ``datasets.Dataset`` with one column of pictures corrupted.

    Every picture has a stream of its own, told by its place, so that the result does not
    depend on batches or processes.
    """
    from shiftbed.corruptions import Corruption

    if column not in dataset.column_names:
        raise InputError(f"the data set has no column {column!r}, but {dataset.column_names}")
    corruption = Corruption(name, severity, variant=variant, seed=seed)

    def one(row: dict[str, Any], index: int) -> dict[str, Any]:
        return {column: corruption(row[column].convert("RGB"), key=str(index))}

    return dataset.map(one, with_indices=True, features=dataset.features)


def as_dataset(predictions: pa.Table) -> Any:
    """Return a table, such as ``run.predictions(...)``, as a ``datasets.Dataset``."""
    try:
        import datasets
    except ImportError:
        raise MissingExtraError("a Hugging Face data set", "datasets") from None
    return datasets.Dataset(predictions)


class Metric:
    """Accuracy, calibration and AURRA, with the interface of Hugging Face's ``evaluate``.

    ``predictions`` are logits or probabilities, one row per picture; ``references`` are
    labels. It is also a ``compute_metrics`` for ``transformers.Trainer``.

    >>> metric = Metric()
    >>> metric.add_batch(predictions=[[0.9, 0.1], [0.2, 0.8]], references=[0, 1])
    >>> metric.add_batch(predictions=[[0.6, 0.4]], references=[1])
    >>> found = metric.compute()
    >>> round(found["accuracy"], 3), found["n"]
    (0.667, 3)
    """

    def __init__(self, level: float = 0.95) -> None:
        self._level = level
        self._predictions: list[npt.NDArray[np.float64]] = []
        self._references: list[npt.NDArray[np.int64]] = []

    def add_batch(self, *, predictions: npt.ArrayLike, references: npt.ArrayLike) -> None:
        """Keep the answers to some pictures."""
        rows, labels = np.asarray(predictions, np.float64), np.asarray(references)
        if rows.ndim != 2 or labels.shape != rows.shape[:1]:
            raise InputError(
                f"predictions are {rows.shape} and references {labels.shape}; expected one row "
                "of scores over the classes, and one label, per picture"
            )
        self._predictions.append(rows)
        self._references.append(labels.astype(np.int64))

    def compute(
        self,
        *,
        predictions: npt.ArrayLike | None = None,
        references: npt.ArrayLike | None = None,
    ) -> dict[str, float]:
        """Return the scores of all that was added, with the ends of their intervals."""
        if predictions is not None and references is not None:
            self.add_batch(predictions=predictions, references=references)
        if not self._predictions:
            raise InputError("there is nothing to compute from; add predictions and references")
        rows, labels = np.concatenate(self._predictions), np.concatenate(self._references)
        self._predictions, self._references = [], []
        likely = rows
        if (rows < 0).any() or not np.allclose(rows.sum(axis=1), 1, atol=1e-3):
            likely = np.exp(rows - rows.max(axis=1, keepdims=True))
            likely /= likely.sum(axis=1, keepdims=True)
        confidence, correct = likely.max(axis=1), likely.argmax(axis=1) == labels
        estimates = {
            "accuracy": metrics.proportion(int(correct.sum()), len(correct), self._level),
            "calibration_error": metrics.calibration_error(
                confidence, correct, "l2", level=self._level
            ),
            "aurra": metrics.aurra(confidence, correct, self._level),
        }
        found: dict[str, float] = {"n": len(labels)}
        for name, one in estimates.items():
            found |= {name: one.value, f"{name}_low": one.low, f"{name}_high": one.high}
        return found

    def __call__(self, answers: Any) -> dict[str, float]:
        """Compute from a ``transformers.EvalPrediction``."""
        return self.compute(predictions=answers.predictions, references=answers.label_ids)
