from __future__ import annotations

import sys
from pathlib import Path

import pytest

# Tests and the processes that they start share its toys.
sys.path.insert(0, str(Path(__file__).parent))

from toys import Broken, image_set


@pytest.fixture
def toys() -> Broken:
    return image_set(1100)
