"""The pictures that the authors' own code made, against ours from the same legacy seeds.

What is promised for each corruption is declared in :data:`EXCEPTIONS`; ``docs/fidelity.md`` is
written from it and from :func:`compare` by ``docs/generate.py``.
"""

from __future__ import annotations

import functools
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image

from shiftbed.corruptions import corrupt, corruption_names, severities, standard_severity
from shiftbed.corruptions._frost import fetch_textures
from shiftbed.errors import InputError

Picture = npt.NDArray[np.uint8]

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT.parent / "shared" / "reference"
PAGE = ROOT / "docs" / "fidelity.md"

#: The variants of which there are reference outputs, and their files.
FILES = {
    "imagenet-c": "imagenet_c.npz",
    "tiny-imagenet-c": "tiny_imagenet_c.npz",
    "cifar-c": "cifar_c.npz",
    "mnist-c": "mnist_c.npz",
}

#: What is promised of a corruption: every value equal, or equal to what the Pillow at hand writes
#: and reads.
EXACT, JPEG = "exact", "jpeg"

#: All are exact but these.
EXCEPTIONS = {
    ("imagenet-c", "jpeg_compression"): JPEG,
    ("tiny-imagenet-c", "jpeg_compression"): JPEG,
    ("cifar-c", "jpeg_compression"): JPEG,
}

PAIRS = [(variant, name) for variant in FILES for name in corruption_names(variant, extra=True)]


def declared(variant: str, name: str) -> str:
    return EXCEPTIONS.get((variant, name), EXACT)


class Case(NamedTuple):
    """One reference output, and what it was made from."""

    severity: int | None
    source: Picture
    output: Picture
    ours: Picture


@dataclass(frozen=True)
class Comparison:
    """How far the pictures of one corruption are from the authors'."""

    outputs: int
    #: The share of values that differ.
    share: float


@functools.cache
def references(variant: str) -> dict[str, npt.NDArray[Any]]:
    with np.load(REFERENCE / FILES[variant]) as arrays:
        return dict(arrays)


@functools.cache
def seeds(variant: str) -> dict[str, list[str]]:
    """Return the keys of the reference outputs of each corruption."""
    found: dict[str, list[str]] = {}
    for key in references(variant):
        if not key.startswith("input/"):
            found.setdefault(key.split("/")[1], []).append(key)
    return found


def cases(variant: str, name: str) -> Iterator[Case]:
    options: dict[str, Any] = {}
    if name == "pessimal_noise":
        options["matrix"] = REFERENCE / "pessimal_noise_matrix.npy"
    arrays = references(variant)
    for key in seeds(variant)[name]:
        picture, _, level, seed = key.split("/")
        severity = int(level.removeprefix("default")) or None
        source = arrays[f"input/{picture}"]
        rng = np.random.RandomState(int(seed))
        ours = corrupt(source, name, severity, variant=variant, rng=rng, **options)
        yield Case(severity, source, arrays[key].astype(np.uint8), ours)


def compare(variant: str, name: str) -> Comparison:
    outputs = different = values = 0
    for case in cases(variant, name):
        assert case.ours.shape == case.output.shape
        outputs += 1
        values += case.ours.size
        different += np.count_nonzero(case.ours != case.output)
    return Comparison(outputs, different / values)


def have_references() -> bool:
    return all((REFERENCE / file).exists() for file in FILES.values())


needs_references = pytest.mark.skipif(
    not have_references(), reason=f"the reference outputs are not at {REFERENCE}"
)


@functools.cache
def why_no_frost() -> str:
    try:
        fetch_textures()
    except InputError as problem:
        return str(problem)
    return ""


@needs_references
@pytest.mark.parametrize(("variant", "name"), PAIRS)
def test_equals_the_published_code(variant: str, name: str) -> None:
    if name == "frost" and why_no_frost():
        pytest.skip(why_no_frost())
    found = compare(variant, name)
    assert found.outputs >= 10
    promise = declared(variant, name)
    if promise == EXACT:
        assert found.share == 0, found
    else:
        qualities = published_qualities(variant)
        for case in cases(variant, name):
            assert case.severity is not None
            expected = round_trip(case.source, qualities[case.severity - 1])
            np.testing.assert_array_equal(case.ours, expected)


@needs_references
@pytest.mark.parametrize("variant", FILES)
def test_every_corruption_and_severity_has_references(variant: str) -> None:
    assert set(seeds(variant)) == set(corruption_names(variant, extra=True))
    for name, keys in seeds(variant).items():
        found = {key.split("/")[2] for key in keys}
        standard = standard_severity(name, variant)
        if variant != "mnist-c":
            assert found == {str(severity) for severity in severities(name, variant)}
        elif len(severities(name, variant)) > 1:
            assert found == {"1", "3", "5", f"default{standard}"}
        else:
            assert len(found) == 1


def published_qualities(variant: str) -> tuple[int, ...]:
    """Return the JPEG qualities in the authors' scripts, mildest first."""
    return {
        "imagenet-c": (25, 18, 15, 10, 7),
        "imagenet-299": (23, 16, 13, 8, 5),
        "tiny-imagenet-c": (65, 58, 50, 40, 25),
        "cifar-c": (80, 65, 58, 50, 40),
        "mnist-c": (25, 18, 15, 10, 7),
    }[variant]


def round_trip(picture: Picture, quality: int) -> Picture:
    file = io.BytesIO()
    Image.fromarray(picture).save(file, "JPEG", quality=quality)
    return np.asarray(Image.open(file))


@pytest.mark.parametrize("shape", [(28, 28), (1, 1), (37, 50, 3), (224, 199, 3), (8, 3, 3)])
@pytest.mark.parametrize("variant", ["imagenet-c", "imagenet-299", "cifar-c", "mnist-c"])
def test_jpeg_is_the_round_trip_through_pillow(variant: str, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(len(shape))
    picture = np.cumsum(rng.integers(-9, 10, shape), axis=1).astype(np.uint8)
    for severity, quality in enumerate(published_qualities(variant), 1):
        ours = corrupt(picture, "jpeg_compression", severity, variant=variant)
        np.testing.assert_array_equal(ours, round_trip(picture, quality))


def test_the_page_declares_what_is_tested() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.+) \|$", PAGE.read_text("utf-8"), re.MULTILINE)
    page: dict[tuple[str, str], str] = {}
    for name, line in rows:
        for variant, cell in zip(FILES, line.split(" | "), strict=True):
            if cell != "-":
                page[variant, name] = cell.split(",")[0]
    assert page == {pair: declared(*pair) for pair in PAIRS}, "run `make docs`"
