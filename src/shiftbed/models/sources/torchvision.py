"""``torchvision:NAME`` or ``torchvision:NAME.WEIGHTS``, prepared as torchvision prepares it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from shiftbed.data import imagenet_classes
from shiftbed.errors import InputError, unknown
from shiftbed.models._torchvision import import_torchvision
from shiftbed.models.geometry import Geometry
from shiftbed.models.model import Model
from shiftbed.models.options import Options
from shiftbed.models.registry import source

__all__ = ["geometry_of"]


def _names() -> Sequence[str]:
    models = import_torchvision().models
    return [
        f"{name}.{weights.name}"
        for name in models.list_models(module=models)
        for weights in models.get_model_weights(name)
    ]


@source("torchvision", "torchvision:resnet50", names=_names)
def _load(name: str, options: Options) -> Model:
    from shiftbed.models._torch import Pretrained, torch_model

    models = import_torchvision().models
    architecture, _, wanted = name.partition(".")
    if architecture not in models.list_models(module=models):
        raise unknown("torchvision model", architecture, models.list_models(module=models))
    known = models.get_model_weights(architecture)
    if wanted and wanted not in known.__members__:
        raise unknown(f"weights of torchvision's {architecture} named", wanted, known.__members__)
    weights = known[wanted] if wanted else known.DEFAULT
    import torch

    try:
        network = models.get_model(architecture, weights=weights, progress=False)
    except (OSError, RuntimeError) as problem:
        said = (str(problem).strip() or type(problem).__name__).splitlines()[0]
        folder = Path(torch.hub.get_dir()) / "checkpoints"
        raise InputError(
            f"the weights of torchvision:{name} are not at hand and cannot be fetched "
            f"({said[:160]}); put {weights.url} into {folder}"
        ) from None
    preset = weights.transforms()
    own = Pretrained(
        network,
        geometry_of(preset),
        preset.mean,
        preset.std,
        imagenet_classes(),
        {"architecture": architecture},
    )
    return torch_model(name, f"torchvision:{name}", own, options)


def geometry_of(preset: Any) -> Geometry:
    """Return the geometry of one of torchvision's classification presets."""
    size, resize = preset.crop_size[0], preset.resize_size
    interpolation = preset.interpolation.value
    if len(resize) == 2:
        return Geometry((size, size), tuple(resize), "squash", interpolation, channels=3)
    return Geometry((size, size), (resize[0],) * 2, "shorter", interpolation, channels=3)
