"""What a model's outputs mean."""

from __future__ import annotations

from pathlib import Path

from shiftbed.data import found_path, imagenet_classes, imagenet_names, read_text
from shiftbed.errors import InputError

__all__ = ["class_keys", "read_classes", "text_lines", "wordnet_keys"]


def class_keys(
    given: str | tuple[str, ...] | None, own: tuple[str, ...] | None, outputs: int, model: str
) -> tuple[str, ...] | None:
    """Return the outputs' keys: the user's word, else the library's own.

    >>> class_keys(("cat", "dog"), None, 2, "mine")
    ('cat', 'dog')
    """
    if given is None:
        return own if own is not None and len(own) == outputs else None
    if isinstance(given, tuple):
        keys = given
    elif given == "imagenet-1k":
        keys = imagenet_classes()
        if outputs == 1001:  # as TensorFlow's older models count
            keys = ("background", *keys)
    else:
        keys = read_classes(given)
    if len(keys) != outputs:
        raise InputError(
            f"{model} has {outputs:,} outputs, but {len(keys):,} classes were given for them; "
            "give one per output, in order"
        )
    if len(set(keys)) != len(keys):
        twice = next(key for key in keys if keys.count(key) > 1)
        raise InputError(f"the classes given for {model} name {twice!r} twice")
    return keys


def read_classes(path: str) -> tuple[str, ...]:
    """Read a file with one class per line, in the order of a model's outputs."""
    lines = text_lines(path)
    if lines is None:
        raise InputError(
            f"cannot read the classes from {path!r}; expected imagenet-1k, or a text file with "
            "one class per line in the order of the outputs"
        )
    return tuple(lines)


def text_lines(path: str) -> list[str] | None:
    """Return the lines of a text file that are not blank; None if it cannot be read."""
    try:
        lines = read_text(found_path(path) or Path(path)).splitlines()
    except InputError:
        raise
    except (OSError, ValueError):
        return None
    return [line.strip() for line in lines if line.strip()]


def wordnet_keys(names: list[str]) -> tuple[str, ...]:
    """Return WordNet ids where the names are ImageNet's 1,000 in their order, else the names.

    >>> wordnet_keys(["cat", "dog"])
    ('cat', 'dog')
    """
    known = imagenet_names()
    if len(names) == len(known) and all(
        name.partition(",")[0].strip().casefold() in {words[0].casefold(), key}
        for name, (key, words) in zip(names, known.items(), strict=True)
    ):
        return tuple(known)
    return tuple(names)
