"""Write the report on what the demo evaluated: one page, with the pictures that were shown."""

from __future__ import annotations

import sys
from pathlib import Path

from demo_evaluate import PRETRAINED, UNLABELLED, timed
from rich.console import Console

from shiftbed.data import open_set
from shiftbed.report import write_report
from shiftbed.run import sample

console = Console(highlight=False)


def main(output: Path) -> None:
    """Write report.html beside the results."""
    baselines = ["logistic_regression", PRETRAINED[0].partition(":")[2]]
    few = sample(open_set("natural-photos"), UNLABELLED)
    with timed("writing the report"):
        page = write_report(
            output / "results",
            output / "report.html",
            data={"few-natural-photos": few},
            baseline=baselines,
            title="The demo: MNIST-C and ImageNet photographs",
        )
    console.print(f"{page}: open it in a browser; it needs no network")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo"))
