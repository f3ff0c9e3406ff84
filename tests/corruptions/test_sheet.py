"""What the contact sheet shows: every corruption at every severity, pixel by pixel."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from shiftbed.corruptions import VARIANTS, corrupt, corruptions
from shiftbed.corruptions.sheet import contact_sheet
from shiftbed.errors import InputError


def shows(sheet: np.ndarray, picture: np.ndarray) -> bool:
    """Whether a picture is somewhere on the sheet, unchanged."""
    if picture.ndim == 2:
        picture = np.repeat(picture[..., None], 3, axis=2)
    found = cv2.matchTemplate(sheet, picture, cv2.TM_SQDIFF)
    # In single precision, an exact match of a large sum is not exactly 0.
    near = np.argwhere(found < 1e4)
    height, width = picture.shape[:2]
    return any((sheet[y : y + height, x : x + width] == picture).all() for y, x in near)


@pytest.mark.parametrize("variant", ["mnist-c", "cifar-c"])
def test_every_corruption_is_there_at_every_severity(variant, options):
    side = VARIANTS[variant]
    shape = (side, side) if variant == "mnist-c" else (side, side, 3)
    coarse = np.random.default_rng(2).integers(0, 256, shape, dtype=np.uint8)
    picture = cv2.GaussianBlur(coarse, (0, 0), 2)
    given = {**options("frost"), **options("pessimal_noise")}
    if variant != "mnist-c":
        del given["matrix"]
    sheet = np.asarray(
        contact_sheet(picture, variant=variant, seed=4, key="k", cell=side, options=given)
    )
    assert shows(sheet, picture)
    for spec in corruptions(variant):
        for step in spec.severities or (None,):
            corrupted = corrupt(
                picture,
                spec.name,
                step,
                variant=variant,
                seed=4,
                key="k",
                **options(spec.name),
            )
            assert shows(sheet, corrupted), (spec.name, step)


def test_pixels_of_small_pictures_are_repeated(options):
    digit = np.random.default_rng(2).integers(0, 256, (28, 28), dtype=np.uint8)
    sheet = np.asarray(contact_sheet(digit, variant="mnist-c", options=options("frost")))
    assert shows(sheet, np.kron(digit, np.ones((4, 4), np.uint8)))


def test_a_corruption_that_cannot_be_drawn_leaves_its_row_to_the_reason(options):
    digit = np.zeros((28, 28), np.uint8)
    without = contact_sheet(digit, variant="mnist-c", options=options("frost"))
    both = {**options("frost"), **options("pessimal_noise")}
    drawn = contact_sheet(digit, variant="mnist-c", options=both)
    assert without.size == drawn.size
    differ = np.argwhere((np.asarray(without) != np.asarray(drawn)).any(axis=2))
    # One row of cells, beside the labels.
    assert differ[:, 0].max() - differ[:, 0].min() <= 112 + 6


@pytest.mark.parametrize("shape", [(1, 1, 3), (3, 900), (2000, 31, 3), (700, 1000, 3)])
@pytest.mark.parametrize("variant", VARIANTS)
def test_any_picture_gives_a_sheet_of_one_size(shape, variant, options):
    picture = np.full(shape, 130, np.uint8)
    sheet = contact_sheet(picture, variant=variant, cell=24, options=options("frost"))
    plain = contact_sheet(
        np.zeros((9, 9), np.uint8), variant=variant, cell=24, options=options("frost")
    )
    assert sheet.mode == "RGB"
    assert sheet.size == plain.size


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"variant": "cifar"}, "no variant 'cifar'; did you mean cifar-c?"),
        ({"cell": 0}, "a cell of 0 pixels was asked for; choose 16 to 1024"),
        ({"options": {"ice": 1}}, "no option of these corruptions 'ice'"),
    ],
)
def test_mistakes_are_told(arguments, sentence):
    with pytest.raises(InputError) as caught:
        contact_sheet(np.zeros((9, 9), np.uint8), **arguments)
    assert sentence in str(caught.value)
