"""Attacks on models: pictures in, attacked pixels and the model's logits for them out."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from shiftbed.attacks.attack import Attack
from shiftbed.data import ClassSpace, Labels
from shiftbed.errors import InputError
from shiftbed.models import Model

if TYPE_CHECKING:
    import torch

__all__ = ["attacked", "attacked_logits", "check_attackable"]


def check_attackable(model: Model, attack: Attack, labels: Labels | None) -> None:
    """Refuse a model without gradients, and pictures that have several classes."""
    if model.module is None:
        raise InputError(
            f"model {model.name} cannot be attacked with {attack}: it takes whole grey levels and "
            "gives no gradients; leave it out, or load it as a torch network (timm:, "
            "torchvision:, torch:, hf: or a torch module)"
        )
    if labels is not None and labels.ndim == 2:
        raise InputError(
            f"{attack} needs pictures of one class each, and these may have several; "
            "leave the attack out"
        )


def attacked(
    model: Model,
    pictures: npt.NDArray[np.uint8],
    attack: Attack,
    labels: npt.ArrayLike | None = None,
    *,
    keys: Sequence[str] | None = None,
    seed: int = 0,
    space: ClassSpace | None = None,
    stop_early: bool = True,
) -> npt.NDArray[np.float32]:
    """Return attacked pixels in [0, 1], (N, H, W, C), for uint8 pictures in the model's geometry.

    The attack leads away from ``labels``, or where there are none (or one is below 0), from the
    model's own answer. They are read in ``space``, and without it are the model's outputs.
    ``keys`` are the pictures' ids, to which the random draws belong.
    """
    check_attackable(model, attack, None)
    found = _search(model, pictures, attack, labels, keys, seed, space, stop_early)
    pixels: npt.NDArray[np.float32] = found.permute(0, 2, 3, 1).cpu().numpy()
    return pixels


def attacked_logits(
    model: Model,
    pictures: npt.NDArray[np.uint8],
    attack: Attack,
    labels: npt.ArrayLike | None = None,
    *,
    keys: Sequence[str] | None = None,
    seed: int = 0,
    space: ClassSpace | None = None,
) -> npt.NDArray[np.float32]:
    """Return the model's logits for attacked pictures, which are not rounded to grey levels."""
    import torch

    found = _search(model, pictures, attack, labels, keys, seed, space, True)
    assert model.module is not None
    with torch.inference_mode():
        logits: npt.NDArray[np.float32] = model.module(found).cpu().numpy()
    return logits


def _search(
    model: Model,
    pictures: npt.NDArray[np.uint8],
    attack: Attack,
    labels: npt.ArrayLike | None,
    keys: Sequence[str] | None,
    seed: int,
    space: ClassSpace | None,
    stop_early: bool,
) -> torch.Tensor:
    import torch

    from shiftbed.attacks.descent import descend, start_in_ball

    module = model.module
    assert module is not None
    device = next((tensor.device for tensor in module.buffers()), torch.device("cpu"))
    shown = torch.from_numpy(np.array(pictures)).permute(0, 3, 1, 2).to(device)
    pixels = shown.contiguous(memory_format=torch.channels_last).float().div(255)
    read = _reader(space)

    def network(seen: torch.Tensor) -> torch.Tensor:
        return read(module(seen))

    wanted = np.full(len(pictures), -1) if labels is None else np.asarray(labels)
    truth = torch.from_numpy(wanted.astype(np.int64)).to(device)
    if bool((truth < 0).any()):
        with torch.no_grad():
            truth = torch.where(truth < 0, network(pixels).argmax(dim=1), truth)
    radius = attack.radius(*pictures.shape[1:3])
    start = None
    if attack.random:
        noise = torch.from_numpy(_noise(pictures.shape, attack, keys, seed))
        noise = noise.permute(0, 3, 1, 2).to(device)
        start = start_in_ball(pixels, noise, radius, attack.norm)
    try:
        return descend(
            network,
            pixels,
            truth,
            norm=attack.norm,
            radius=radius,
            steps=attack.gradients,
            step=attack.step,
            start=start,
            stop_early=stop_early,
        )
    except RuntimeError as problem:
        if "does not require grad" not in str(problem):
            raise
        raise InputError(
            f"model {model.name} cannot be attacked with {attack}: its logits have no gradient "
            "with respect to the pixels (something in it detaches them)"
        ) from None


def _noise(
    shape: tuple[int, ...], attack: Attack, keys: Sequence[str] | None, seed: int
) -> npt.NDArray[np.float32]:
    """Draw one point of the ball of radius 1 per picture, from a stream of the picture's own."""
    names = [str(number) for number in range(shape[0])] if keys is None else keys
    drawn = np.empty(shape, np.float32)
    for place, name in enumerate(names):
        stream = hashlib.sha256(f"{seed}:{attack}:{name}".encode("utf-8", "surrogateescape"))
        rng = np.random.default_rng(int.from_bytes(stream.digest()))
        if attack.norm == "linf":
            drawn[place] = rng.uniform(-1, 1, shape[1:])
        else:
            line = rng.standard_normal(shape[1:])
            line /= np.linalg.norm(line)
            drawn[place] = line * rng.uniform() ** (1 / line.size)
    return drawn


def _reader(space: ClassSpace | None) -> Callable[[torch.Tensor], torch.Tensor]:
    """Return how outputs become the scores of classes, so that gradients pass."""
    import math

    import torch

    if space is None:
        return lambda logits: logits
    if space.kind != "superclass":
        first = [outputs[0] for outputs in space.members]
        return lambda logits: logits[:, first]

    def combined(logits: torch.Tensor, outputs: tuple[int, ...]) -> torch.Tensor:
        own = logits[:, list(outputs)]
        if space.combine == "max":
            return own.amax(dim=1)
        less = math.log(len(outputs)) if space.combine == "mean" else 0.0
        return own.logsumexp(dim=1) - less

    return lambda logits: torch.stack([combined(logits, one) for one in space.members], dim=1)
