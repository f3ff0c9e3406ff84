"""What filter models make of candidates: who is fooled, and how far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from shiftbed.curate.ledger import Outcome
from shiftbed.curate.sift import Judge, Look
from shiftbed.data import ClassSpace, Picture, UnreadablePicture
from shiftbed.data.pictures import read_picture
from shiftbed.models import Geometry, Model, ten_crops
from shiftbed.run.local import COMPUTE_BATCH, logits_of
from shiftbed.run.threads import ahead

__all__ = ["JUDGED", "Witness", "judge_anomalies", "judge_hard"]

#: The fate of those that are still to be ranked.
JUDGED = "judged"
#: Pictures whose further crops a model sees at once.
_GROUP = 4

Probabilities = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Witness:
    """A filter model, and how its outputs are read."""

    model: Model
    space: ClassSpace

    def probabilities(self, pictures: Sequence[Picture]) -> Probabilities:
        """Return (N, classes) probabilities."""
        scores = self.space.scores(logits_of(self.model, pictures)).astype(np.float64)
        exponentials = np.exp(scores - scores.max(axis=1, keepdims=True))
        return np.asarray(exponentials / exponentials.sum(axis=1, keepdims=True))


@dataclass
class _Trial:
    """A picture, and what the models said of it so far."""

    look: Look
    #: What each model said of each crop.
    heard: dict[str, list[Probabilities]] = field(default_factory=dict)
    outcome: Outcome | None = None

    def end(self, fate: str, detail: str, p_true: float | None = None) -> None:
        self.outcome = Outcome(self.look.candidate.n, fate, detail, self.look.sha256, p_true)

    def hear(self, model: str, rows: Probabilities) -> None:
        self.heard.setdefault(model, []).extend(rows)

    def means(self) -> dict[str, Probabilities]:
        return {model: np.mean(rows, axis=0) for model, rows in self.heard.items()}

    def judged(
        self, classes: Sequence[str], predicted: int, difficulty: float, label: int | None = None
    ) -> Outcome:
        answers: list[Mapping[str, Any]] = []
        for model, p in self.means().items():
            best = int(p.argmax())
            true = None if label is None else float(p[label])
            answers.append(
                {
                    "model": model,
                    "predicted": classes[best],
                    "confidence": float(p[best]),
                    "p_true": true,
                }
            )
        return Outcome(
            self.look.candidate.n,
            JUDGED,
            sha256=self.look.sha256,
            difficulty=difficulty,
            predicted=classes[predicted],
            answers=answers,
        )


def judge_hard(witnesses: Sequence[Witness], label_of: Mapping[str, int], crops: int = 10) -> Judge:
    """Return what drops a picture that any model has right in any crop.

    Every model sees the middle first; of what one of them has right there no other crop is
    made, and with most pictures of a heap that is the end. Equal scores count as right.
    """
    classes = witnesses[0].space.classes

    def hear(trial: _Trial, model: str, rows: Probabilities, first: int) -> None:
        true = rows[:, label_of[trial.look.candidate.class_name]]
        right = np.flatnonzero(true >= rows.max(axis=1))
        if not len(right):
            trial.hear(model, rows)
            return
        detail = f"{model} is right in crop {right[0] + first}"
        trial.end("right", detail, float(true[right[0]]))

    def judge(looks: Sequence[Look], pool: ThreadPoolExecutor) -> list[Outcome]:
        trials = [_Trial(look) for look in looks]
        for witness in witnesses:
            for trial, p in _middles(witness, _open(trials)):
                hear(trial, witness.model.name, p[None], 1)
        for witness in witnesses if crops > 1 else ():
            for trial, rows in _corners(witness, _open(trials), crops, pool):
                hear(trial, witness.model.name, rows, 2)
        for trial in _open(trials):
            label = label_of[trial.look.candidate.class_name]
            means = trial.means().values()
            together = np.mean(list(means), axis=0)
            together[label] = -1.0  # no model ever says so; their mean might
            difficulty = 1 - max(float(p[label]) for p in means)
            trial.outcome = trial.judged(classes, int(together.argmax()), difficulty, label)
        return [trial.outcome for trial in trials if trial.outcome is not None]

    return judge


def judge_anomalies(witnesses: Sequence[Witness]) -> Judge:
    """Return what notes how sure the least sure model is of a picture of none of its classes."""
    classes = witnesses[0].space.classes

    def judge(looks: Sequence[Look], pool: ThreadPoolExecutor) -> list[Outcome]:
        trials = [_Trial(look) for look in looks]
        for witness in witnesses:
            for trial, p in _middles(witness, trials):
                trial.hear(witness.model.name, p[None])
        outcomes = []
        for trial in trials:
            means = list(trial.means().values())
            predicted = int(np.mean(means, axis=0).argmax())
            outcomes.append(trial.judged(classes, predicted, min(float(p.max()) for p in means)))
        return outcomes

    return judge


def _open(trials: Sequence[_Trial]) -> list[_Trial]:
    return [trial for trial in trials if trial.outcome is None]


def _middles(witness: Witness, trials: Sequence[_Trial]) -> list[tuple[_Trial, Probabilities]]:
    found: list[tuple[_Trial, Probabilities]] = []
    for start in range(0, len(trials), COMPUTE_BATCH):
        some = trials[start : start + COMPUTE_BATCH]
        views = [trial.look.views[witness.model.geometry] for trial in some]
        found += zip(some, witness.probabilities(views), strict=True)
    return found


def _corners(
    witness: Witness, trials: Sequence[_Trial], crops: int, pool: ThreadPoolExecutor
) -> list[tuple[_Trial, Probabilities]]:
    """Have a model see the other crops of pictures, which are read once more for it."""
    geometry = witness.model.geometry
    tasks = [partial(_further, trial.look.file, geometry, crops) for trial in trials]
    views = zip(trials, ahead(pool, tasks, 2 * _GROUP), strict=True)
    found: list[tuple[_Trial, Probabilities]] = []
    while group := list(islice(views, _GROUP)):
        some: list[tuple[_Trial, Picture]] = []
        for trial, crop in group:
            if isinstance(crop, str):
                trial.end("unreadable", crop)
            else:
                some.append((trial, crop))
        if some:
            rows = witness.probabilities([view for _, crop in some for view in crop])
            each = rows.reshape(len(some), crops - 1, -1)
            found += [(trial, p) for (trial, _), p in zip(some, each, strict=True)]
    return found


def _further(file: Path, geometry: Geometry, crops: int) -> Picture | str:
    try:
        return ten_crops(geometry, read_picture(file))[1:crops]
    except UnreadablePicture as problem:
        return problem.reason
