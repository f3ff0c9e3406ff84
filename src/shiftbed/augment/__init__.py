"""Augmentations: what the papers do to training pictures, and to pictures before a model.

Each is a transform of PIL pictures, uint8 tensors and arrays, that draws at random by its seed
and the picture's key alone.

>>> import numpy as np
>>> augment = augmentation("augmix", severity=3, seed=1)
>>> augment(np.full((32, 32, 3), 90, np.uint8), key="cat.jpg").shape
(32, 32, 3)
"""

from __future__ import annotations

from shiftbed.augment._augmentation import Augmentation, AugmentedDataset
from shiftbed.augment._registry import augmentation, augmentation_names, augmentations, register
from shiftbed.augment.consistency import jensen_shannon
from shiftbed.augment.wrapping import preprocessed, ten_crop_averaged

__all__ = [
    "Augmentation",
    "AugmentedDataset",
    "augmentation",
    "augmentation_names",
    "augmentations",
    "jensen_shannon",
    "preprocessed",
    "register",
    "ten_crop_averaged",
]
