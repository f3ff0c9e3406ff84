from __future__ import annotations

import numpy as np
import pytest


@pytest.fixture(scope="session")
def photos() -> np.ndarray:
    """Real photographs, four at 64 px."""
    import cv2
    from skimage import data

    sources = (data.astronaut(), data.coffee(), data.chelsea(), data.rocket())
    return np.stack([cv2.resize(one, (64, 64), interpolation=cv2.INTER_AREA) for one in sources])
