from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

Options = Callable[[str], dict[str, Any]]


@pytest.fixture(scope="session")
def frost_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six photographs of something like frost, so that no test needs the authors' six."""
    folder = tmp_path_factory.mktemp("frost")
    rng = np.random.default_rng(6)
    for number in range(1, 7):
        height, width = 90 + 20 * number, 190 - 15 * number
        waves = np.add.outer(np.arange(height) * number, np.arange(width) * 3)[..., None]
        pixels = (waves + np.array([0, 20, 40]) + rng.integers(0, 60, (height, width, 3))) % 256
        end = "png" if number < 4 else "jpg"
        Image.fromarray(pixels.astype(np.uint8)).save(folder / f"frost{number}.{end}", quality=95)
    return folder


@pytest.fixture(scope="session")
def options(frost_folder: Path) -> Options:
    """Return the options that a corruption cannot do without."""
    mixing = np.random.default_rng(7).normal(size=(196, 196))
    needed = {"frost": {"textures": frost_folder}, "pessimal_noise": {"matrix": mixing}}
    return lambda name: needed.get(name, {})
