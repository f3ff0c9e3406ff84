"""Write the documents that are made by programs.

    python docs/generate.py

Run by ``make docs``. A document whose data are not at hand is left as it is.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import runpy
import tempfile
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

FIDELITY = """\
# Fidelity

Written by `docs/generate.py` from the comparisons of `tests/corruptions/test_fidelity.py`; do not
edit it by hand.

The corruptions are meant to be the authors' own, pixel for pixel, given the same random draws.
This page says how far that is proved.

## What was compared

The references are outputs of the published scripts, unchanged: ImageNet-C at 224 pixels,
Tiny-ImageNet-C at 64 and CIFAR-C at 32 (hendrycks/robustness), and MNIST-C
(google-research/mnist-c). They ran in an environment of their time: Python 3.7, NumPy 1.16.6,
SciPy 1.2.3, scikit-image 0.15.0, OpenCV 4.1.2, Pillow 6.2.2, and Wand 0.6.13 on
ImageMagick 6.9.11 Q16. Before each call, `numpy.random.seed(seed)` was set. The pictures are two
photographs (scikit-image's astronaut and coffee), all five severities, each with a seed of its
own; for MNIST-C, 20 digits of the test set, severities 1, 3 and 5 and the benchmark's standard
one.

Ours are `corrupt(picture, name, severity, variant=..., rng=numpy.random.RandomState(seed))`. The
authors' values are truncated to whole grey levels, as their scripts do when they save; MNIST-C's
functions return floats, which are truncated here in the same way.

## The result

Each cell has the promised class, then the share of values that differ (where any does), then
the number of outputs compared. A test fails when a class is not kept.

- **exact**: every value of every output is equal.
- **jpeg**: equal to writing and reading the picture with the Pillow at hand, which a round trip
  beside ours shows. The share is the distance from the Pillow of 2019: its colour JPEGs decode
  to other pixels, its grey ones (MNIST-C) to the same.

{table}

Measured with NumPy {numpy}, SciPy {scipy}, OpenCV {opencv} and Pillow {pillow}.

## What it takes to get there

Some of the published behaviour is not what its code seems to say. All of it is kept.

- **Glass blur** of colour pictures means to swap two pixels, but assigns through two views of
  one array: the neighbour is copied and nothing is swapped. On 28 x 28 grey pictures the same
  lines handle plain numbers, and do swap. MNIST-C's version also skips half the pixels, at
  random, and draws no step for these.
- **Two blurs of MNIST-C**, Gaussian and glass, tell scikit-image that the last axis is colour.
  A digit's last axis is its width, so that only the height is smoothed.
- **MNIST-C's saturate** scales hue, saturation and value alike, not saturation alone.
- **The sixth frost photograph** is in the list but never drawn: the index is below five.
- **Motion blur and snow** went through ImageMagick. Its one-sided kernel, its
  rounding of places to whole pixels and of sums to 16 bits, and the cut from 16 bits to 8 are
  rebuilt; ImageMagick is not needed.
- **Impulse noise** drew from NumPy's global legacy generator, inside scikit-image: first all the
  choices of place, then all those of salt or pepper.
- **Per-pixel draws** of glass blur, two numbers at a time, are one array draw in the same order.
- **OpenCV's warps** place samples at multiples of 1/32 of a pixel. The elastic transform needs
  that, and SciPy 1.2's way to reflect a coordinate at the border, which later versions changed.
- **ImageNet-C's elastic transform** has 244 where the side is 224; the authors note it and so
  keep it. The 299-pixel script has 360.
- **Rounding shows**, because values are truncated, not rounded: where a flat area is an exact
  grey level, an error in a float's last bit takes the whole area down by one level. So the order
  of sums, single or double precision at each step, and even the C library's `exp` in a Gaussian's
  weights are those of 2019. The soft rim of defocus blur's disk is ours for the same reason:
  OpenCV's own has another last bit on each kind of processor.
- **Scaling by boxes** in Pillow gives a pixel whose middle falls on a seam to the later box, and
  leaves some boxes empty: the black lines in MNIST-C's pixelated digits. Newer Pillows differ.
- **A shear** in scikit-image meant something else than it does today.

## What is not proved

- **imagenet-299** has the parameters of the authors' 299-pixel script, read figure by figure, but
  no reference outputs of that script were made. It shares its code with the other three
  variants; only the numbers differ. Fourteen of its nineteen corruptions are compared with the
  same steps written in today's NumPy, SciPy, OpenCV and scikit-image
  (`tests/corruptions/test_libraries.py`), which agree up to rounding.
- The authors' *stored* data sets were saved as JPEG files of quality 85 (ImageNet-C,
  Tiny-ImageNet-C) from random draws without a recorded seed. No stored picture can be made again
  from its seed by anyone; scores on stored and on in-memory corruptions are never mixed.
