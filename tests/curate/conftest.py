from __future__ import annotations

import sys
from pathlib import Path

# Tests and the processes that they start share its models.
sys.path.insert(0, str(Path(__file__).parent))
