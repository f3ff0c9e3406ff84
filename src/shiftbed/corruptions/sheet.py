"""The contact sheet: one picture under every corruption of a benchmark, at every severity."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from shiftbed.corruptions import _registry
from shiftbed.corruptions._api import Picture, corrupt
from shiftbed.errors import InputError, unknown

__all__ = ["contact_sheet"]

_PAPER, _INK, _FAINT, _BAND, _EDGE = "#ffffff", "#1a1a1a", "#6b6b6b", "#e9edf2", "#c4c8ce"
_FRAME = "#d9480f"
_GAP, _MARGIN, _GUTTER, _LABELS, _HEADING = 6, 18, 28, 146, 30


def contact_sheet(
    picture: Picture,
    *,
    variant: str = "imagenet-c",
    title: str = "",
    seed: int = 0,
    key: str = "",
    cell: int | None = None,
    options: Mapping[str, Any] | None = None,
) -> Image.Image:
    """Draw a picture under all corruptions of a variant, a row each, by family.

    The central square of the picture is brought to the benchmark's size first, so that the
    corruptions look as they do there. ``cell`` is the side of a cell in pixels: unless said,
    160, or for the benchmarks of small pictures a whole multiple of theirs. Where a benchmark
    has one severity of its own, it is framed. A corruption that cannot be drawn, because it
    needs an option, says so in its row.

    >>> contact_sheet(np.full((28, 28), 90, np.uint8), variant="mnist-c", cell=28).mode
    'RGB'
    """
    specs = _registry.corruptions(variant)
    side = _registry.VARIANTS[variant]
    if cell is None:
        cell = 160 if side > 128 else 128 // side * side
    if not 16 <= cell <= 1024:
        raise InputError(f"a cell of {cell} pixels was asked for; choose 16 to 1024")
    taken = {option for spec in specs for option in spec.options}
    for option in options or ():
        if option not in taken:
            raise unknown("option of these corruptions", option, taken)
    clean = _square(picture, side, grey=variant == "mnist-c")
    rows = [_row(spec, clean, seed, key, options or {}) for spec in specs]
    columns = _columns(_by_family(rows))
    steps = max(len(row.cells) for row in rows)
    width = _LABELS + steps * (cell + _GAP)
    heights = [
        sum(_HEADING + len(family) * (cell + _GAP) + 2 * _GAP for family in column)
        for column in columns
    ]
    top = _MARGIN + max(cell, 90) + _GUTTER
    sheet = Image.new(
        "RGB",
        (
            2 * _MARGIN + len(columns) * width + (len(columns) - 1) * _GUTTER,
            top + max(heights) + _MARGIN,
        ),
        _PAPER,
    )
    draw = ImageDraw.Draw(sheet)
    sheet.paste(_shown(clean, cell), (_MARGIN, _MARGIN))
    for line, (text, size, ink) in enumerate(_heading(title, variant, side, seed, rows)):
        at = (_MARGIN + cell + _GUTTER, _MARGIN + (0, 36, 60)[line])
        draw.text(at, text, ink, _font(size))
    for number, column in enumerate(columns):
        x, y = _MARGIN + number * (width + _GUTTER), top
        for family in column:
            _draw_heading(draw, x, y, width, cell, family)
            y += _HEADING + _GAP
            for row in family:
                _draw_row(sheet, draw, x, y, cell, row)
                y += cell + _GAP
            y += _GAP
    return sheet


@dataclass(frozen=True)
class _Row:
    spec: _registry.Spec
    cells: list[Picture]
    #: Why there are no cells.
    problem: str = ""


def _row(
    spec: _registry.Spec, clean: Picture, seed: int, key: str, options: Mapping[str, Any]
) -> _Row:
    own = {name: value for name, value in options.items() if name in spec.options}
    try:
        cells = [
            corrupt(clean, spec.name, step, variant=spec.variant, seed=seed, key=key, **own)
            for step in spec.severities or (None,)
        ]
    except InputError as problem:
        return _Row(spec, [], str(problem))
    return _Row(spec, cells)


def _by_family(rows: list[_Row]) -> list[list[_Row]]:
    families: dict[str, list[_Row]] = {}
    for row in rows:
        families.setdefault(row.spec.family, []).append(row)
    return list(families.values())


def _columns(families: list[list[_Row]]) -> list[list[list[_Row]]]:
    """Return the families in two columns, in order, the longer as short as can be."""
    sizes = [len(family) + 0.2 for family in families]
    cut = min(range(1, len(sizes)), key=lambda at: max(sum(sizes[:at]), sum(sizes[at:])))
    return [families[:cut], families[cut:]]


def _heading(
    title: str, variant: str, side: int, seed: int, rows: list[_Row]
) -> list[tuple[str, int, str]]:
    lines = [(title or "clean", 26, _INK)]
    lines.append((f"{variant}: {len(rows)} corruptions of {side} x {side} px", 17, _INK))
    note = f"clean on the left; seed {seed}"
    if any(row.spec.standard for row in rows):
        note += "; framed: the severity of the benchmark itself"
    return [*lines, (note, 15, _FAINT)]


def _draw_heading(
    draw: ImageDraw.ImageDraw, x: int, y: int, width: int, cell: int, family: list[_Row]
) -> None:
    draw.rectangle((x, y, x + width - _GAP - 1, y + _HEADING - 1), fill=_BAND)
    middle = y + _HEADING // 2
    draw.text((x + 8, middle), family[0].spec.family, _INK, _font(17), anchor="lm")
    for step in range(1, max(len(row.spec.severities) for row in family) + 1):
        centre = x + _LABELS + (step - 1) * (cell + _GAP) + cell // 2
        draw.text((centre, middle), str(step), _FAINT, _font(15), anchor="mm")


def _draw_row(
    sheet: Image.Image, draw: ImageDraw.ImageDraw, x: int, y: int, cell: int, row: _Row
) -> None:
    spec = row.spec
    label = "\n".join(textwrap.wrap(spec.name.replace("_", " "), 17))
    lines = label.count("\n") + 1
    draw.multiline_text((x + 8, y + cell // 2), label, _INK, _font(15), anchor="lm", spacing=3)
    notes = [] if spec.standing == "main" else [spec.standing]
    notes += [] if spec.severities else ["no severity"]
    below = y + cell // 2 + 10 * lines + 4
    draw.text((x + 8, below), ", ".join(notes), _FAINT, _font(13))
    for step, picture in enumerate(row.cells, start=1):
        left = x + _LABELS + (step - 1) * (cell + _GAP)
        edge, ink = (3, _FRAME) if step == spec.standard else (1, _EDGE)
        draw.rectangle(
            (left - edge, y - edge, left + cell + edge - 1, y + cell + edge - 1), fill=ink
        )
        sheet.paste(_shown(picture, cell), (left, y))
    if row.problem:
        text = "\n".join(textwrap.wrap(f"not drawn: {row.problem}", 60))
        draw.multiline_text(
            (x + _LABELS, y + cell // 2), text, _FAINT, _font(13), anchor="lm", spacing=4
        )


def _square(picture: Picture, side: int, *, grey: bool) -> Picture:
    """Return the central square of a picture at the benchmark's size."""
    image = Image.fromarray(picture).convert("L" if grey else "RGB")
    short = min(image.size)
    left, top = (image.width - short) // 2, (image.height - short) // 2
    box = (left, top, left + short, top + short)
    return np.asarray(image.resize((side, side), Image.Resampling.BILINEAR, box))


def _shown(picture: Picture, cell: int) -> Image.Image:
    """Return a picture at the size of a cell: its pixels repeated, or well averaged."""
    image = Image.fromarray(picture)
    larger = cell >= image.width
    return image.resize(
        (cell, cell), Image.Resampling.NEAREST if larger else Image.Resampling.LANCZOS
    ).convert("RGB")


def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)
