"""Is a model shown pictures as it wants them, and are its outputs read in their order?

Whoever prepares pictures otherwise than a model was trained gets numbers that are wrong and look
right. On labelled clean pictures it can be seen: the right way is better than the wrong one. So
the usual mistakes are undone one by one, and whatever makes the model surer of the true classes,
picture by picture, is told.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import linear_sum_assignment
from scipy.special import bdtrc, log_softmax
from scipy.stats import wilcoxon

from shiftbed.data import ClassSpace, ImageSet, UnreadablePicture
from shiftbed.errors import InputError
from shiftbed.metrics import Estimate, holm, mcnemar, proportion
from shiftbed.models import Geometry, Model
from shiftbed.models.geometry import Fit
from shiftbed.models.options import IMAGENET_MEAN, IMAGENET_STD

if TYPE_CHECKING:
    from shiftbed.evaluation.job import Evaluation

__all__ = ["Alternative", "Preparation", "at_chance", "better_order", "check_preparation", "doubts"]

#: An alternative is told if it is this much surer of the true class, in nats a picture, and
#: the chance of such a finding where there is nothing is below this, over all that was tried.
_GAIN = 0.1
_LEVEL = 0.01
_BATCH = 32
#: Pictures that are enough to learn an order from.
_ENOUGH = 4_000

Numbers = npt.NDArray[np.float64]
Change = Callable[[Numbers], Numbers]


@dataclass(frozen=True)
class Alternative:
    """Another way to show the pictures, or to read the answers."""

    about: str
    accuracy: float
    #: By how much the true class's log-probability is larger than as it is, on average.
    gain: float
    #: Of the one-sided paired test, corrected for all alternatives (Holm).
    p_value: float

    @property
    def better(self) -> bool:
        """Whether it is established that the model does better this way, and by how much."""
        return self.gain >= _GAIN and self.p_value < _LEVEL


@dataclass(frozen=True)
class Preparation:
    """What was tried with a model, and how it went; the best alternative comes first."""

    model: str
    images: str
    as_it_is: Estimate
    #: The accuracy of guessing.
    chance: float
    at_chance: bool
    alternatives: tuple[Alternative, ...]

    @property
    def sound(self) -> bool:
        """Whether nothing speaks against how the model is used."""
        return not self.doubts()

    def doubts(self) -> list[str]:
        """Return what speaks against it, in sentences."""
        said = []
        if self.at_chance:
            said.append(
                f"{self.model} is right on {self.as_it_is} of {self.images}, which is no better "
                f"than guessing ({self.chance:.1%}): its classes are in another order, its "
                "weights were not loaded, or its pictures are prepared in another way"
            )
        for one in self.alternatives:
            if one.better:
                said.append(
                    f"{self.model} does better on {self.images} with {one.about}: accuracy "
                    f"{one.accuracy:.1%} instead of {self.as_it_is.value:.1%}, and the true "
                    f"class {np.exp(one.gain):,.1f} times as probable (p = {one.p_value:.1g})"
                )
        return said


def check_preparation(
    model: Model, images: ImageSet, space: ClassSpace | None = None, *, limit: int = 200
) -> Preparation:
    """Show a model some labelled clean pictures as it is, and in other ways.

    ``space`` says how its outputs are read as the set's classes. Several pictures of a class are
    shown rather than one of each, because an order can only be learnt from several.

    >>> from shiftbed.data import ArraySet
    >>> from shiftbed.models import load
    >>> light = np.random.default_rng(0).integers(0, 256, (60, 1, 1, 1)).astype(np.uint8)
    >>> photos = ArraySet("photos", light.repeat(8, 1).repeat(8, 2).repeat(3, 3),
    ...                   labels=(light.ravel() > 127).astype(int), classes=["dark", "light"])
    >>> def lightness(batch):
    ...     light = batch.mean((1, 2, 3)) / 127.5 - 1
    ...     return np.stack([-9 * light, 9 * light], 1)
    >>> def inverted(batch):
    ...     return lightness(255 - batch)
    >>> check_preparation(load(lightness, outputs=2, channels=3), photos).sound
    True
    >>> found = check_preparation(load(inverted, outputs=2, channels=3), photos)
    >>> found.alternatives[0].about
    'its outputs in another order, learnt from half of the pictures'
    """
    if images.labels is None or images.labels.ndim != 1:
        raise InputError(
            f"how {model.name} should be shown pictures is told by labelled ones, and "
            f"{images.name} has no single label for each; give a set with labels"
        )
    if limit < 1:
        raise InputError(f"the limit is {limit}; it must be at least one picture")
    space = space or ClassSpace(
        tuple(images.classes), model.outputs, tuple((index,) for index in range(model.outputs))
    )
    pictures, labels = _drawn(images, limit)
    seen = [model.geometry.apply(picture) for picture in pictures]
    shown = np.stack(seen)
    logits = _logits(model, shown)
    before = _sure(space.scores(logits), labels)
    found: list[tuple[str, float, Numbers]] = []

    def add(about: str, scores: npt.NDArray[np.floating[Any]]) -> None:
        right = scores.argmax(axis=1) == labels
        found.append((about, float(right.mean()), _sure(scores, labels) - before))

    for about, order in _orders(model.outputs):
        add(about, space.scores(logits[:, order]))
    scores = space.scores(logits)
    if (learnt := better_order(scores, labels)) is not None:
        add("its outputs in another order, learnt from half of the pictures", learnt)
    for about, change in _changes(model):
        answers = _changed(model, shown, change)
        if answers is not None:
            add(about, space.scores(answers))
    for about, geometry in _geometries(model.geometry):
        batch = np.stack([geometry.apply(picture) for picture in pictures])
        add(about, space.scores(_logits(model, batch)))

    corrected = holm([_p_value(gains) for _, _, gains in found])
    alternatives = [
        Alternative(about, right, float(gains.mean()), float(p))
        for (about, right, gains), p in zip(found, corrected, strict=True)
    ]
    right = scores.argmax(axis=1) == labels
    return Preparation(
        model.name,
        images.name,
        proportion(int(right.sum()), len(right)),
        1 / len(space.classes),
        at_chance(int(right.sum()), len(right), len(space.classes)),
        tuple(sorted(alternatives, key=lambda one: (not one.better, -one.gain))),
    )


def at_chance(correct: int, n: int, classes: int) -> bool:
    """Whether so many right answers of n are what guessing gives, where n could tell.

    >>> at_chance(11, 100, 10), at_chance(60, 100, 10), at_chance(1, 2, 2)
    (True, False, False)
    """
    chance = 1 / max(classes, 2)
    if chance**n > _LEVEL / 10:  # even a perfect model might have guessed
        return False
    return correct == 0 or float(bdtrc(correct - 1, n, chance)) > 0.05


def better_order(
    scores: npt.NDArray[np.floating[Any]], labels: npt.NDArray[np.int64]
) -> npt.NDArray[np.floating[Any]] | None:
    """Return scores with the classes in the order that fits best, learnt on other pictures.

    Each half of the pictures is read in the order that the other half suggests. None if there
    are too few pictures of a class to learn from.
    """
    halves = np.zeros(len(labels), np.int64)
    for label in np.unique(labels):
        rows = np.flatnonzero(labels == label)
        halves[rows] = np.arange(len(rows)) % 2
    if len(np.unique(labels[halves == 1])) < 2:
        return None
    learnt = np.empty_like(scores)
    probable = np.exp(log_softmax(scores.astype(np.float64), axis=1))
    for half in (0, 1):
        votes = np.eye(scores.shape[1]) * 1e-3  # in doubt, as it is
        np.add.at(votes, labels[halves != half], probable[halves != half])
        _, order = linear_sum_assignment(votes, maximize=True)
        learnt[halves == half] = scores[halves == half][:, order]
    return learnt


def doubts(run: Evaluation) -> list[str]:
    """Return what speaks against a run's clean cells, from the answers that are stored."""
    said = []
    for cell, manifest in zip(run.plan.cells, run.manifests(), strict=True):
        setting, counts = cell.setting, manifest.counts
        # A set that has a clean counterpart is meant to be hard.
        clean = setting.shift is None and manifest.spec.get("clean") in (None, setting.name)
        if not clean or setting.metric != "top1" or counts is None or counts.correct is None:
            continue
        which = f"{cell.model.name} on {setting.name}"
        if at_chance(counts.correct, counts.scored, len(setting.images.classes)):
            said.append(
                f"{which}: {counts.correct:,} of {counts.scored:,} right is no better than "
                "guessing; 'shiftbed check' tries other classes, normalisations and crops"
            )
        rows = run.results.rows(manifest)
        rows = rows.filter(rows["label"].is_valid())[:_ENOUGH]
        labels = rows["label"].to_numpy().astype(np.int64)
        answers = rows["class1"].to_numpy()
        told = np.eye(len(setting.images.classes), dtype=np.float32)[answers]
        learnt = better_order(9 * told, labels) if len(labels) else None
        if learnt is not None:
            test = mcnemar(learnt.argmax(axis=1) == labels, answers == labels)
            if test.p_value < _LEVEL / 10 and test.only_first - test.only_second > 0.1 * test.n:
                said.append(
                    f"{which}: with its classes in another order it would be right on "
                    f"{(learnt.argmax(axis=1) == labels).mean():.0%} of the pictures; are its "
                    "outputs in the order of the set's classes?"
                )
    return said


