"""The testbed for distribution shift in image classification.

>>> import numpy as np
>>> import shiftbed as sb
>>> picture = np.full((32, 32, 3), 128, np.uint8)
>>> sb.corrupt(picture, "gaussian_noise", 3, key="my-picture").shape
(32, 32, 3)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

__version__ = "0.1.0.dev0"

#: Public name -> the room that has it. Rooms are imported on first use, so that
#: ``import shiftbed`` costs next to nothing.
_PUBLIC = {
    "Corruption": "shiftbed.corruptions",
    "CorruptedDataset": "shiftbed.corruptions",
    "InputError": "shiftbed.errors",
    "Results": "shiftbed.results",
    "corrupt": "shiftbed.corruptions",
    "evaluate": "shiftbed.evaluation",
}

__all__ = [
    "CorruptedDataset",
    "Corruption",
    "InputError",
    "Results",
    "__version__",
    "corrupt",
    "evaluate",
]

if TYPE_CHECKING:
    from shiftbed.corruptions import CorruptedDataset as CorruptedDataset
    from shiftbed.corruptions import Corruption as Corruption
    from shiftbed.corruptions import corrupt as corrupt
    from shiftbed.errors import InputError as InputError
    from shiftbed.evaluation import evaluate as evaluate
    from shiftbed.results import Results as Results


def __getattr__(name: str) -> object:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'shiftbed' has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(_PUBLIC[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_PUBLIC])
