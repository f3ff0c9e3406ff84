from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image


def picture(seed: int, height: int = 12, width: int = 16) -> Image.Image:
    pixels = np.random.default_rng(seed).integers(0, 256, (height, width, 3))
    return Image.fromarray(pixels.astype(np.uint8))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two classes with three pictures, a subfolder, and what systems leave behind."""
    root = tmp_path / "pets" / "val"
    for name, seeds in {"cat": (1, 2), "dog": (3,)}.items():
        (root / name).mkdir(parents=True)
        for seed in seeds:
            picture(seed).save(root / name / f"{seed}.png")
    (root / "cat" / "more").mkdir()
    picture(4).save(root / "cat" / "more" / "4.png")
    (root / ".DS_Store").write_bytes(b"x")
    (root / "cat" / "Thumbs.db").write_bytes(b"x")
    (root / "empty").mkdir()
    return root