# Alternatives

_MEAN, _STD = np.array(IMAGENET_MEAN), np.array(IMAGENET_STD)
_CAFFE = np.array([123.68, 116.779, 103.939])
_OWN = "ImageNet's mean and standard deviation"


def _shades(values: Numbers, by_channel: Numbers) -> Numbers:
    """Return a value for each channel; their mean for a single one."""
    return by_channel if values.shape[-1] == 3 else by_channel.mean(keepdims=True)


#: What is done to pixels in [0, 1], (N, H, W, C), to undo a mistake.
_PIXELS: tuple[tuple[str, Change], ...] = (
    ("red and blue swapped", lambda x: x[..., ::-1]),
    ("light and dark swapped", lambda x: 1 - x),
    ("height and width swapped", lambda x: x.swapaxes(1, 2)),
    (
        f"one normalisation by {_OWN} less (it normalises by itself)",
        lambda x: x * _shades(x, _STD) + _shades(x, _MEAN),
    ),
    ("one normalisation to [-1, 1] less (it normalises by itself)", lambda x: (x + 1) / 2),
)
#: What a network may want in place of what its normalisation gives it.
_WANTED: tuple[tuple[str, Change], ...] = (
    ("pixels in [0, 1], not normalised (or by itself)", lambda x: x),
    ("pixels in [-1, 1]", lambda x: 2 * x - 1),
    (f"pixels normalised by {_OWN}", lambda x: (x - _shades(x, _MEAN)) / _shades(x, _STD)),
    ("pixels from 0 to 255", lambda x: 255 * x),
    (
        "pixels as Caffe has them (blue first, from 0 to 255, less the mean)",
        lambda x: (255 * x - _shades(x, _CAFFE))[..., ::-1],
    ),
)


