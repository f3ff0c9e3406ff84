"""What a model is: pictures in, logits out, and the geometry that it wants them in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from shiftbed.errors import InputError
from shiftbed.models.geometry import Geometry

if TYPE_CHECKING:
    import torch

__all__ = ["Model"]


@dataclass(frozen=True, eq=False)
class Model:
    """Anything that turns a batch of uint8 pictures (N, H, W, C) into logits.

    >>> flat = Model(
    ...     name="brightness", spec="python:example", geometry=Geometry(), outputs=2,
    ...     predict=lambda batch: np.stack([batch.mean((1, 2, 3)), 0 * batch[:, 0, 0, 0]], 1),
    ...     weights="none",
    ... )
    >>> flat.logits(np.full((1, 4, 4, 1), 9, np.uint8))
    array([[9., 0.]], dtype=float32)
    """

    name: str
    spec: str
    geometry: Geometry
    #: How many logits a picture gets.
    outputs: int
    #: uint8 (N, H, W, C), in the geometry, to (N, outputs). Normalisation happens inside.
    predict: Callable[[npt.NDArray[np.uint8]], npt.ArrayLike]
    #: A hash of all that the logits depend on but the geometry: weights, normalisation,
    #: precision, and the library that computes.
    weights: str
    #: What each output means: WordNet ids or names; None where nobody said.
    class_keys: tuple[str, ...] | None = None
    #: For attacks: the same model as a torch module, from pixels in [0, 1], float (N, C, H, W),
    #: to logits, with normalisation inside. None where there are no gradients.
    module: torch.nn.Module | None = None
    #: category, architecture, parents, ...: what a study may ask about a model.
    tags: Mapping[str, Any] = field(default_factory=dict)

    @property
    def differentiable(self) -> bool:
        """Whether attacks that need gradients can use it."""
        return self.module is not None

    def logits(self, batch: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
        """Return (N, outputs) float32 logits for uint8 pictures (N, H, W, C)."""
        logits = np.asarray(self.predict(batch), dtype=np.float32)
        if logits.shape != (len(batch), self.outputs):
            raise InputError(
                f"model {self.name} gave an answer of shape {logits.shape} for {len(batch)} "
                f"pictures; expected ({len(batch)}, {self.outputs}), one row of logits each"
            )
        return logits

    def fingerprint(self) -> str:
        """A hash of weights, normalisation and geometry: of all that its answers depend on."""
        from shiftbed.data import digest

        return digest([self.weights, repr(self.geometry), str(self.outputs)])
