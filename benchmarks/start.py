"""What a start costs: importing the package, and showing its help, against importing torch.

    python benchmarks/start.py

Each in a process of its own with warm caches, and with Python's own start: the best of several
interleaved rounds.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

from ratios import write

STARTS = {
    "import shiftbed": ["-c", "import shiftbed"],
    "shiftbed --help": ["-m", "shiftbed", "--help"],
    "import torch": ["-c", "import torch"],
}
MOST = 0.3  # seconds of `import shiftbed`


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", type=Path, help="write the ratios to this file")
    options = parser.parse_args()
    best = dict.fromkeys(STARTS, float("inf"))
    for _ in range(options.rounds):
        for what, arguments in STARTS.items():
            began = time.perf_counter()
            subprocess.run([sys.executable, *arguments], capture_output=True, check=True)
            best[what] = min(best[what], time.perf_counter() - began)
    ratios = {what: best["import torch"] / seconds for what, seconds in best.items()}
    for what, ratio in ratios.items():
        print(f"{what:18}{best[what]:7.3f} s{ratio:8.1f} x")
    del ratios["import torch"]
    write(options.json, ratios)
    brought = "import sys, shiftbed; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", brought], check=True)
    if best["import shiftbed"] >= MOST:
        sys.exit(
            f"import shiftbed takes {best['import shiftbed']:.2f} s; less than {MOST} is claimed"
        )


if __name__ == "__main__":
    main()
