"""What a user may override of a model: by flag, by keyword, or in its spec."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, get_args

from shiftbed.errors import InputError, unknown
from shiftbed.models.geometry import Geometry, Interpolation

__all__ = ["IMAGENET_MEAN", "IMAGENET_STD", "Options", "read_options"]

#: Of pixels in [0, 1], as most libraries normalise.
IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)


@dataclass(frozen=True)
class Options:
    """Overrides; None leaves what the model's own library says.

    >>> Options(size=288).geometry(Geometry((224, 224), (256, 256))).resize
    (329, 329)
    """

    #: The name in tables.
    name: str | None = None
    #: Height and width that the model sees; the resize follows in proportion.
    size: int | tuple[int, int] | None = None
    #: Height and width before the crop, or the shorter side.
    resize: int | tuple[int, int] | None = None
    #: The part of the resized picture that the crop keeps, as timm's crop_pct.
    crop: float | None = None
    interpolation: Interpolation | None = None
    antialias: bool | None = None
    channels: int | None = None
    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None
    #: What the outputs mean: ``imagenet-1k``, a file with one key per line, or the keys.
    classes: str | tuple[str, ...] | None = None
    #: ``torch:`` alone: which architecture the checkpoint fills, as ``timm:resnet18``.
    arch: str | None = None
    #: How many outputs the architecture has, where it can be chosen.
    outputs: int | None = None
    #: Zero-shot models: a file with one prompt per line, ``{}`` standing for the class.
    prompts: str | None = None
    #: What studies ask about models: a file that says it by model name, or this model's own.
    tags: str | Mapping[str, Any] | None = None
    device: str = "cpu"
    dtype: str = "float32"
    compile: bool = False

    def geometry(self, own: Geometry) -> Geometry:
        """Return a model's own geometry with the overrides."""
        changed = own
        if self.channels is not None:
            changed = replace(changed, channels=self.channels)
        if self.interpolation is not None:
            changed = replace(changed, interpolation=self.interpolation)
        if self.antialias is not None:
            changed = replace(changed, antialias=self.antialias)
        if self.size is not None:
            height, width = _pair(self.size)
            resize = height, width
            if own.size is not None and own.resize is not None:
                resize = (
                    height * own.resize[0] // own.size[0],
                    width * own.resize[1] // own.size[1],
                )
            changed = replace(changed, size=(height, width), resize=resize)
        if self.crop is not None and changed.size is not None:
            height, width = (math.floor(side / self.crop) for side in changed.size)
            changed = replace(changed, resize=(height, width))
        if self.resize is not None:
            fit = "squash" if isinstance(self.resize, tuple) else changed.fit
            changed = replace(changed, resize=_pair(self.resize), fit=fit)
        return changed


def _pair(value: int | tuple[int, int]) -> tuple[int, int]:
    return value if isinstance(value, tuple) else (value, value)


def read_options(given: dict[str, Any]) -> Options:
    """Return options from keywords or from a spec's text, checked.

    >>> read_options({"size": "224x192", "mean": "0.5/0.5/0.5", "compile": "yes"}).size
    (224, 192)
    """
    known = {field.name for field in fields(Options)}
    checked: dict[str, Any] = {}
    for key, value in given.items():
        if key not in known:
            raise unknown("model option", key, known)
        if value is not None:
            checked[key] = _READERS.get(key, _text)(key, value)
    return Options(**checked)


def _text(key: str, value: object) -> str:
    if not isinstance(value, str) or not value:
        raise InputError(f"the model option {key} is {value!r}; expected a text")
    return value


def _side(key: str, value: object) -> int | tuple[int, int]:
    parts: Sequence[object] = (
        value.split("x")
        if isinstance(value, str)
        else (value if isinstance(value, Sequence) else [value])
    )
    sides = [_whole(key, part) for part in parts]
    if len(sides) == 1:
        return sides[0]
    if len(sides) == 2:
        return sides[0], sides[1]
    raise InputError(f"the model option {key} is {value!r}; expected one side or HEIGHTxWIDTH")


def _whole(key: str, value: object) -> int:
    try:
        number = int(str(value))
    except ValueError:
        number = 0
    if not 0 < number <= 100_000:
        raise InputError(f"the model option {key} is {value!r}; expected a whole number above 0")
    return number


def _fraction(key: str, value: object) -> float:
    number = _number(key, value)
    if not 0.05 <= number <= 1:
        raise InputError(f"the model option {key} is {value!r}; expected a part, 0.05 to 1")
    return number


def _number(key: str, value: object) -> float:
    try:
        number = float(str(value))
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise InputError(f"the model option {key} is {value!r}; expected a number")
    return number


def _numbers(key: str, value: object) -> tuple[float, ...]:
    parts: Sequence[object] = (
        value.split("/")
        if isinstance(value, str)
        else (value if isinstance(value, Sequence) else [value])
    )
    numbers = tuple(_number(key, part) for part in parts)
    if len(numbers) not in (1, 3):
        raise InputError(
            f"the model option {key} is {value!r}; expected 1 or 3 numbers, as in 0.5/0.5/0.5"
        )
    if key == "std" and min(numbers) <= 0:
        raise InputError(f"the model option std is {value!r}; expected numbers above 0")
    return numbers


def _truth(key: str, value: object) -> bool:
    words = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}
    if str(value).casefold() not in words:
        raise InputError(f"the model option {key} is {value!r}; expected yes or no")
    return words[str(value).casefold()]


def _interpolation(key: str, value: object) -> Interpolation:
    known: dict[str, Interpolation] = {name: name for name in get_args(Interpolation)}
    if str(value) not in known:
        raise unknown("interpolation", str(value), known)
    return known[str(value)]


def _keys(key: str, value: object) -> str | tuple[str, ...]:
    if isinstance(value, (str, Path)):
        return str(value)
    if isinstance(value, Sequence) and value:
        return tuple(str(item) for item in value)
    raise InputError(
        "the model option classes expects imagenet-1k, a file with one class per line, or a list"
    )


def _tags(key: str, value: object) -> str | Mapping[str, Any]:
    if isinstance(value, Mapping):
        return value
    return str(value) if isinstance(value, Path) else _text(key, value)


_READERS: dict[str, Any] = {
    "tags": _tags,
    "size": _side,
    "resize": _side,
    "crop": _fraction,
    "interpolation": _interpolation,
    "antialias": _truth,
    "channels": _whole,
    "mean": _numbers,
    "std": _numbers,
    "classes": _keys,
    "outputs": _whole,
    "compile": _truth,
}
