from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

Pictures = list[npt.NDArray[np.uint8]]

#: (height, width): square, wide, tall, odd, smaller than the crop, one pixel high.
SIZES = [(512, 512), (375, 500), (500, 333), (301, 257), (96, 128), (33, 20), (1, 40)]


def photograph(height: int, width: int, seed: int = 0) -> npt.NDArray[np.uint8]:
    """Something with edges, gradients and noise, so that a wrong filter shows."""
    rng = np.random.default_rng(seed + height * 10_000 + width)
    y, x = np.mgrid[:height, :width]
    waves = (
        90
        * np.sin(x / 7.0 + seed)[..., None]
        * np.cos(y / np.array([5.0, 9.0, 13.0])[:, None, None]).transpose(1, 2, 0)
    )
    picture = 127 + waves + rng.normal(0, 20, (height, width, 3))
    picture[height // 3 : height // 2, width // 4 : width // 2] = rng.integers(0, 255, 3)
    return np.clip(picture, 0, 255).astype(np.uint8)


@pytest.fixture(scope="session")
def pictures() -> Pictures:
    return [photograph(height, width) for height, width in SIZES]


@pytest.fixture(autouse=True)
def own_caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees what the machine's user has fetched from a hub, or reaches one."""
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "torch"))
