"""``trained:DIR``: what ``shiftbed train run`` left in a directory, with all that it wants."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shiftbed.data import found_path, read_text
from shiftbed.errors import InputError, MissingExtraError
from shiftbed.models import Geometry, Model, Options, source

if TYPE_CHECKING:
    from shiftbed.augment import Augmentation

__all__ = ["CARD", "WEIGHTS", "made_of", "read_trained", "share_of"]

#: The names of a training's files.
CARD = "card.json"
WEIGHTS = "model.safetensors"


def read_trained(folder: Path) -> dict[str, Any]:
    """Read the run card of a training that is finished."""
    path = folder / CARD
    if not path.is_file():
        waiting = " (a training in it is not finished)" if any(folder.glob("checkpoint*")) else ""
        raise InputError(f"{folder} holds no {CARD}{waiting}; give the directory of a training")
    try:
        told = json.loads(read_text(path))
        model = told["model"]
        told["recipe"].get("preprocess")
        for key in ("architecture", "outputs", "channels", "size", "mean", "std", "classes"):
            model[key]
    except (
        OSError,
        UnicodeDecodeError,
        json.JSONDecodeError,
        KeyError,
        TypeError,
        AttributeError,
    ) as problem:
        raise InputError(
            f"{path} is not the card of a training ({type(problem).__name__}: {problem})"
        ) from None
    card: dict[str, Any] = told
    return card


@source("trained", "trained:runs/augmix", files=True)
def _load(folder: str, options: Options) -> Model:
    try:
        from shiftbed.models._torch import Pretrained, read_checkpoint, torch_model
        from shiftbed.models.sources.torch import architecture, fill
    except ImportError:
        raise MissingExtraError("trained:", "torch") from None
    path = found_path(folder) or Path(folder)
    card = read_trained(path)
    told = card["model"]
    own = architecture(told["architecture"], told["outputs"], told["channels"])
    weights = str(path / WEIGHTS)
    fill(own.network, read_checkpoint(weights), weights, told["architecture"])
    side = told["size"]
    made = Pretrained(
        own.network,
        Geometry((side, side), (side, side), channels=told["channels"]),
        told["mean"],
        told["std"],
        tuple(told["classes"]),
        {"architecture": told["architecture"], "recipe": card["recipe"].get("name")},
    )
    model = torch_model(path.resolve().name, f"trained:{folder}", made, options)
    for step in card["recipe"].get("preprocess", ()):
        from shiftbed.augment import preprocessed

        model = preprocessed(model, made_of(step), model.name)
    return model


def made_of(step: Mapping[str, Any], seed: int = 0) -> Augmentation:
    """Return the augmentation that a step of a recipe declares.

    >>> made_of({"kind": "clahe", "clip": 3})
    Clahe(seed=0, clip=3.0, tiles=8)
    """
    from shiftbed.augment import augmentation

    options = {"seed": seed, **step}
    options.pop("share", None)
    return augmentation(options.pop("kind"), **options)


def share_of(step: Mapping[str, Any]) -> float:
    """Return of how many of the pictures a step is done: of all, unless it says ``share``."""
    share = step.get("share", 1)
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 1:
        raise InputError(f"the share of {step['kind']} is {share!r}; expected a part, as in 0.5")
    return float(share)