- Sizes other than 224, 64, 32 and 28 pixels, and sides that are not equal, have no published
  behaviour: the scripts fail on them. Ours are the natural continuation, tested for being valid,
  and on two oblong sizes against today's libraries in the same way.
- Grey pictures in the colour benchmarks, and colour ones in MNIST-C, likewise.
- The default generator draws other numbers than the legacy one, by design. That its pictures have
  the same distribution is tested statistically (`tests/corruptions/test_statistics.py`), which
  bounds a difference and cannot exclude one.
"""


def fidelity() -> str:
    """Compare with all reference outputs, and return the page that says how it went."""
    tests = runpy.run_path(str(ROOT / "tests" / "corruptions" / "test_fidelity.py"))
    if not tests["have_references"]():
        raise FileNotFoundError(f"the reference outputs are not at {tests['REFERENCE']}")
    variants = list(tests["FILES"])
    lines = [f"| corruption | {' | '.join(variants)} |", "|---" * (len(variants) + 1) + "|"]
    for name in dict.fromkeys(name for _, name in tests["PAIRS"]):
        cells = []
        for variant in variants:
            if (variant, name) not in tests["PAIRS"]:
                cells.append("-")
                continue
            found = tests["compare"](variant, name)
            share = f" {100 * found.share:.2g}%," if found.share else ""
            cells.append(f"{tests['declared'](variant, name)},{share} {found.outputs}")
        lines.append(f"| `{name}` | {' | '.join(cells)} |")
    return FIDELITY.format(
        table="\n".join(lines),
        numpy=version("numpy"),
        scipy=version("scipy"),
        opencv=version("opencv-python-headless"),
        pillow=version("pillow"),
    )


def tutorial(name: str) -> str:
    """Run a script of ``examples/tutorials``, cell by cell, and return it with what it printed."""
    shown: list[str] = []
    names: dict[str, object] = {"__name__": name}
    for kind, text in cells((ROOT / "examples" / "tutorials" / f"{name}.py").read_text("utf-8")):
        if kind == "markdown":
            shown.append(text)
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(text, name, "exec"), names)
        shown.append(f"```python\n{text}\n```")
        if said := "\n".join(line.rstrip() for line in printed.getvalue().strip().splitlines()):
            shown.append(f"```text\n{said}\n```")
    shown.append(f"*What is printed here was printed by `examples/tutorials/{name}.py`.*\n")
    return "\n\n".join(shown)


def cells(script: str) -> list[tuple[str, str]]:
    """Split a script in the percent format: (``markdown`` or ``code``, its text) each."""
    found = []
    for part in re.split(r"^# %%", script, flags=re.MULTILINE)[1:]:
        first, _, text = part.partition("\n")
        if "[markdown]" in first:
            lines = (line.removeprefix("#").removeprefix(" ") for line in text.splitlines())
            found.append(("markdown", "\n".join(lines).strip()))
        else:
            found.append(("code", text.strip()))
    return found


DOCUMENTS: dict[str, Callable[[], str]] = {
    "fidelity.md": fidelity,
    "guides/own-pictures.md": lambda: tutorial("own_pictures"),
    "guides/new-method.md": lambda: tutorial("new_method"),
    "guides/curation.md": lambda: tutorial("curation"),
}


def main() -> None:
    """Write each document whose data are at hand."""
    for name, text in DOCUMENTS.items():
        path = ROOT / "docs" / name
        try:
            with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
                content = text()
        except FileNotFoundError as missing:
            print(f"{name} stays as it is: {missing}")
            continue
        handle, scratch = tempfile.mkstemp(dir=path.parent, prefix=".writing-")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(content)
        Path(scratch).chmod(0o644)
        Path(scratch).replace(path)
        print(f"{name} is written")


if __name__ == "__main__":
    main()
