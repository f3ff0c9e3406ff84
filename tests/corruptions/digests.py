"""Digests of corrupted pictures, which every platform and every allowed version must reproduce.

python tests/corruptions/digests.py                    compare with digests.json
python tests/corruptions/digests.py --write            write it anew, after a version= changed
python tests/corruptions/digests.py --pixels ONE.npz   keep the pixels, or where the file is
                                                       there, measure how far they differ
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from shiftbed.corruptions import VARIANTS, corrupt, corruptions

__all__ = ["DIGESTS", "corrupted", "digest"]

DIGESTS = Path(__file__).with_name("digests.json")


def drawn(height: int, width: int, *channels: int) -> np.ndarray:
    """A picture of edges, slopes and grain, by whole numbers alone: the same everywhere."""
    rows, columns = np.indices((height, width))
    grain = (rows * 7919 + columns * 104_729 + rows * columns * 31) % 23
    slope = (3 * rows + 2 * columns) % 200
    discs = 80 * (((rows - height // 2) ** 2 + (columns - width // 3) ** 2) < height * width // 9)
    grey = np.clip(slope // 2 + discs + grain, 0, 255)
    if not channels:
        return grey.astype(np.uint8)
    shades = [grey, (grey * 3 + 40) // 4, 255 - grey // 2]
    return np.stack(shades[: channels[0]], axis=2).astype(np.uint8)


def _textures(folder: Path) -> Path:
    from PIL import Image

    for number in range(1, 7):
        texture = np.roll(drawn(120 + 10 * number, 260, 3), 7 * number, axis=1)
        suffix = "png" if number < 4 else "jpg"
        Image.fromarray(texture).save(folder / f"frost{number}.{suffix}", "PNG")
    return folder


def corrupted() -> Iterator[tuple[str, np.ndarray]]:
    """Yield, for every corruption of every variant, all severities of two pictures."""
    rows, columns = np.indices((196, 196))
    matrix = ((rows * 37 + columns * 101 + rows * columns) % 199 - 99) / 99
    with tempfile.TemporaryDirectory() as scratch:
        needed = {"frost": {"textures": _textures(Path(scratch))}}
        needed["pessimal_noise"] = {"matrix": matrix}
        for variant in VARIANTS:
            shapes = [(28, 28)] if variant == "mnist-c" else [(40, 52, 3), (33, 29)]
            for spec in corruptions(variant):
                made = [
                    corrupt(
                        drawn(*shape),
                        spec.name,
                        severity,
                        variant=variant,
                        seed=5,
                        key=f"{shape}",
                        **needed.get(spec.name, {}),
                    ).ravel()
                    for shape in shapes
                    for severity in spec.severities or (None,)
                ]
                yield f"{variant}/{spec.name}", np.concatenate(made)


def digest(pixels: np.ndarray) -> str:
    """Return a short hash of pixels."""
    return hashlib.sha256(pixels.tobytes()).hexdigest()[:16]


def main() -> None:
    """Compare, write, or measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--pixels", type=Path)
    given = parser.parse_args()
    found = dict(corrupted())
    if given.write:
        content = {name: digest(pixels) for name, pixels in found.items()}
        DIGESTS.write_text(json.dumps(content, indent=1) + "\n")
        return
    if given.pixels and not given.pixels.exists():
        np.savez_compressed(given.pixels, **found)
    other = dict(np.load(given.pixels)) if given.pixels else {}
    known = json.loads(DIGESTS.read_text())
    unlike = [name for name, pixels in found.items() if known.get(name) != digest(pixels)]
    for name in unlike:
        apart = np.abs(found[name].astype(int) - other.get(name, found[name])).astype(int)
        measured = f": {(apart > 0).mean():.2%} of values, by at most {apart.max()}"
        print(f"{name} differs{measured if name in other else ''}")
    print(f"{len(found) - len(unlike)} of {len(found)} corruptions are as recorded")
    sys.exit(bool(unlike))


if __name__ == "__main__":
    main()
