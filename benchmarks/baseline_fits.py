"""Write the baseline fits that ship with the package, from the ImageNet testbed's grid.

    python benchmarks/baseline_fits.py GRID > src/shiftbed/published/data/baseline-fits.csv

GRID is the folder with the grid's top1.csv and models.csv. A test computes them again.
"""

from __future__ import annotations

import sys
import tempfile

from shiftbed.results.imported import import_results, read_imported
from shiftbed.studies import Grid
from shiftbed.studies.baseline import shippable


def main(source: str) -> None:
    with tempfile.TemporaryDirectory() as results:
        import_results(source, results)
        grid = Grid.from_cells(read_imported(results))
    sys.stdout.write(shippable(grid))


if __name__ == "__main__":
    main(sys.argv[1])
