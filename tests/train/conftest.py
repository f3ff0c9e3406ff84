from __future__ import annotations

import numpy as np
import pytest

from shiftbed.data import ArraySet

pytest.importorskip("accelerate", reason="needs the extra train")

CLASSES = ("left", "right", "both")


def sides(count: int, seed: int, channels: int = 3, side: int = 12) -> ArraySet:
    """Pictures that are brighter on the left, on the right, or on both sides, in noise."""
    rng = np.random.default_rng(seed)
    pixels = rng.integers(0, 120, (count, side, side, channels))
    labels = np.arange(count) % 3
    pixels[labels != 1, :, : side // 3] += 110
    pixels[labels != 0, :, -side // 3 :] += 110
    return ArraySet(f"sides-{count}-{seed}", pixels.astype(np.uint8), labels, CLASSES)


@pytest.fixture(scope="session")
def pictures() -> ArraySet:
    return sides(96, seed=1)


@pytest.fixture(scope="session")
def unseen() -> ArraySet:
    return sides(60, seed=2)
