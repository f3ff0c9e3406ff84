"""Models that see their pictures otherwise: restored first, or in ten crops."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from shiftbed.augment._augmentation import Augmentation
from shiftbed.errors import InputError
from shiftbed.models import Model
from shiftbed.models.geometry import ROOM, Geometry, ten_crops

__all__ = ["preprocessed", "ten_crop_averaged"]


def preprocessed(model: Model, augmentation: Augmentation, name: str | None = None) -> Model:
    """Return a model whose pictures are augmented before it sees them, at the size it sees.

    It gives no gradients, so that attacks refuse it.

    >>> from shiftbed.augment import augmentation
    >>> from shiftbed.models import load
    >>> brightness = load(lambda batch: batch.mean((1, 2)), name="brightness")
    >>> preprocessed(brightness, augmentation("clahe")).name
    'brightness after Clahe'
    """

    def predict(batch: npt.NDArray[np.uint8]) -> npt.ArrayLike:
        return model.predict(np.stack([augmentation(picture) for picture in batch]))

    return replace(
        model,
        name=name or f"{model.name} after {type(augmentation).__name__}",
        predict=predict,
        weights=f"{model.weights} after {augmentation}",
        module=None,
    )


def ten_crop_averaged(model: Model, name: str | None = None) -> Model:
    """Return a model that averages its probabilities over ten crops of a picture.

    They are the centre and the corners of the central square that the model's own geometry
    crops from, and their mirror images; where it has no such room, of one 8/7 as large as the
    crop. The logits are the logarithms of the mean probabilities.

    >>> from shiftbed.models import load
    >>> brightness = load(lambda batch: batch.mean((1, 2)), name="brightness", size=28)
    >>> ten_crop_averaged(brightness).geometry.size
    (32, 32)
    """
    own = model.geometry
    if own.size is None:
        raise InputError(
            f"model {model.name} sees pictures of any size, so they have no crops; "
            "give it a size first"
        )
    inner = Geometry(own.size, channels=own.channels, centre=own.centre)

    def predict(batch: npt.NDArray[np.uint8]) -> npt.ArrayLike:
        views = np.stack([ten_crops(inner, picture) for picture in batch])
        logits = model.logits(views.reshape(-1, *views.shape[2:])).astype(np.float64)
        logits -= logits.max(axis=1, keepdims=True)
        chances = np.exp(logits)
        chances /= chances.sum(axis=1, keepdims=True)
        mean = chances.reshape(len(batch), 10, -1).mean(axis=1)
        averaged: npt.NDArray[np.float64] = np.log(np.maximum(mean, np.finfo(np.float32).tiny))
        return averaged

    return replace(
        model,
        name=name or f"{model.name} in ten crops",
        geometry=_roomier(own, own.size),
        predict=predict,
        weights=f"{model.weights} in ten crops",
        module=None,
    )


def _roomier(own: Geometry, size: tuple[int, int]) -> Geometry:
    """Return the geometry that keeps what corner crops are cut from."""
    resize, fit = own.resize, own.fit
    if resize is None:
        fit = "squash"
    if resize is None or any(np.less_equal(resize, size)):
        resize = round(size[0] * ROOM), round(size[1] * ROOM)
    return replace(own, size=resize, resize=resize, fit=fit)
