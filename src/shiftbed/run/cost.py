"""What a plan will take, measured on a few of its pictures."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from shiftbed.attacks import Attack
from shiftbed.data import ImageSet, Picture, UnreadablePicture
from shiftbed.errors import InputError
from shiftbed.models import Geometry, Model
from shiftbed.run.local import COMPUTE_BATCH, logits_of
from shiftbed.run.plan import Plan
from shiftbed.run.threads import cores, lanes, torch_threads
from shiftbed.settings import Shift

__all__ = ["Cost", "check_models", "estimate", "first_picture"]

#: Bytes on disk per prediction of 1,000 classes, measured in cells of 50,000 pictures.
BYTES_PER_PREDICTION = 6
#: What a slope of the loss costs in looks at the same pictures, forward and back. Attacks stop
#: early on pictures that are fooled, so what they are estimated at is the most that they take.
SLOPE = 3


@dataclass(frozen=True)
class Cost:
    """Seconds of one thread's work on pictures, and on models; and what it leaves on disk."""

    pictures: float
    models: float
    workers: int
    lanes: int
    bytes: int

    @property
    def seconds(self) -> float:
        """How long it should take in all, if the threads keep to the cores that there are."""
        alone = max(self.pictures / self.workers, self.models / self.lanes)
        return max(alone, (self.pictures + self.models) / cores())


def first_picture(images: ImageSet) -> Picture:
    """Return the first picture that can be read, or refuse a set that has none."""
    reason = ""
    for index in range(len(images)):
        try:
            return images.load(index)
        except UnreadablePicture as problem:
            reason = reason or f"{images.ids[index]}: {problem.reason}"
    raise InputError(
        f"none of the {len(images):,} pictures of {images.name} can be read ({reason})"
    )


def check_models(plan: Plan) -> None:
    """Show every model one picture, so that one that cannot work says so before the work."""
    samples: dict[int, Picture] = {}
    for cell in plan.cells:
        images = cell.setting.images
        if id(images) not in samples:
            samples[id(images)] = first_picture(images)
    done: set[tuple[Model, int]] = set()
    for cell in plan.cells:
        pair = cell.model, id(cell.setting.images)
        if pair not in done:
            done.add(pair)
            logits_of(cell.model, [cell.model.geometry.apply(samples[pair[1]])])


def estimate(plan: Plan, workers: int | None = None) -> Cost:
    """Time one picture through every stage of what is missing, and multiply."""
    from shiftbed.corruptions import corrupt

    sets = {id(unit.images): unit.images for unit in plan.units}
    reads: Counter[int] = Counter()
    for (place, _), count in {(id(u.images), u.slice): len(u.indices) for u in plan.units}.items():
        reads[place] += count
    fits: Counter[tuple[int, Geometry]] = Counter()
    sliced = {(id(u.images), u.slice, u.geometry): len(u.indices) for u in plan.units}
    for (place, _, geometry), count in sliced.items():
        fits[place, geometry] += count
    shifts: Counter[tuple[int, Geometry, Shift]] = Counter()
    batches: Counter[tuple[int, Model]] = Counter()
    for unit in plan.units:
        if isinstance(unit.shift, Shift):
            shifts[id(unit.images), unit.geometry, unit.shift] += len(unit.indices)
        looks = 1 + SLOPE * unit.shift.gradients if isinstance(unit.shift, Attack) else 1
        for model in {cell.model for cell in unit.cells}:
            batches[id(unit.images), model] += looks * -(-len(unit.indices) // COMPUTE_BATCH)

    samples = {place: first_picture(images) for place, images in sets.items()}
    pictures = models = 0.0
    for place, count in reads.items():
        pictures += count * _seconds(partial(first_picture, sets[place]))
    for (place, geometry), count in fits.items():
        pictures += count * _seconds(partial(geometry.apply, samples[place]))
    for (place, geometry, shift), count in shifts.items():
        shown = geometry.apply(samples[place])
        pictures += count * _seconds(
            partial(corrupt, shown, shift.corruption, shift.severity, variant=shift.variant)
        )
    with torch_threads(len({model for _, model in batches})):
        for (place, model), count in batches.items():
            batch = [model.geometry.apply(samples[place])] * min(COMPUTE_BATCH, len(sets[place]))
            models += count * _seconds(partial(logits_of, model, batch))
    workers = workers or cores()
    beside = lanes(len({model for _, model in batches}))
    return Cost(pictures, models, workers, beside, plan.predictions * BYTES_PER_PREDICTION)


def _seconds(work: Callable[[], object]) -> float:
    work()  # the first time compiles and fills caches
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun
