"""What augmentations there are: one small class each, found by name."""

from __future__ import annotations

import dataclasses
import functools
import importlib
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from shiftbed import _plugins
from shiftbed.augment._augmentation import Augmentation
from shiftbed.errors import InputError, unknown

__all__ = ["augmentation", "augmentation_names", "augmentations", "register"]

_MODULES = ("deepaugment", "erasing", "mixing", "noise", "noise2net", "restoring", "style")

Kind = TypeVar("Kind", bound=type[Augmentation])

_kinds: dict[str, type[Augmentation]] = {}


def register(name: str) -> Callable[[Kind], Kind]:
    """Give an augmentation the name that recipes and the command line find it by."""

    def add(kind: Kind) -> Kind:
        _kinds[name] = kind
        return kind

    return add


@functools.cache
def _load() -> None:
    for module in _MODULES:
        importlib.import_module(f"shiftbed.augment.{module}")
    _plugins.load()


def augmentations() -> Mapping[str, type[Augmentation]]:
    """Return every augmentation by its name."""
    _load()
    return dict(sorted(_kinds.items()))


def augmentation_names() -> tuple[str, ...]:
    """Return the names of all augmentations.

    >>> "augmix" in augmentation_names()
    True
    """
    return tuple(augmentations())


def augmentation(name: str, **options: Any) -> Augmentation:
    """Return an augmentation by its name; options are its fields, as values or as text.

    >>> augmentation("speckle_noise", scale="0.4", seed=2)
    SpeckleNoise(seed=2, scale=0.4, vary=True)
    """
    known = augmentations()
    if name not in known:
        raise unknown("augmentation", name, known)
    kind = known[name]
    fields = {field.name: field for field in dataclasses.fields(kind) if field.init}
    for option in options:
        if option not in fields:
            raise unknown(f"option of {name}", option, fields)
    missing = next(
        (
            field.name
            for field in fields.values()
            if field.name not in options
            and field.default is dataclasses.MISSING
            and field.default_factory is dataclasses.MISSING
        ),
        None,
    )
    if missing is not None:
        raise InputError(f"{name} needs the option {missing}; its options are {', '.join(fields)}")
    return kind(**{option: _read(name, fields[option], given) for option, given in options.items()})


def _read(name: str, field: dataclasses.Field[Any], value: object) -> Any:
    """Return an option's value, of the kind that its default has."""
    kind = type(field.default)
    if kind in (int, float, bool) and not isinstance(value, bool):
        words = {"yes": True, "true": True, "no": False, "false": False}
        try:
            if kind is bool:
                return words[str(value).casefold()]
            number = float(str(value))
            if kind is float or number == int(number):
                return kind(number)
        except (KeyError, ValueError, OverflowError):
            pass
        what = {int: "a whole number", float: "a number", bool: "yes or no"}[kind]
        raise InputError(f"the option {field.name} of {name} is {value!r}; expected {what}")
    return value
