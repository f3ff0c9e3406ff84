"""Models: from a spec to something that gives logits, with the geometry that it wants."""

from __future__ import annotations

from shiftbed.models._torchvision import import_torchvision
from shiftbed.models.geometry import Fit, Geometry, Interpolation, ten_crops
from shiftbed.models.loading import ModelLike, ModelsLike, expand, list_models, listed, load
from shiftbed.models.model import Model
from shiftbed.models.options import Options
from shiftbed.models.registry import source
from shiftbed.models.tags import read_tags

__all__ = [
    "Fit",
    "Geometry",
    "Interpolation",
    "Model",
    "ModelLike",
    "ModelsLike",
    "Options",
    "expand",
    "import_torchvision",
    "list_models",
    "listed",
    "load",
    "read_tags",
    "source",
    "ten_crops",
]
