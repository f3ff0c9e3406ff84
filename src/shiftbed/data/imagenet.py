"""The 1,000 classes of ImageNet: WordNet ids in the order of every model's outputs."""

from __future__ import annotations

from functools import cache
from importlib import resources

__all__ = ["imagenet_classes", "imagenet_names"]


@cache
def imagenet_names() -> dict[str, tuple[str, ...]]:
    """Return WordNet id -> its names, in the order of the outputs of ImageNet models.

    >>> imagenet_names()["n01443537"]
    ('goldfish', 'Carassius auratus')
    """
    text = (resources.files("shiftbed.data") / "imagenet_classes.tsv").read_text("utf-8")
    rows = (line.split("\t") for line in text.splitlines() if not line.startswith("#"))
    return {key: tuple(names.split(", ")) for key, names in rows}


def imagenet_classes() -> tuple[str, ...]:
    """Return the 1,000 WordNet ids; the position is the usual class index.

    >>> imagenet_classes()[1]
    'n01443537'
    """
    return tuple(imagenet_names())
