from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image


@pytest.fixture
def newcomer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files that the README and the guides speak of."""
    rng = np.random.default_rng(0)
    photo = Image.fromarray(rng.integers(0, 256, (240, 320, 3), np.uint8))
    photo.save(tmp_path / "photo.png")
    photo.save(tmp_path / "photo.jpg")
    for label in ("cat", "dog"):
        (tmp_path / "photos" / label).mkdir(parents=True)
        for number in range(2):
            picture = rng.integers(0, 256, (64, 80, 3), np.uint8)
            Image.fromarray(picture).save(tmp_path / "photos" / label / f"{number}.jpg")
    monkeypatch.chdir(tmp_path)
    return tmp_path
