"""One line per model: what the corruptions of a benchmark do to it, all together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from shiftbed.errors import InputError
from shiftbed.metrics import Estimate, corruption_error_of_pictures, proportion
from shiftbed.results import Results
from shiftbed.settings import Setting, Shift

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Score", "scores"]

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Score:
    """A model on one image set and the corruptions of one benchmark.

    The intervals of the means are over pictures, each picture's errors under all corruptions
    taken together. Those of mCE and relative mCE take the baseline as known.
    """

    model: str
    images: str
    variant: str
    #: The corruptions, and whether they are all of the benchmark's.
    corruptions: tuple[str, ...]
    whole: bool
    #: How many of each corruption; accuracies are averaged over them.
    severities: int
    metric: str
    clean: Estimate | None
    #: Accuracy (or agreement with the clean answer) averaged over corruptions and severities.
    shifted: Estimate
    #: The same of each corruption, averaged over its severities.
    each: dict[str, Estimate]
    #: Errors divided by the baseline's; None without a baseline, or without labels.
    mce: Estimate | None = None
    relative_mce: Estimate | None = None
    #: Why one of these two is missing although there is a baseline.
    note: str | None = None


def scores(
    results: Results, models: Sequence[str], settings: Sequence[Setting], baseline: str | None
) -> list[Score]:
    """Summarise every (image set, variant) among the settings that has corruptions.

    Corruptions are averaged only if each has the same number of severities here.
    """
    names = {setting.name for setting in settings}
    groups: dict[tuple[str, str], list[Setting]] = {}
    for setting in settings:
        counted = setting.metric == "top1" or (
            setting.metric == "agreement" and setting.clean in names
        )
        if isinstance(setting.shift, Shift) and counted:
            groups.setdefault((setting.clean, setting.shift.variant), []).append(setting)
    found = []
    for (images, variant), shifted in groups.items():
        steps = _steps(shifted)
        if len({len(one) for one in steps.values()}) > 1:
            continue
        answers = {
            model: _wrong(results, model, images if images in names else None, steps)
            for model in dict.fromkeys([*models, *([] if baseline is None else [baseline])])
        }
        reference = None if baseline is None else answers[baseline]
        found += [
            _score(model, images, variant, shifted[0].metric, answers[model], reference)
            for model in models
        ]
    return [score for score in found if score is not None]


@dataclass(frozen=True)
class _Wrong:
    """Which pictures a model has wrong: clean, and one row per severity of each corruption.

    For pictures without labels, wrong is what is not the clean answer, and clean is None.
    """

    clean: BoolArray | None
    shifted: dict[str, BoolArray]


def _steps(settings: Sequence[Setting]) -> dict[str, list[str]]:
    steps: dict[str, list[str]] = {}
    for setting in settings:
        if isinstance(setting.shift, Shift):
            steps.setdefault(setting.shift.corruption, []).append(setting.name)
    return steps


def _wrong(
    results: Results, model: str, clean: str | None, steps: Mapping[str, Sequence[str]]
) -> _Wrong:
    before = None if clean is None else results.answers(model, clean)
    shifted = {
        corruption: np.array([_judged(results.answers(model, name), before) for name in names])
        for corruption, names in steps.items()
    }
    labelled = before is not None and before["rank_true"].null_count < len(before)
    return _Wrong(_judged(before, before) if before is not None and labelled else None, shifted)


def _judged(rows: pa.Table, clean: pa.Table | None) -> BoolArray:
    ranks = rows["rank_true"].drop_null().to_numpy()
    if len(ranks) or clean is None:
        return np.asarray(ranks != 1)
    return np.asarray(rows["class1"].to_numpy() != clean["class1"].to_numpy())


def _score(
    model: str, images: str, variant: str, metric: str, wrong: _Wrong, baseline: _Wrong | None
) -> Score | None:
    from shiftbed.corruptions import corruption_names

    n = next(iter(wrong.shifted.values())).shape[1]
    if n < 2:
        return None
    severities = len(next(iter(wrong.shifted.values())))
    # An error in units of 1 is the error itself.
    errors = corruption_error_of_pictures(
        wrong.shifted, baseline=dict.fromkeys(wrong.shifted, 1.0), severities=severities
    )
    mce = relative = note = None
    if baseline is not None and metric == "top1":
        reference = {name: rows.mean(axis=1) for name, rows in baseline.shifted.items()}
        try:
            mce = corruption_error_of_pictures(
                wrong.shifted, baseline=reference, severities=severities
            ).mean
            if wrong.clean is not None and baseline.clean is not None:
                relative = corruption_error_of_pictures(
                    wrong.shifted,
                    clean_wrong=wrong.clean,
                    baseline=reference,
                    baseline_clean=float(baseline.clean.mean()),
                    severities=severities,
                ).mean
        except InputError as problem:
            note = str(problem)
    whole = set(corruption_names(variant)) <= wrong.shifted.keys()
    clean = None if wrong.clean is None else proportion(int((~wrong.clean).sum()), n)
    return Score(
        model=model,
        images=images,
        variant=variant,
        corruptions=tuple(wrong.shifted),
        whole=whole,
        severities=severities,
        metric=metric,
        clean=clean,
        shifted=_right(errors.mean),
        each={name: _right(error) for name, error in errors.normalised.items()},
        mce=mce,
        relative_mce=relative,
        note=note,
    )


def _right(error: Estimate) -> Estimate:
    """From an error to what is left of 1. The ends of a normal interval can lie outside."""
    low, high = max(0.0, 1 - error.high), min(1.0, 1 - error.low)
    return Estimate(1 - error.value, low, high, error.n, error.level)
