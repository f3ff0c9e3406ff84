"""Draw the scatter that the documentation shows, from the ImageNet testbed's published grid.

    python docs/scatter.py path/to/testbed

which is the same as

    shiftbed import path/to/testbed -o results
    shiftbed plot scatter results imagenet-r -o docs/images/scatter.svg --width 5 \\
        --label vit_b_32_clip_zeroshot --label efficientnet-l2-noisystudent --label resnet50
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from shiftbed.report import plot_scatter
from shiftbed.results import import_results

LABELLED = ("vit_b_32_clip_zeroshot", "efficientnet-l2-noisystudent", "resnet50")


def main() -> None:
    """Write docs/images/scatter.svg."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("testbed", type=Path, help="the folder with top1.csv and models.csv")
    testbed = parser.parse_args().testbed
    image = Path(__file__).with_name("images") / "scatter.svg"
    with tempfile.TemporaryDirectory() as results:
        import_results(testbed, results)
        print(plot_scatter(results, image, "imagenet-r", label=LABELLED, width=5.0))


if __name__ == "__main__":
    main()
