"""The contact sheet of an augmentation: pictures, and what it makes of each, several times."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from shiftbed.augment._augmentation import Augmentation
from shiftbed.corruptions._api import Picture
from shiftbed.data import ImageSet, UnreadablePicture
from shiftbed.errors import InputError

__all__ = ["contact_sheet", "spread"]

_PAPER, _INK, _FAINT = "#ffffff", "#1a1a1a", "#6b6b6b"
_MARGIN, _GAP, _TITLE = 16, 4, 52


def contact_sheet(
    pictures: Sequence[Picture], augmentation: Augmentation, *, columns: int = 8, cell: int = 160
) -> Image.Image:
    """Draw a row for each picture: its central square, then ``columns`` augmented versions.

    >>> from shiftbed.augment import augmentation
    >>> contact_sheet([np.zeros((40, 60, 3), np.uint8)], augmentation("augmix"), columns=2).mode
    'RGB'
    """
    if not pictures:
        raise InputError("there is no picture to draw on the contact sheet")
    if not 1 <= columns <= 50 or not 16 <= cell <= 1024:
        raise InputError(
            f"{columns} versions in cells of {cell} pixels were asked for; expected 1 to 50 "
            "versions, and cells of 16 to 1024 pixels"
        )
    across = cell + _GAP
    size = (
        2 * _MARGIN + (1 + columns) * across,
        _MARGIN + _TITLE + len(pictures) * across + _MARGIN,
    )
    sheet = Image.new("RGB", size, _PAPER)
    draw = ImageDraw.Draw(sheet)
    draw.text((_MARGIN, _MARGIN), str(augmentation), _INK, ImageFont.load_default(15))
    note = "on the left as it is; then augmented"
    draw.text((_MARGIN, _MARGIN + 22), note, _FAINT, ImageFont.load_default(13))
    for row, picture in enumerate(pictures):
        square = _square(picture, cell)
        # Each version has weights of its own where there are any: no key is a place in an order.
        versions = [augmentation(square, key=f"{row} {column}") for column in range(columns)]
        for column, shown in enumerate([square, *versions]):
            place = (_MARGIN + column * across, _MARGIN + _TITLE + row * across)
            sheet.paste(Image.fromarray(shown), place)
    return sheet


def spread(pictures: ImageSet, count: int = 5) -> list[Picture]:
    """Return a few pictures from all over a set, those that can be read."""
    step = max(1, len(pictures) // count)
    found: list[Picture] = []
    for index in range(0, len(pictures), step):
        try:
            found.append(pictures.load(index))
        except UnreadablePicture:
            continue
    return found[:count]


def _square(picture: Picture, side: int) -> Picture:
    """Return the central square of a picture, in RGB, at the size of a cell."""
    image = Image.fromarray(picture).convert("RGB")
    short = min(image.size)
    left, top = (image.width - short) // 2, (image.height - short) // 2
    box = (left, top, left + short, top + short)
    return np.asarray(image.resize((side, side), Image.Resampling.BILINEAR, box))
