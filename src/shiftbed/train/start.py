"""Weights to go on from."""

from __future__ import annotations

from pathlib import Path

from torch import nn

from shiftbed.errors import InputError
from shiftbed.models._torch import read_checkpoint
from shiftbed.train.source import WEIGHTS

__all__ = ["fill_from"]


def fill_from(network: nn.Module, start: str, channels: int) -> None:
    """Give a network the weights of a checkpoint, but those of a head for other classes."""
    path = Path(start)
    state = read_checkpoint(path / WEIGHTS if path.is_dir() else path)
    own = network.state_dict()
    missing = [key for key in own if key not in state]
    if missing or not own:
        raise InputError(
            f"the weights in {start} lack {len(missing)} that the architecture has "
            f"({missing[0]}); check the architecture"
        )
    strange = [key for key, value in own.items() if state[key].shape != value.shape]
    first = next(iter(own))
    head = [key for key in list(own)[-2:] if own[key].ndim <= 2]
    for key in strange:
        theirs, ours = tuple(state[key].shape), tuple(own[key].shape)
        if len(ours) == 4 and len(theirs) == 4 and key == first and theirs[1] != ours[1]:
            raise InputError(
                f"the weights in {start} take pictures of {theirs[1]} channels, and these have "
                f"{channels}; set channels = {theirs[1]}"
            )
        if key not in head or theirs[1:] != ours[1:]:
            raise InputError(
                f"the weights in {start} do not fit: {key} has shape {theirs}, and the "
                f"architecture's {ours}; check the architecture"
            )
    network.load_state_dict({key: own[key] if key in strange else state[key] for key in own})
