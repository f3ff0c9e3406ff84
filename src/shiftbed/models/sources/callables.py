"""Any callable as a model: a torch module, or a function of a batch of pictures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from shiftbed.errors import InputError
from shiftbed.models.geometry import Geometry
from shiftbed.models.model import Model
from shiftbed.models.options import Options

__all__ = ["wrap"]


def wrap(given: Callable[..., Any], options: Options) -> Model:
    """Return a callable as a model: its logits for uint8 pictures (N, H, W, C).

    A torch module is shown float pictures (N, C, H, W), in [0, 1] unless ``mean`` and ``std``
    say otherwise.
    """
    raise InputError(f"{given} arrives in the next commit, {options}, {Geometry()}, {np.uint8}")
