"""``python:module:factory``: whatever a function of the user's own returns."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

from shiftbed.errors import InputError, unknown
from shiftbed.models._torchvision import import_torchvision
from shiftbed.models.model import Model
from shiftbed.models.options import Options
from shiftbed.models.registry import source

__all__ = ["build"]


@source("python", "python:package.module:factory")
def _load(target: str, options: Options) -> Model:
    from shiftbed.models.loading import load_any

    return load_any(build(target), options, target.rpartition(":")[2])


def build(target: str) -> Any:
    """Call a factory, named as ``module:function``, and return what it makes."""
    module_name, colon, factory_name = target.partition(":")
    if not colon or not factory_name:
        raise InputError(
            f"python:{target} names no function; write python:package.module:factory, where "
            "factory() returns a torch module or a function of a batch"
        )
    module = _imported(module_name)
    factory = getattr(module, factory_name, None)
    if factory is None:
        names = [name for name, value in vars(module).items() if callable(value)]
        raise unknown(f"function of {module_name} named", factory_name, names)
    if not callable(factory):
        raise InputError(f"python:{target} is a {type(factory).__name__}; expected a function")
    try:
        return factory()
    except InputError:
        raise
    except Exception as problem:
        raise InputError(
            f"python:{target} failed: {type(problem).__name__}: {problem}"
        ) from problem


def _imported(name: str) -> Any:
    here = str(Path.cwd())
    if here not in sys.path:  # as `python -m` would have it
        sys.path.insert(0, here)
    try:
        return importlib.import_module(name)
    except RuntimeError as problem:
        if "torchvision::" not in str(problem):
            raise InputError(f"importing {name} failed: {problem}") from problem
        import_torchvision()
        return importlib.import_module(name)
    except ImportError as problem:
        raise InputError(
            f"cannot import {name} ({problem}); run where it can be imported, or install it"
        ) from None
    except Exception as problem:
        raise InputError(
            f"importing {name} failed: {type(problem).__name__}: {problem}"
        ) from problem
