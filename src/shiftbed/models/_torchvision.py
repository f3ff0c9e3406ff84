"""Importing torchvision where its compiled operators do not fit the torch beside it.

A torchvision that was built for CUDA cannot load its operators beside a torch for the CPU,
and then fails at import, because it describes operators (``nms``) that were never declared.
Declaring them first makes all but those operators work, which classifiers never use.
"""

from __future__ import annotations

import importlib
import sys
from functools import cache
from types import ModuleType
from typing import Any

from shiftbed.errors import MissingExtraError

__all__ = ["import_torchvision"]

#: Kept for as long as the process lives: a library's declarations go when it does.
_declared: list[Any] = []


@cache
def import_torchvision() -> ModuleType:
    """Import torchvision, whether or not its compiled operators can be loaded.

    Call it before anything that imports torchvision itself, as timm does.
    """
    try:
        return importlib.import_module("torchvision")
    except ImportError:
        raise MissingExtraError("torchvision", "torch") from None
    except RuntimeError as problem:
        if "torchvision::" not in str(problem):
            raise
    import torch

    for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
        del sys.modules[name]
    declare: Any = torch.library.Library  # torch leaves it without annotations
    library = declare("torchvision", "FRAGMENT")
    for name in ("nms", "qnms"):
        library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    _declared.append(library)
    return importlib.import_module("torchvision")
