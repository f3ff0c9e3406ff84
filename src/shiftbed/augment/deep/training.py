"""Training a small autoencoder on any pictures, in minutes."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
import torch
from torch.nn import functional

from shiftbed.augment.deep.autoencoder import Autoencoder
from shiftbed.corruptions._api import Picture
from shiftbed.data import ImageSet, UnreadablePicture
from shiftbed.errors import InputError

__all__ = ["Trained", "save", "train_autoencoder"]

#: Of the square patches that it is shown.
_SIDE = 64
_BATCH = 16
_RATE = 2e-3
#: Pictures are shrunk to this shorter side, of which many fit into memory.
_SHORTER = 256
_KEPT = 2000
#: Every so many pictures, one is kept for the measurement, up to so many.
_HELD_OUT = 10
_MEASURED = 32


@dataclass(frozen=True)
class Trained:
    """What training made."""

    network: Autoencoder
    #: The peak signal-to-noise ratio in dB, of pictures that it was not trained on.
    psnr: float
    pictures: int


def train_autoencoder(
    pictures: ImageSet,
    *,
    steps: int = 1500,
    seed: int = 0,
    watch: Callable[[int], None] = lambda steps: None,
) -> Trained:
    """Train an autoencoder to give pictures back, from patches of them.

    A tenth of the pictures is not trained on, and measures it. ``watch`` is called after each
    step.
    """
    if not 1 <= steps <= 10_000_000:
        raise InputError(f"{steps} steps were asked for; expected 1 or more")
    if len(pictures) < 2:
        raise InputError(
            f"{pictures.name} has {len(pictures)} pictures; training needs at least 2, one of "
            "them to measure with"
        )

    @functools.lru_cache(maxsize=_KEPT)
    def seen(index: int) -> Picture | None:
        try:
            return _shrunk(pictures.load(index))
        except UnreadablePicture:
            return None

    rng = np.random.default_rng(seed)
    order = rng.permutation(len(pictures))
    held = order[: max(1, len(order) // _HELD_OUT)][:_MEASURED]
    used = order[len(held) :]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = Autoencoder()
    optimiser = torch.optim.Adam(network.parameters(), _RATE)
    for step in range(steps):
        for group in optimiser.param_groups:
            group["lr"] = _RATE * (1 + math.cos(math.pi * step / steps)) / 2
        batch = _batch(seen, used, rng, pictures.name)
        loss = functional.l1_loss(network(batch), batch)
        optimiser.zero_grad()
        torch.autograd.backward(loss)
        optimiser.step()
        watch(1)
    error = [_error(network, shown) for shown in map(seen, map(int, held)) if shown is not None]
    psnr = -10 * math.log10(max(float(np.mean(error)), 1e-10)) if error else math.nan
    return Trained(network.eval(), psnr, len(used))


def save(network: Autoencoder, path: Path) -> None:
    """Write a network's weights as safetensors, whole or not at all."""
    from safetensors.torch import save as as_safetensors

    temporary = path.with_name(f".{path.name}.part")
    try:
        temporary.write_bytes(as_safetensors(network.state_dict()))
        temporary.replace(path)
    except OSError as problem:
        raise InputError(f"cannot write {path} ({problem.strerror or problem})") from None
    finally:
        temporary.unlink(missing_ok=True)


def _batch(
    seen: Callable[[int], Picture | None],
    used: np.ndarray[tuple[int], np.dtype[np.int64]],
    rng: np.random.Generator,
    name: str,
) -> torch.Tensor:
    """Return a batch of patches, (N, 3, side, side) in [0, 1]."""
    patches: list[Picture] = []
    for _ in range(100 * _BATCH):
        picture = seen(int(rng.choice(used)))
        if picture is not None:
            top, left = (int(rng.integers(side - _SIDE + 1)) for side in picture.shape[:2])
            patch = picture[top : top + _SIDE, left : left + _SIDE]
            patches.append(patch[:, ::-1] if rng.random() < 0.5 else patch)
        if len(patches) == _BATCH:
            return torch.from_numpy(np.stack(patches)).permute(0, 3, 1, 2).float().div(255)
    raise InputError(f"hardly any picture of {name} can be read, so nothing was trained")


def _shrunk(picture: Picture) -> Picture:
    """Return a picture in RGB whose shorter side is that of a patch at least, and not large."""
    if picture.ndim == 2 or picture.shape[2] == 1:
        picture = np.repeat(picture.reshape(*picture.shape[:2], 1), 3, axis=2)
    short = min(picture.shape[:2])
    scale = max(_SIDE, min(_SHORTER, short)) / short
    if scale == 1:
        return picture
    height, width = (max(_SIDE, round(side * scale)) for side in picture.shape[:2])
    how = cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR
    return np.asarray(cv2.resize(picture, (width, height), interpolation=how), np.uint8)


def _error(network: Autoencoder, picture: Picture) -> float:
    """Return the mean squared error on a picture's central square."""
    side = min(_SHORTER, *picture.shape[:2]) // 4 * 4
    top, left = ((whole - side) // 2 for whole in picture.shape[:2])
    square = np.ascontiguousarray(picture[top : top + side, left : left + side])
    with torch.inference_mode():
        shown = torch.from_numpy(square).permute(2, 0, 1)[None].float().div(255)
        return float(functional.mse_loss(network(shown).clamp(0, 1), shown))
