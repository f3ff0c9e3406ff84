"""Torch networks as models. Imported only where torch is wanted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from shiftbed.data import digest, found_path
from shiftbed.errors import InputError
from shiftbed.models.geometry import Geometry
from shiftbed.models.keys import class_keys
from shiftbed.models.model import Model
from shiftbed.models.options import IMAGENET_MEAN, IMAGENET_STD, Options
from shiftbed.models.probing import probe

__all__ = ["Normalised", "Pretrained", "read_checkpoint", "torch_model"]


@dataclass(frozen=True)
class Pretrained:
    """A network, and how its own library prepares pictures for it."""

    network: nn.Module
    geometry: Geometry
    mean: Sequence[float] = IMAGENET_MEAN
    std: Sequence[float] = IMAGENET_STD
    keys: tuple[str, ...] | None = None
    tags: Mapping[str, Any] = field(default_factory=dict)


class Normalised(nn.Module):
    """A network behind its normalisation: from pixels in [0, 1] to logits."""

    mean: torch.Tensor
    std: torch.Tensor

    def __init__(
        self, network: nn.Module, mean: Sequence[float], std: Sequence[float], dtype: torch.dtype
    ) -> None:
        super().__init__()
        self.network = network
        self.dtype = dtype
        self.register_buffer("mean", torch.tensor(tuple(mean)).view(1, -1, 1, 1))
        self.register_buffer("std", torch.tensor(tuple(std)).view(1, -1, 1, 1))

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        # In float32 whatever the network's precision, as every library's transform does it.
        logits = self.network(pixels.sub(self.mean).div(self.std).to(self.dtype))
        answer = getattr(logits, "logits", logits)
        if not isinstance(answer, torch.Tensor):
            raise InputError(
                f"{type(self.network).__name__} returns {type(answer).__name__}; "
                "expected one tensor of logits (N, classes)"
            )
        return answer.float()


def torch_model(name: str, spec: str, own: Pretrained, options: Options) -> Model:
    """Return a torch network as a model, with the user's overrides."""
    device, dtype = _device(options.device), _dtype(options.dtype)
    network = own.network.eval().requires_grad_(False)
    mean, std = options.mean or own.mean, options.std or own.std
    how = f"{options.dtype}{' compiled' if options.compile else ''}"
    weights = _hash(network, mean, std, how)
    network = network.to(dtype=dtype)
    compiled: Any = torch.compile(network) if options.compile else network
    module = Normalised(compiled, mean, std, dtype).to(device).eval()
    geometry = options.geometry(own.geometry)
    predict = _predictor(module, device)
    # Convolutions are up to 2.5 times faster where a pixel's channels lie side by side, as in
    # the batch itself. A network that looks at strides (by view) may not take it.
    convert: Callable[..., Any] = module.to  # its annotations know no memory_format
    try:
        convert(memory_format=torch.channels_last)
        outputs = probe(predict, geometry, name).shape[1]
    except InputError:
        convert(memory_format=torch.contiguous_format)
        predict = _predictor(module, device, torch.contiguous_format)
        outputs = probe(predict, geometry, name).shape[1]
    return Model(
        name=name,
        spec=spec,
        geometry=geometry,
        outputs=outputs,
        predict=predict,
        weights=weights,
        class_keys=class_keys(options.classes, own.keys, outputs, name),
        module=module,
        tags=own.tags,
    )


def _predictor(
    module: nn.Module, device: torch.device, layout: torch.memory_format = torch.channels_last
) -> Callable[[npt.NDArray[np.uint8]], npt.NDArray[np.float32]]:
    def predict(batch: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
        with torch.inference_mode():
            # A copy, because torch warns of arrays that cannot be written to.
            pictures = torch.from_numpy(np.array(batch)).permute(0, 3, 1, 2)
            pixels = pictures.to(device).contiguous(memory_format=layout).to(torch.float32).div(255)
            logits: npt.NDArray[np.float32] = module(pixels).cpu().numpy()
            return logits

    return predict


def _device(name: str) -> torch.device:
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as problem:
        said = str(problem).strip().splitlines()[0]
        raise InputError(
            f"the device {name!r} cannot be used here ({said}); cpu always can"
        ) from None
    return device


def _dtype(name: str) -> torch.dtype:
    known = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
    if name not in known:
        raise InputError(f"there is no dtype {name!r}; choose one of {', '.join(known)}")
    return known[name]


def _hash(network: nn.Module, mean: Sequence[float], std: Sequence[float], how: str) -> str:
    parts: list[str | bytes] = [repr(network), repr(tuple(mean)), repr(tuple(std)), how]
    for key, value in network.state_dict().items():
        if isinstance(value, torch.Tensor):
            parts += [key, str(value.dtype), str(tuple(value.shape))]
            parts.append(
                value.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().tobytes()
            )
    return digest(parts)


def read_checkpoint(path: str | Path) -> dict[str, torch.Tensor]:
    """Read a state dict, from torch's format (weights only) or safetensors."""
    found = found_path(path)
    if found is None or not found.is_file():
        raise InputError(f"there is no checkpoint {path}")
    path = found
    if path.suffix == ".safetensors":
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        try:
            return load_file(path)
        except SafetensorError as problem:
            raise InputError(f"{path} is not a safetensors file ({problem})") from None
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as problem:  # torch raises whatever its unpickler does
        said = str(problem).strip().splitlines()[0]
        raise InputError(
            f"{path} is not a checkpoint of plain tensors ({said}); save the network's "
            "state_dict(), since a file with code in it is not opened"
        ) from None
    for key in ("state_dict", "model_state_dict", "model", "net"):
        if isinstance(content, dict) and isinstance(content.get(key), dict):
            content = content[key]
            break
    if not isinstance(content, dict) or not all(
        isinstance(value, torch.Tensor) for value in content.values()
    ):
        raise InputError(f"{path} holds no state_dict; save the network's state_dict()")
    # What DataParallel and torch.compile put before every name.
    for prefix in ("module.", "_orig_mod."):
        if content and all(key.startswith(prefix) for key in content):
            content = {key.removeprefix(prefix): value for key, value in content.items()}
    return content
