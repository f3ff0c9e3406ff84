"""What a setting is: an image set, an optional shift, a class space and a score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shiftbed.attacks import Attack
from shiftbed.data import (
    ClassMap,
    ClassSpace,
    Combine,
    ImageSet,
    Labels,
    card_of,
    match_classes,
)
from shiftbed.models import Model

__all__ = ["Setting", "Shift", "own_or"]


@dataclass(frozen=True)
class Shift:
    """A corruption at a severity, in the variant that a benchmark defines.

    >>> str(Shift("fog", 3)), str(Shift("zigzag", None, "mnist-c"))
    ('fog.3', 'zigzag')
    """

    corruption: str
    #: None: the benchmark's own standard, where it has one.
    severity: int | None = None
    variant: str = "imagenet-c"

    def __str__(self) -> str:
        return self.corruption if self.severity is None else f"{self.corruption}.{self.severity}"


@dataclass(frozen=True, eq=False)
class Setting:
    """One column of the grid: what every model is shown, and how its answers are read."""

    #: ``SET`` or ``SET+SHIFT``.
    name: str
    images: ImageSet
    #: A corruption, which changes the pictures alike for all models; or an attack on each model.
    shift: Shift | Attack | None = None
    #: ``top1``: accuracy. ``agreement``: with the same model's answer on the same picture
    #: unshifted, for pictures that nobody labelled. ``aupr``: how well confidence tells the
    #: pictures from those of ``usual``. ``map``: mean average precision over several labels.
    #: ``pm10``: the share of frame sets that are right on every frame within 10 of the anchor.
    metric: str = "top1"
    #: Which outputs mean which class, where the classes' own keys do not say it.
    class_map: ClassMap | None = None
    combine: Combine = "max"
    usual: Setting | None = None

    @property
    def clean(self) -> str:
        """The name of the clean setting: the same pictures unshifted, or their counterpart."""
        counterpart = card_of(self.images).clean
        if self.shift is None and counterpart is not None:
            return counterpart
        return self.images.name

    @property
    def labels(self) -> Labels | None:
        """The labels that answers are judged by; anomalous pictures have none that count."""
        return self.images.labels if self.usual is None else None

    def class_space(self, model: Model) -> ClassSpace:
        """Return how this model's outputs are read here, or refuse in a sentence."""
        if self.usual is not None:
            return self.usual.class_space(model)
        if self.images.labels is None and self.class_map is None:
            # Nobody said what is in the pictures: the model's own outputs are its answers.
            own = model.class_keys or tuple(map(str, range(model.outputs)))
            return match_classes(own, None, model.outputs)
        card = card_of(self.images)
        class_map, combine = self.class_map, self.combine
        if class_map is None and card.members is not None:
            class_map = own_or(card.members, self.images.classes, model)
            combine = combine if class_map is None else card.combine
        return match_classes(
            self.images.classes,
            model.class_keys,
            model.outputs,
            class_map=class_map,
            combine=combine,
            multilabel=self.images.labels is not None and self.images.labels.ndim == 2,
            model=model.name,
            images=self.images.name,
        )


def own_or(members: ClassMap | None, classes: Sequence[str], model: Model) -> ClassMap | None:
    """Return the class map, but none for a model that was trained on these very classes."""
    unnamed = model.class_keys is None and model.outputs == len(classes)
    own = unnamed or set(model.class_keys or ()) == set(classes)
    return None if own else members
