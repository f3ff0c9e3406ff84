"""What corruptions there are: one decorated function each, found by name."""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from shiftbed import _plugins
from shiftbed.errors import InputError, unknown

#: The benchmarks' published parameter tables, and the side of the pictures they are for.
VARIANTS = {
    "imagenet-c": 224,
    "imagenet-299": 299,
    "tiny-imagenet-c": 64,
    "cifar-c": 32,
    "mnist-c": 28,
}

_IMAGENET_C = (
    "gaussian_noise",
    "shot_noise",
    "impulse_noise",
    "defocus_blur",
    "glass_blur",
    "motion_blur",
    "zoom_blur",
    "snow",
    "frost",
    "fog",
    "brightness",
    "contrast",
    "elastic_transform",
    "pixelate",
    "jpeg_compression",
)
_IMAGENET_C_EXTRA = ("speckle_noise", "gaussian_blur", "spatter", "saturate")
_MNIST_C = (
    "shot_noise",
    "impulse_noise",
    "glass_blur",
    "motion_blur",
    "shear",
    "scale",
    "rotate",
    "brightness",
    "translate",
    "stripe",
    "fog",
    "spatter",
    "dotted_line",
    "zigzag",
    "canny_edges",
)
_MNIST_C_EXTRA = (
    "gaussian_noise",
    "speckle_noise",
    "pessimal_noise",
    "gaussian_blur",
    "defocus_blur",
    "zoom_blur",
    "frost",
    "snow",
    "contrast",
    "saturate",
    "jpeg_compression",
    "pixelate",
    "elastic_transform",
    "quantize",
    "line",
    "inverse",
)

_FAMILIES = ("noise", "blur", "weather", "digital", "geometric", "occlusion")

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class Spec:
    """One corruption as one benchmark defines it."""

    name: str
    variant: str
    family: str
    function: Callable[..., Any]
    #: The arguments of each severity; empty if the corruption has no severities.
    levels: tuple[tuple[Any, ...], ...]
    #: The severity of the benchmark itself, where it has one (MNIST-C).
    standard: int | None
    #: Whether two keys give two results.
    random: bool
    #: Changes when the pixels do.
    version: int

    @property
    def severities(self) -> tuple[int, ...]:
        """The severities that there are, from 1; none if it has no severity."""
        return tuple(range(1, len(self.levels) + 1))

    @property
    def options(self) -> tuple[str, ...]:
        """The keyword arguments that the function takes besides its parameters."""
        parameters = inspect.signature(self.function).parameters.values()
        return tuple(p.name for p in parameters if p.kind is p.KEYWORD_ONLY)

    @property
    def standing(self) -> str:
        """Whether it is of the benchmark's main list, its extra list, or neither."""
        main, extra = _lists(self.variant)
        return "main" if self.name in main else "extra" if self.name in extra else "other"

    def arguments(self, severity: int | None) -> tuple[Any, ...]:
        """Return the function's parameters at a severity; refuse one that is not there."""
        if not self.levels:
            if severity is not None:
                raise InputError(
                    f"{self.name} has no severities in {self.variant}, but severity "
                    f"{severity!r} was given; leave it out"
                )
            return ()
        if severity is None:
            severity = self.standard
        if severity is None:
            raise InputError(
                f"{self.name} needs a severity from 1 to {len(self.levels)}: "
                f"{self.variant} has no standard one"
            )
        if isinstance(severity, bool) or severity not in self.severities:
            raise InputError(
                f"severity {severity!r} of {self.name} does not exist; "
                f"{self.variant} has 1 to {len(self.levels)}"
            )
        return self.levels[int(severity) - 1]


_specs: dict[tuple[str, str], Spec] = {}


def corruption(
    levels: Mapping[str, tuple[Any, ...]],
    *,
    name: str | None = None,
    standard: Mapping[str, int] | None = None,
    random: bool = True,
    version: int = 1,
    family: str | None = None,
) -> Callable[[Function], Function]:
    """Register a function of (picture, generator, its parameters) as a corruption.

    ``levels`` maps each benchmark variant to the parameters of its severities, mildest
    first: a tuple each, or the value itself where there is one parameter; empty where the
    corruption has no severities. The function takes and returns a ``uint8`` array of shape
    (height, width, channels), with one or three channels, and may not change its input.
    """

    def register(function: Function) -> Function:
        for variant, table in levels.items():
            spec = Spec(
                name=name or function.__name__,
                variant=variant,
                family=family or function.__module__.rpartition(".")[2],
                function=function,
                levels=tuple(row if isinstance(row, tuple) else (row,) for row in table),
                standard=(standard or {}).get(variant),
                random=random,
                version=version,
            )
            _specs[spec.variant, spec.name] = spec
        return function

    return register


@functools.cache
def _load() -> None:
    """Import the families, then whatever other packages offer as plugins."""
    for family in _FAMILIES:
        importlib.import_module(f"shiftbed.corruptions.{family}")
    _plugins.load()


def get(name: str, variant: str) -> Spec:
    """Return a corruption by its name in a benchmark variant.

    >>> get("fog", "imagenet-c").severities
    (1, 2, 3, 4, 5)
    """
    _load()
    if variant not in VARIANTS:
        raise unknown("variant", variant, VARIANTS)
    try:
        return _specs[variant, name]
    except KeyError:
        elsewhere = sorted(other for other, known in _specs if known == name)
        if elsewhere:
            raise InputError(
                f"{name} is not in {variant}; choose a variant that has it: {', '.join(elsewhere)}"
            ) from None
        known = (known for other, known in _specs if other == variant)
        raise unknown("corruption", name, known) from None


def _lists(variant: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if variant not in VARIANTS:
        raise unknown("variant", variant, VARIANTS)
    if variant == "mnist-c":
        return _MNIST_C, _MNIST_C_EXTRA
    return _IMAGENET_C, _IMAGENET_C_EXTRA


def corruption_names(variant: str = "imagenet-c", *, extra: bool = False) -> tuple[str, ...]:
    """Return the names of a benchmark's corruptions, in its paper's order.

    >>> len(corruption_names("imagenet-c")), len(corruption_names("mnist-c", extra=True))
    (15, 31)
    """
    main, more = _lists(variant)
    return main + more if extra else main


def corruptions(variant: str) -> list[Spec]:
    """Return all corruptions of a variant: the benchmark's, its extra ones, then others."""
    _load()
    names = corruption_names(variant, extra=True)
    order = {name: position for position, name in enumerate(names)}
    found = (spec for (other, _), spec in _specs.items() if other == variant)
    return sorted(found, key=lambda spec: (order.get(spec.name, len(order)), spec.name))


def severities(name: str, variant: str = "imagenet-c") -> tuple[int, ...]:
    """Return the severities that a corruption has in a variant; none if it has no severity.

    >>> severities("zigzag", "mnist-c")
    ()
    """
    return get(name, variant).severities


def standard_severity(name: str, variant: str = "imagenet-c") -> int | None:
    """Return the severity of the benchmark itself, where it has one.

    >>> standard_severity("shear", "mnist-c"), standard_severity("fog", "imagenet-c")
    (2, None)
    """
    return get(name, variant).standard


def version(name: str, variant: str = "imagenet-c") -> str:
    """Return a word that changes when the corruption's pixels would.

    >>> version("fog")
    'fog/1'
    """
    return f"{name}/{get(name, variant).version}"
