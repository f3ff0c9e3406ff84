"""What a setting is: an image set, an optional shift, a class space and a score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from shiftbed.attacks import Attack
from shiftbed.data import ClassMap, ClassSpace, Combine, ImageSet, match_classes
from shiftbed.models import Model

__all__ = ["Metric", "Setting", "Shift"]

#: ``top1``: accuracy. ``agreement``: with the same model's answer on the same picture unshifted,
#: for pictures that nobody labelled.
Metric = Literal["top1", "agreement"]


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
    metric: Metric = "top1"
    #: Which outputs mean which class, where the classes' own keys do not say it.
    class_map: ClassMap | None = None
    combine: Combine = "max"

    @property
    def clean(self) -> str:
        """The name of the setting with the same pictures unshifted."""
        return self.images.name

    def class_space(self, model: Model) -> ClassSpace:
        """Return how this model's outputs are read here, or refuse in a sentence."""
        if self.images.labels is None and self.class_map is None:
            # Nobody said what is in the pictures: the model's own outputs are its answers.
            own = model.class_keys or tuple(map(str, range(model.outputs)))
            return match_classes(own, None, model.outputs)
        return match_classes(
            self.images.classes,
            model.class_keys,
            model.outputs,
            class_map=self.class_map,
            combine=self.combine,
            multilabel=self.images.labels is not None and self.images.labels.ndim == 2,
            model=model.name,
            images=self.images.name,
        )