def _changes(model: Model) -> Iterator[tuple[str, Change]]:
    """Yield what may be done to pixels before they are shown to a model."""
    yield from _PIXELS
    mean, std = (getattr(model.module, name, None) for name in ("mean", "std"))
    if mean is None or std is None:
        return
    own_mean, own_std = (one.detach().cpu().numpy().ravel().astype(float) for one in (mean, std))
    for about, wanted in _WANTED:
        yield about, _undone(wanted, own_mean, own_std)


def _undone(wanted: Change, mean: Numbers, std: Numbers) -> Change:
    """Return what is done to pixels so that a network's normalisation gives what it wants."""
    return lambda pixels: wanted(pixels) * std + mean


def _changed(
    model: Model, shown: npt.NDArray[np.uint8], change: Change
) -> npt.NDArray[np.float32] | None:
    """Return a model's answers to changed pixels, if they change and it can be shown them."""
    pixels = change(shown / 255.0)
    if pixels.shape != shown.shape or np.allclose(pixels, shown / 255.0):
        return None
    if model.module is None:
        levels = np.rint(pixels * 255).clip(0, 255).astype(np.uint8)
        whole = np.abs(pixels * 255 - levels).max() < 1 < levels.max()
        return _logits(model, levels) if whole else None
    import torch

    device = next((tensor.device for tensor in model.module.buffers()), torch.device("cpu"))
    answers = []
    with torch.inference_mode():
        for start in range(0, len(pixels), _BATCH):
            batch = np.ascontiguousarray(pixels[start : start + _BATCH], np.float32)
            seen = torch.from_numpy(batch).permute(0, 3, 1, 2).to(device)
            answers.append(model.module(seen).cpu().numpy())
    return _tamed(np.concatenate(answers))


