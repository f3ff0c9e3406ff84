"""A part of an image set, for a first look."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from shiftbed.data import ImageSet, Subset, card_of, renamed
from shiftbed.errors import InputError
from shiftbed.settings import Setting

__all__ = ["limited", "sample"]


def limited(settings: Sequence[Setting], limit: int | None, seed: int) -> list[Setting]:
    """Return the settings with at most ``limit`` pictures of each image set."""
    if limit is None:
        return list(settings)
    if limit < 1:
        raise InputError(f"the limit is {limit}; it must be at least one picture")
    drawn = {id(setting.images): sample(setting.images, limit, seed) for setting in settings}
    names = {one.name: _name(one, drawn[id(one.images)]) for one in settings}
    sampled = {whole: _with_names(images, names) for whole, images in drawn.items()}
    found: dict[str, Setting] = {}
    for setting in settings:  # the usual ones come before those that are told apart from them
        usual = None if setting.usual is None else found[setting.usual.name]
        found[setting.name] = replace(
            setting, images=sampled[id(setting.images)], name=names[setting.name], usual=usual
        )
    return list(found.values())


def _with_names(images: ImageSet, names: Mapping[str, str]) -> ImageSet:
    """Let a sample name the samples of its counterparts, where these are drawn too."""
    if not isinstance(images, Subset):
        return images
    return replace(images, card=renamed(card_of(images), names))


def sample(images: ImageSet, limit: int, seed: int = 0) -> ImageSet:
    """Draw ``limit`` pictures, as evenly over the classes as these allow.

    A picture's turn depends on the seed and its id alone, and classes take turns: so the
    sample of 100 is a part of the sample of 200. Frame sets are drawn whole.
    """
    if limit >= len(images):
        return images
    frames = getattr(images, "frames", None)
    groups = images.ids if frames is None else frames.sets
    turns = [
        hashlib.sha256(f"{seed}:{name}".encode("utf-8", "surrogateescape")).digest()
        for name in groups
    ]
    order = sorted(range(len(images)), key=turns.__getitem__)
    labels = images.labels
    taken: defaultdict[int, int] = defaultdict(int)
    rounds = np.zeros(len(images), np.int64)
    if frames is None and labels is not None and labels.ndim == 1:
        for index in order:
            rounds[index] = taken[int(labels[index])]
            taken[int(labels[index])] += 1
    order.sort(key=rounds.__getitem__)
    chosen = order[:limit]
    if frames is not None:
        begun = {groups[index] for index in chosen}
        chosen = [index for index in order if groups[index] in begun]
    detail = f"limit={limit}" + (f",seed={seed}" if seed else "")
    card = card_of(images)
    return Subset(images, np.sort(np.array(chosen)), f"{images.name}[{detail}]", card)


def _name(setting: Setting, images: ImageSet) -> str:
    return images.name + setting.name.removeprefix(setting.images.name)
