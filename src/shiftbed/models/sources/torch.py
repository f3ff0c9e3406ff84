"""``torch:CHECKPOINT,arch=...``: the user's own weights in a known architecture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from shiftbed.errors import InputError, MissingExtraError, unknown
from shiftbed.models._torchvision import import_torchvision
from shiftbed.models.geometry import Geometry
from shiftbed.models.model import Model
from shiftbed.models.options import Options
from shiftbed.models.registry import source

if TYPE_CHECKING:
    import torch

    from shiftbed.models._torch import Pretrained

__all__ = ["architecture", "fill"]

_ARCH = (
    "arch=timm:resnet18, arch=torchvision:resnet18, arch=shiftbed:resnet20 or "
    "arch=python:module:factory"
)


@source("torch", "torch:mine.pt,arch=timm:resnet18", files=True)
def _load(path: str, options: Options) -> Model:
    try:
        from shiftbed.models._torch import read_checkpoint, torch_model
    except ImportError:
        raise MissingExtraError("torch:", "torch") from None
    if options.arch is None:
        raise InputError(f"torch:{path} needs an architecture to fill; add {_ARCH}")
    state = read_checkpoint(path)
    own = architecture(options.arch, options.outputs, options.channels)
    if options.outputs is None:
        outputs = _outputs(state, own.network.state_dict())
        if outputs is not None:
            own = architecture(options.arch, outputs, options.channels)
    fill(own.network, state, path, options.arch)
    return torch_model(Path(path).stem, f"torch:{path}", own, options)


def _outputs(state: dict[str, torch.Tensor], usual: dict[str, torch.Tensor]) -> int | None:
    """How many outputs the checkpoint's classifier has, if not the usual number."""
    for key, value in state.items():
        own = usual.get(key)
        if own is None or value.ndim < 2 or value.shape[1:] != own.shape[1:]:
            continue
        if len(value) != len(own):
            return len(value)
    return None


def architecture(arch: str, outputs: int | None, channels: int | None = None) -> Pretrained:
    """Return the untrained architecture, and how its library prepares pictures for it."""
    from shiftbed.models._torch import Pretrained

    prefix, _, name = arch.partition(":")
    chosen: dict[str, Any] = {} if outputs is None else {"num_classes": outputs}
    if prefix == "shiftbed":
        from shiftbed.models.architectures import build as build_own

        network = build_own(name, outputs or 10, channels or 3)
        return Pretrained(network, Geometry(channels=channels or 3), (0.0,), (1.0,))
    if prefix == "timm":
        from shiftbed.models.sources.timm import as_pretrained, import_timm

        timm = import_timm()
        name, _, attention = name.partition("+")
        if not timm.is_model(name.partition(".")[0]):
            raise unknown("timm model", name, timm.list_models())
        if channels not in (None, 3):
            chosen["in_chans"] = channels
        if attention:  # as in resnet50+cbam: a layer of timm's in each block of a ResNet
            chosen["block_args"] = {"attn_layer": attention}
        try:
            return as_pretrained(timm.create_model(name, pretrained=False, **chosen))
        except (TypeError, AssertionError) as problem:
            if not attention:
                raise
            raise InputError(
                f"timm's {name} cannot be built with the attention {attention!r} ({problem}); "
                "ResNets and ResNeXts can, with se, cbam, eca and others of timm's"
            ) from None
    if prefix == "torchvision":
        from shiftbed.models.sources.torchvision import geometry_of

        models = import_torchvision().models
        if name not in models.list_models(module=models):
            raise unknown("torchvision model", name, models.list_models(module=models))
        preset = models.get_model_weights(name).DEFAULT.transforms()
        network = models.get_model(name, weights=None, **chosen)
        return Pretrained(network, geometry_of(preset), preset.mean, preset.std)
    if prefix == "python":
        from shiftbed.models.sources.python import build

        made: Any = build(name)
        if not hasattr(made, "load_state_dict"):
            raise InputError(f"{arch} made a {type(made).__name__}; expected a torch module")
        return Pretrained(made, Geometry(), (0.0,), (1.0,))
    raise InputError(f"{arch!r} is no architecture; write {_ARCH}")


def fill(network: Any, state: dict[str, torch.Tensor], path: str, arch: str) -> None:
    """Give a network weights that fit it, all of them."""
    own = network.state_dict()
    problems = [
        f"{len(names)} {what} ({names[0]})"
        for what, names in (
            ("missing", [key for key in own if key not in state]),
            ("not in the architecture", [key for key in state if key not in own]),
            (
                "of another shape",
                [key for key in own if key in state and own[key].shape != state[key].shape],
            ),
        )
        if names
    ]
    if problems:
        raise InputError(
            f"the weights in {path} do not fit {arch}: {', '.join(problems)}; "
            "check the architecture, and outputs= if its last layer was replaced"
        )
    network.load_state_dict(state)