def _orders(outputs: int) -> Iterator[tuple[str, npt.NDArray[np.int64]]]:
    """Yield the orders in which outputs are often taken by mistake."""
    numbers = np.arange(outputs)
    if outputs < 3:
        return
    yield "its outputs read one further (its first means nothing)", np.roll(numbers, -1)
    yield "its outputs read one earlier", np.roll(numbers, 1)
    if outputs > 10:
        text = np.array(sorted(range(outputs), key=str))
        yield "its outputs taken as numbers sorted as text (0, 1, 10, 100, ...)", np.argsort(text)
        yield "the labels taken as numbers sorted as text (0, 1, 10, 100, ...)", text


def _geometries(own: Geometry) -> Iterator[tuple[str, Geometry]]:
    """Yield other ways from a whole picture to what the model sees, at the same size."""
    if own.size is None:
        return
    height, width = own.size
    usual = (round(height / 0.875), round(width / 0.875))
    others: tuple[tuple[str, tuple[int, int], Fit], ...] = (
        ("the whole picture, squashed", own.size, "squash"),
        ("the largest centre crop", own.size, "cover"),
        ("the usual centre crop (7/8 of the picture)", usual, "cover"),
        ("a closer crop (7/10 of the picture)", (round(height / 0.7), round(width / 0.7)), "cover"),
    )
    for about, resize, fit in others:
        other = replace(own, resize=resize, fit=fit)
        if (other.resize, other.fit) != (own.resize, own.fit):
            yield about, other


# Numbers


def _drawn(
    images: ImageSet, limit: int
) -> tuple[list[npt.NDArray[np.uint8]], npt.NDArray[np.int64]]:
    """Read some labelled pictures: up to eight of a class, of as many classes as there is room."""
    assert images.labels is not None
    turns: defaultdict[int, list[int]] = defaultdict(list)
    order = sorted(range(len(images)), key=lambda index: _turn(images.ids[index]))
    for index in order:
        if images.labels[index] >= 0:
            turns[int(images.labels[index])].append(index)
    each = max(8, -(-limit // max(len(turns), 1)))
    chosen = [index for rows in turns.values() for index in rows[:each]][:limit]
    pictures, read = [], []
    for index in chosen:
        try:
            pictures.append(images.load(index))
        except UnreadablePicture:
            continue
        read.append(index)
    if not read:
        raise InputError(f"{images.name} has no labelled picture that can be read")
    return pictures, images.labels[np.array(read)].astype(np.int64)


def _turn(name: str) -> bytes:
    return hashlib.sha256(name.encode("utf-8", "surrogateescape")).digest()


def _logits(model: Model, shown: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
    parts: Sequence[npt.NDArray[np.float32]] = [
        model.logits(np.ascontiguousarray(shown[start : start + _BATCH]))
        for start in range(0, len(shown), _BATCH)
    ]
    return _tamed(np.concatenate(parts))


def _tamed(logits: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return logits that a wrong preparation may have made infinite, as numbers."""
    return np.nan_to_num(logits, nan=0.0, posinf=1e30, neginf=-1e30)


def _sure(scores: npt.NDArray[np.floating[Any]], labels: npt.NDArray[np.int64]) -> Numbers:
    """Return the log-probability of each picture's true class, but at most so bad."""
    sure: Numbers = log_softmax(scores.astype(np.float64), axis=1)[np.arange(len(labels)), labels]
    return np.maximum(sure, -30)


def _p_value(gains: Numbers) -> float:
    return float(wilcoxon(gains, alternative="greater").pvalue) if gains.any() else 1.0
