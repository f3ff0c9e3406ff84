"""What shiftbed does, on real data, in a few minutes: python examples/demo.py --output demo."""

from __future__ import annotations

import argparse
from pathlib import Path

import demo_corruptions
import demo_evaluate
import demo_report


def main() -> None:
    """Corrupt pictures, evaluate models on them, and write the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("demo"), help="a folder")
    output = parser.parse_args().output
    demo_corruptions.main(output)
    demo_evaluate.main(output)
    demo_report.main(output)


if __name__ == "__main__":
    main()
