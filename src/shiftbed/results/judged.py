"""Scores that take more than counting right answers: agreement, AUPR, mAP, frame sets."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from shiftbed import metrics
from shiftbed.errors import InputError
from shiftbed.metrics import Estimate

if TYPE_CHECKING:
    import pyarrow as pa

    from shiftbed.results._results import Results
    from shiftbed.results.manifest import Manifest

__all__ = ["detected", "judged", "pm"]


def judged(
    results: Results, manifest: Manifest, usual: Manifest | None, level: float = 0.95
) -> Estimate | None:
    """Return a complete cell's score by its own metric, or None where nobody can know it."""
    if not manifest.complete:
        return None
    if manifest.metric == "aupr":
        found = None if usual is None else detected(results, usual, manifest, level)
        return None if found is None else found.aupr
    if manifest.metric == "map":
        return _mean_precision(results.rows(manifest), level)
    if re.fullmatch(r"pm\d+", manifest.metric):
        return pm(results, manifest, int(manifest.metric.removeprefix("pm")), level)
    return None


def detected(
    results: Results, usual: Manifest, anomalous: Manifest, level: float = 0.95
) -> metrics.Detection | None:
    """Return how well low confidence tells the pictures of one cell from those of another."""
    if not (usual.complete and anomalous.complete):
        return None
    if usual.class_space != anomalous.class_space:
        raise InputError(
            f"{anomalous.identity.setting} was read as {anomalous.class_space} and "
            f"{usual.identity.setting} as {usual.class_space}, and confidences over different "
            "classes cannot be compared"
        )
    low, high = (
        -results.rows(one)["confidence"].to_numpy().astype(np.float64) for one in (usual, anomalous)
    )
    if min(len(low), len(high)) < 2:
        return None
    return metrics.detection(usual=low, anomalous=high, level=level)


def _mean_precision(rows: pa.Table, level: float) -> Estimate | None:
    """Return the mAP over the classes that some picture has."""
    if len(rows) < 2 or "scores" not in rows.column_names:
        return None
    scores, truth = (np.stack(rows[name].to_numpy()) for name in ("scores", "truth"))
    present = truth.any(axis=0)
    if not present.any():
        return None
    return metrics.mean_average_precision(scores[:, present], truth[:, present], level).mean


def pm(results: Results, manifest: Manifest, k: int, level: float = 0.95) -> Estimate | None:
    """Return the share of frame sets that are right on every frame within k of the anchor.

    A set whose anchor could not be read is left out, and so are pictures that are no frames.
    """
    rows = results.rows(manifest)
    pictures: Any = results.pictures(manifest)
    if "frame_set" not in pictures.column_names:
        raise InputError(f"{manifest.identity.setting} has no frame sets")
    shown = pictures.take(rows["index"])
    ranks = rows["rank_true"]
    known = np.logical_not(np.asarray(ranks.is_null()))
    right = ranks.fill_null(0).to_numpy() == 1
    sets = np.array(shown["frame_set"].to_pylist(), object)
    offsets = shown["offset"].to_numpy()
    anchored = set(sets[known & (offsets == 0)])
    chosen = known & np.array([one in anchored for one in sets], bool)
    if not chosen.any():
        return None
    return metrics.pm_accuracy(right[chosen], sets[chosen].astype(str), offsets[chosen], k, level)
