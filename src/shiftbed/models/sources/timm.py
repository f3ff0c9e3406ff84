"""``timm:NAME``: any model of PyTorch Image Models, prepared as timm prepares it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from shiftbed.errors import InputError, MissingExtraError, unknown
from shiftbed.models._torchvision import import_torchvision
from shiftbed.models.geometry import Fit, Geometry
from shiftbed.models.model import Model
from shiftbed.models.options import Options
from shiftbed.models.registry import source

if TYPE_CHECKING:
    from shiftbed.models._torch import Pretrained

__all__ = ["as_pretrained", "geometry_of", "import_timm"]


def import_timm(wanted_by: str = "timm:") -> Any:
    """Import timm, for a spec that needs it."""
    import_torchvision()
    try:
        import timm
    except ImportError:
        raise MissingExtraError(wanted_by, "timm") from None
    return timm


def _names() -> Sequence[str]:
    timm = import_timm()
    return [
        name
        for name in timm.list_models(pretrained=True)
        if timm.get_pretrained_cfg(name).num_classes  # the rest give features alone
    ]


@source("timm", "timm:resnet50.a1_in1k", names=_names)
def _load(name: str, options: Options) -> Model:
    from shiftbed.models._torch import torch_model

    timm = import_timm()
    architecture, _, tag = name.partition(".")
    if not timm.is_model(architecture):
        raise unknown("timm model", name, timm.list_models() + timm.list_models(pretrained=True))
    tags = {one.partition(".")[2] for one in timm.list_models(f"{architecture}.*", pretrained=True)}
    if tag and tag not in tags:
        raise unknown(f"weights of timm's {architecture} named", tag, tags)
    if timm.get_pretrained_cfg(name).num_classes == 0:
        raise InputError(f"timm:{name} gives features, not classes; choose one with a classifier")
    try:
        at_hand = _local(timm, name)
        network = timm.create_model(name, pretrained=True, pretrained_cfg_overlay=at_hand)
    except (OSError, RuntimeError) as problem:
        said = (str(problem).strip() or type(problem).__name__).splitlines()[0]
        raise InputError(
            f"the weights of timm:{name} are not at hand and cannot be fetched ({said[:160]}); "
            "on a machine with a network, load it once to fill the Hugging Face cache and copy "
            f"that here, or give a checkpoint: torch:FILE,arch=timm:{architecture}"
        ) from None
    return torch_model(name, f"timm:{name}", as_pretrained(network), options)


def _local(timm: Any, name: str) -> dict[str, Any]:
    """Say where the weights are, if they are in the hub's cache already."""
    from shiftbed.models.hub import cached_file, reachable

    repository = (timm.get_pretrained_cfg(name).hf_hub_id or "").partition("@")[0]
    if not repository:
        return {}
    repository = repository if "/" in repository else f"timm/{name}"
    found = cached_file(repository, ["model.safetensors", "pytorch_model.bin"])
    if found is not None:
        return {"file": str(found)}
    if not reachable():
        raise OSError(f"{repository} is not in the hub's cache, and the hub cannot be reached")
    return {}


def as_pretrained(network: Any) -> Pretrained:
    """Return a timm network with timm's own evaluation transform."""
    from shiftbed.models._torch import Pretrained

    data = import_timm().data
    config = data.resolve_model_data_config(network)
    own = network.pretrained_cfg
    keys = None
    if network.num_classes == own.get("num_classes"):
        # ImageNet's 1,000, or one of the larger sets that timm knows the order of.
        subset = data.infer_imagenet_subset(own)
        keys = subset and tuple(data.ImageNetInfo(subset).label_names())
    return Pretrained(
        network,
        geometry_of(config),
        config["mean"],
        config["std"],
        keys,
        {"architecture": own.get("architecture")},
    )


def geometry_of(config: dict[str, Any]) -> Geometry:
    """Return the geometry of timm's evaluation transform for a data configuration.

    >>> str(geometry_of({"input_size": (3, 224, 224), "crop_pct": 0.875,
    ...                  "interpolation": "bicubic", "crop_mode": "center"}))
    '224x224 from shorter 256, bicubic'
    """
    channels, height, width = config["input_size"]
    scaled = tuple(math.floor(side / config["crop_pct"]) for side in (height, width))
    mode = config.get("crop_mode") or "center"
    fill = (0, 0, 0)
    fit: Fit
    if mode == "squash":
        fit = "squash"
    elif mode == "border":
        fit = "contain"
        levels = [round(255 * level) for level in config["mean"]]
        fill = (levels[0], levels[-2], levels[-1]) if len(levels) > 1 else (levels[0],) * 3
    else:
        fit = "shorter" if scaled[0] == scaled[1] else "cover"
    return Geometry(
        (height, width),
        (scaled[0], scaled[1]),
        fit,
        config["interpolation"],
        channels=channels,
        fill=fill,
    )
