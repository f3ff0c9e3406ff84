from __future__ import annotations

import sys
from pathlib import Path

# Tests and the program that runs them by the million share its modules.
sys.path.insert(0, str(Path(__file__).parent))
