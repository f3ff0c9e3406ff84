"""The sources of models, by the prefix of their specs."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from shiftbed import _plugins
from shiftbed.models.model import Model
from shiftbed.models.options import Options

__all__ = ["Source", "source", "sources"]


@dataclass(frozen=True)
class Source:
    """Where models with a prefix come from."""

    prefix: str
    #: How a spec is written, for sentences.
    usage: str
    #: (what follows the prefix, overrides) -> model.
    load: Callable[[str, Options], Model]
    #: The names that can be listed; none where the user makes them.
    names: Callable[[], Sequence[str]]
    #: Whether the names are paths of the user's files.
    files: bool


_SOURCES: dict[str, Source] = {}

Loader = Callable[[str, Options], Model]


def source(
    prefix: str, usage: str, names: Callable[[], Sequence[str]] = tuple, *, files: bool = False
) -> Callable[[Loader], Loader]:
    """Register a function as the loader of specs with this prefix."""

    def register(load: Loader) -> Loader:
        _SOURCES[prefix] = Source(prefix, usage, load, names, files)
        return load

    return register


@cache
def _import_own() -> None:
    from shiftbed.models import sources as package

    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")


def sources() -> dict[str, Source]:
    """Return every source by its prefix, plugins' too."""
    _import_own()
    _plugins.load()
    return _SOURCES
