"""Training: interventions of the papers as recipes, and one small trainer for all of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shiftbed.errors import InputError, MissingExtraError
from shiftbed.train.recipe import Recipe, read_recipe, recipes

if TYPE_CHECKING:
    from shiftbed.data import ImageSet
    from shiftbed.train.card import Card
    from shiftbed.train.loop import Progress

__all__ = ["Recipe", "read_recipe", "recipes", "train"]


def train(
    recipe: Recipe | str | Path,
    data: ImageSet | str | Path,
    output: str | Path,
    *,
    test: ImageSet | str | Path | None = None,
    device: str = "auto",
    workers: int = 0,
    minutes: float = 5.0,
    watch: Callable[[Progress], None] = lambda progress: None,
    **changes: Any,
) -> Card:
    """Train a network as a recipe says, and return the run card; ``trained:DIR`` is the model.

    ``changes`` are values of the recipe, such as ``epochs=20`` or ``architecture="resnet8"``.
    The same call goes on after an interruption, and ends with the same bits. A checkpoint is
    written after each pass, and every so many ``minutes``; ``test`` is scored after each pass.

    >>> import tempfile
    >>> import numpy as np
    >>> from shiftbed.data import ArraySet
    >>> tones = np.repeat(np.arange(40, dtype=np.uint8) * 6, 64).reshape(40, 8, 8)
    >>> photos = ArraySet("tones", tones, np.arange(40) // 20, ["dark", "light"])
    >>> card = train("plain", photos, tempfile.mkdtemp(), architecture="resnet8-4", epochs=2,
    ...              batch=20, crop="none")
    >>> card.model["outputs"], len(card.history)
    (2, 2)
    """
    from shiftbed.data import open_set

    if device not in ("auto", "cpu"):
        raise InputError(f"the device for training is {device!r}; expected auto or cpu")
    if not isinstance(recipe, Recipe):
        recipe = read_recipe(recipe, changes)
    elif changes:
        raise InputError("a Recipe that is made already is not changed; use dataclasses.replace")
    try:
        from shiftbed.train.loop import fit
    except ImportError as problem:
        if problem.name not in ("torch", "accelerate", "safetensors"):
            raise
        raise MissingExtraError("training", "train") from None
    return fit(
        recipe,
        open_set(data),
        Path(output),
        test=None if test is None else open_set(test),
        device=device,
        workers=workers,
        minutes=minutes,
        watch=watch,
    )
