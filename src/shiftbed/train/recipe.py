"""What a training does, declared in a TOML file: the pictures, the network, the intervention."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from importlib import resources
from pathlib import Path
from typing import Any, Literal, get_args

from shiftbed.data import digest, read_text
from shiftbed.errors import InputError, unknown

__all__ = ["Recipe", "read_recipe", "recipes"]

Crop = Literal["none", "pad", "resized"]
Schedule = Literal["cosine", "step", "constant"]
Optimiser = Literal["sgd", "adamw"]
Precision = Literal["no", "bf16", "fp16"]
Loss = Literal["plain", "adversarial", "stability", "consistency"]

_MAX_BYTES = 2**20


@dataclass(frozen=True)
class Recipe:
    """A recipe. Lengths are in pixels, rates per step, and durations in passes over the set.

    >>> Recipe("mine", epochs=3).schedule
    'cosine'
    """

    name: str
    about: str = ""
    source: str = ""

    # The network.
    #: One of shiftbed's own by its bare name, or timm:NAME, torchvision:NAME, python:MODULE:F.
    architecture: str = "resnet20"
    #: A checkpoint, or the directory of a training, to go on from. Its head is left behind
    #: where the classes are others.
    start: str | None = None
    #: Whether there has to be one.
    needs_start: bool = False

    # The pictures.
    #: The side that the network sees; none: the pictures', which must then be all alike.
    size: int | None = None
    #: 1 or 3; none: those of the pictures.
    channels: int | None = None
    #: The classes to learn, if not all of them.
    classes: tuple[str, ...] = ()
    #: ``pad``: by an eighth, then a random crop; ``resized``: a random part, as for ImageNet.
    crop: Crop = "none"
    mirror: bool = False
    #: What is done to each picture, one after the other: tables with a ``kind``.
    augment: tuple[Mapping[str, Any], ...] = ()
    #: What is done to each picture in training and ever after.
    preprocess: tuple[Mapping[str, Any], ...] = ()

    # The loss.
    loss: Loss = "plain"
    #: ``adversarial``: the radius, of 255 grey levels; each picture's is this times a draw
    #: from [0, 1], unless ``eps_drawn`` is false. ``steps``: 0 is noise, 1 FGSM, more PGD.
    eps: float = 8.0
    eps_drawn: bool = True
    steps: int = 10
    #: ``stability``: the noise's standard deviation, in parts of the range from black to white.
    sigma: float = 0.04
    #: How much the second term of ``stability`` and ``consistency`` counts.
    weight: float = 1.0
    smoothing: float = 0.0

    # The steps.
    epochs: int = 100
    batch: int = 128
    optimiser: Optimiser = "sgd"
    rate: float = 0.1
    momentum: float = 0.9
    weight_decay: float = 5e-4
    schedule: Schedule = "cosine"
    #: ``step``: after these passes the rate is multiplied by ``factor``.
    milestones: tuple[int, ...] = ()
    factor: float = 0.1
    #: The rate rises from nothing over so many passes.
    warmup: float = 0.0
    #: The longest gradient; none: as long as it is.
    clip: float | None = None
    precision: Precision = "no"

    seed: int = 0

    def __post_init__(self) -> None:
        for key, choices in _CHOICES.items():
            if getattr(self, key) not in choices:
                raise unknown(f"{key} for the recipe {self.name}:", getattr(self, key), choices)
        for key, (least, most) in _RANGES.items():
            value = getattr(self, key)
            if value is not None and not least <= value <= most:
                raise InputError(
                    f"{key} of the recipe {self.name} is {value}; expected {least} to {most:g}"
                )
        if self.channels == 2:
            raise InputError(f"channels of the recipe {self.name} is 2; expected 1 or 3")
        for key in ("augment", "preprocess"):
            for step in getattr(self, key):
                if not isinstance(step, Mapping) or "kind" not in step:
                    raise InputError(
                        f"{key} of the recipe {self.name} has {step!r}; expected tables with a "
                        'kind, as in [[augment]] kind = "speckle"'
                    )

    @property
    def network(self) -> str:
        """The architecture as model specs name it.

        >>> read_recipe("plain").network
        'shiftbed:resnet20'
        """
        return self.architecture if ":" in self.architecture else f"shiftbed:{self.architecture}"

    @property
    def digest(self) -> str:
        """A hash of all that the weights depend on beside the pictures.

        What is as usual is left out, so that a recipe with one more choice is the same one.
        """
        usual = asdict(Recipe(""))
        told = {key: value for key, value in asdict(self).items() if value != usual[key]}
        for key in ("name", "about", "source", "start", "needs_start"):
            told.pop(key, None)
        return digest(f"{key}={value!r}" for key, value in sorted(told.items()))


_CHOICES: dict[str, tuple[str, ...]] = {
    "crop": get_args(Crop),
    "schedule": get_args(Schedule),
    "optimiser": get_args(Optimiser),
    "precision": get_args(Precision),
    "loss": get_args(Loss),
}
_RANGES: dict[str, tuple[float, float]] = {
    "size": (4, 4096),
    "channels": (1, 3),
    "epochs": (1, 100_000),
    "batch": (1, 1_000_000),
    "rate": (0, 1000),
    "momentum": (0, 1),
    "weight_decay": (0, 10),
    "warmup": (0, 100_000),
    "clip": (1e-12, 1e12),
    "eps": (0, 255),
    "steps": (0, 1000),
    "sigma": (0, 10),
    "weight": (0, 1e6),
    "smoothing": (0, 0.99),
    "factor": (0, 1),
    "seed": (0, 2**32 - 1),
}


def recipes() -> dict[str, str]:
    """Return the recipes that come with the package, and what each is.

    >>> recipes()["plain"]
    'nothing but the pictures, mirrored and cropped'
    """
    folder = resources.files("shiftbed.train") / "recipes"
    found = {}
    for file in sorted(folder.iterdir(), key=lambda one: one.name.removesuffix(".toml")):
        name, dot, kind = file.name.rpartition(".")
        if dot and kind == "toml":
            found[name] = str(tomllib.loads(file.read_text("utf-8")).get("about", ""))
    return found


def read_recipe(name: str | Path, changes: Mapping[str, Any] | None = None) -> Recipe:
    """Return a recipe by its name or from a TOML file, with some of its values changed.

    Values may be texts, as the command line has them.

    >>> read_recipe("augmix", {"epochs": "3", "architecture": "resnet8"}).epochs
    3
    >>> read_recipe("augmux")
    Traceback (most recent call last):
    shiftbed.errors.InputError: there is no recipe 'augmux'; did you mean augmix?
    """
    known = recipes()
    if str(name) in known:
        text = (resources.files("shiftbed.train") / "recipes" / f"{name}.toml").read_text("utf-8")
        where, title = f"the recipe {name}", str(name)
    else:
        path = Path(name)
        if path.suffix != ".toml":
            raise unknown("recipe", str(name), known)
        try:
            if path.stat().st_size > _MAX_BYTES:
                raise InputError(f"{path} is too large for a recipe")
            text = read_text(path)
        except (OSError, UnicodeDecodeError) as problem:
            raise InputError(f"cannot read the recipe {path} ({problem})") from None
        where, title = str(path), path.stem
    try:
        told = tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise InputError(f"{where} is not TOML ({problem})") from None
    recipe = _with(Recipe(title), told, where)
    return recipe if not changes else _with(recipe, changes, where)


def _with(recipe: Recipe, told: Mapping[str, Any], where: str) -> Recipe:
    kinds = {one.name: str(one.type) for one in fields(Recipe)}
    values = {}
    for key, value in told.items():
        if key not in kinds or key == "name":
            near = difflib.get_close_matches(key, kinds, n=1)
            raise InputError(
                f"{where} says {key}, which no recipe has; "
                + (f"did you mean {near[0]}?" if near else f"there are {', '.join(kinds)}")
            )
        values[key] = _value(key, value, kinds[key], where)
    return replace(recipe, **values)


def _value(key: str, value: Any, kind: str, where: str) -> Any:
    """Return a value as the field's type, from TOML's own or from a text."""
    if "None" in kind and value in (None, "none"):
        return None
    if kind.startswith("tuple"):
        return _several(key, value, kind, where)
    try:
        if kind.startswith("bool"):
            if isinstance(value, str):
                value = {"yes": True, "true": True, "no": False, "false": False}[value.lower()]
            if not isinstance(value, bool):
                raise ValueError
            return value
        if isinstance(value, bool):
            raise ValueError
        if kind.startswith("int"):
            if int(value) != float(value):
                raise ValueError
            return int(value)
        if kind.startswith("float"):
            return float(value)
        if not isinstance(value, str | Path):
            raise ValueError
        return str(value)
    except (ValueError, TypeError, KeyError, OverflowError):
        wanted = next(
            word
            for start, word in (
                ("bool", "yes or no"),
                ("int", "a whole number"),
                ("float", "a number"),
                ("", "a text"),
            )
            if kind.startswith(start)
        )
        raise InputError(f"{where}: {key} is {value!r}; expected {wanted}") from None


def _several(key: str, value: Any, kind: str, where: str) -> tuple[Any, ...]:
    tables = "Mapping" in kind
    if isinstance(value, str):
        parts = [part.strip() for part in value.split(",") if part.strip()]
        value = [{"kind": part} for part in parts] if tables else parts
    if not isinstance(value, list | tuple):
        raise InputError(f"{where}: {key} is {value!r}; expected a list")
    if tables:
        return tuple(value)
    one = "int" if "int" in kind else "str"
    return tuple(_value(key, item, one, where) for item in value)
