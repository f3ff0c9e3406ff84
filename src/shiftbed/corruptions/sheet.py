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

__all__ = ["central_square", "contact_sheet"]

_PAPER, _INK, _FAINT, _BAND, _EDGE = "#ffffff", "#1a1a1a", "#6b6b6b", "#e9edf2", "#c4c8ce"
_FRAME = "#d9480f"
#: Lengths for cells of up to 160 pixels; the sheets of larger cells are larger in everything.
_MARGIN, _GUTTER, _GAP, _LABELS, _HEADING, _LOWEST_ROW, _TITLES = 18, 28, 6, 146, 30, 44, 90


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
    the benchmark's, and a multiple of it if that is small. Where a benchmark has one severity
    of its own, it is framed. A corruption that cannot be drawn, because it needs an option,
    says so in its row.

    >>> contact_sheet(np.full((28, 28), 90, np.uint8), variant="mnist-c", cell=28).mode
    'RGB'
    """
    specs = _registry.corruptions(variant)
    side = _registry.VARIANTS[variant]
    cell = max(128 // side, 1) * side if cell is None else cell
    if not 16 <= cell <= 1024:
        raise InputError(f"a cell of {cell} pixels was asked for; choose 16 to 1024")
    taken = {option for spec in specs for option in spec.options}
    for option in options or ():
        if option not in taken:
            raise unknown("option of these corruptions", option, taken)
    clean = central_square(picture, side, grey=variant == "mnist-c")
    rows = [_row(spec, clean, seed, key, options or {}) for spec in specs]
    note = f"clean on the left; seed {seed}"
    if any(spec.standard for spec in specs):
        note += "; framed: the severity of the benchmark itself"
    lines = [
        (title or "clean", 26, _INK),
        (f"{variant}: {len(rows)} corruptions of {side} x {side} px", 17, _INK),
        (note, 15, _FAINT),
    ]
    return _Sheet(cell, _columns(_by_family(rows))).drawn(clean, lines)


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


class _Sheet:
    def __init__(self, cell: int, columns: list[list[list[_Row]]]) -> None:
        self.cell = cell
        self.columns = columns
        self.scale = max(1.0, cell / 160)
        self.across = cell + self.px(_GAP)
        self.down = max(cell, self.px(_LOWEST_ROW)) + self.px(_GAP)
        steps = max(len(row.cells) for column in columns for family in column for row in family)
        self.width = self.px(_LABELS) + steps * self.across

    def px(self, length: float) -> int:
        return round(length * self.scale)

    def font(self, size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
        return ImageFont.load_default(self.px(size))

    def drawn(self, clean: Picture, lines: list[tuple[str, int, str]]) -> Image.Image:
        px = self.px
        top = px(_MARGIN) + max(self.cell, px(_TITLES)) + px(_GUTTER)
        heights = [sum(map(self.height, column)) for column in self.columns]
        between = px(_GUTTER) * (len(self.columns) - 1)
        size = (
            2 * px(_MARGIN) + len(self.columns) * self.width + between,
            top + max(heights) + px(_MARGIN),
        )
        self.sheet = Image.new("RGB", size, _PAPER)
        self.draw = ImageDraw.Draw(self.sheet)
        self.sheet.paste(_shown(clean, self.cell), (px(_MARGIN), px(_MARGIN)))
        y = px(_MARGIN)
        for text, points, ink in lines:
            at = (px(_MARGIN) + self.cell + px(_GUTTER), y)
            self.draw.text(at, text, ink, self.font(points))
            y += px(1.4 * points)
        for number, column in enumerate(self.columns):
            x, y = px(_MARGIN) + number * (self.width + px(_GUTTER)), top
            for family in column:
                self.draw_family(x, y, family)
                y += self.height(family)
        return self.sheet

    def height(self, family: list[_Row]) -> int:
        return self.px(_HEADING) + len(family) * self.down + 2 * self.px(_GAP)

    def draw_family(self, x: int, y: int, family: list[_Row]) -> None:
        px = self.px
        self.draw.rectangle((x, y, x + self.width - px(_GAP) - 1, y + px(_HEADING) - 1), fill=_BAND)
        middle = y + px(_HEADING) // 2
        name = family[0].spec.family
        self.draw.text((x + px(8), middle), name, _INK, self.font(17), anchor="lm")
        for step in range(1, max(len(row.spec.severities) for row in family) + 1):
            centre = x + px(_LABELS) + (step - 1) * self.across + self.cell // 2
            self.draw.text((centre, middle), str(step), _FAINT, self.font(15), anchor="mm")
        y += px(_HEADING) + px(_GAP)
        for row in family:
            self.draw_row(x, y, row)
            y += self.down

    def draw_row(self, x: int, y: int, row: _Row) -> None:
        px, spec = self.px, row.spec
        middle = y + (self.down - px(_GAP)) // 2
        notes = [] if spec.standing == "main" else [spec.standing]
        notes += [] if spec.severities else ["no severity"]
        name = spec.name.replace("_", " ")
        raised = px(9) if notes else 0
        self.draw.text((x + px(8), middle - raised), name, _INK, self.font(15), anchor="lm")
        self.draw.text(
            (x + px(8), middle + px(10)), ", ".join(notes), _FAINT, self.font(13), anchor="lm"
        )
        x += px(_LABELS)
        y = middle - self.cell // 2
        for step, picture in enumerate(row.cells, start=1):
            edge, ink = (px(3), _FRAME) if step == spec.standard else (1, _EDGE)
            last = self.cell + edge - 1
            self.draw.rectangle((x - edge, y - edge, x + last, y + last), fill=ink)
            self.sheet.paste(_shown(picture, self.cell), (x, y))
            x += self.across
        if row.problem:
            lines = textwrap.wrap(
                f"not drawn: {row.problem}",
                width=(self.width - px(_LABELS)) // px(7),
                max_lines=max(1, self.down // px(18)),
                placeholder=" ...",
            )
            text = "\n".join(lines)
            self.draw.multiline_text(
                (x, middle), text, _FAINT, self.font(13), anchor="lm", spacing=px(4)
            )


def central_square(picture: Picture, side: int, *, grey: bool) -> Picture:
    """Return the central square of a picture at a benchmark's size.

    >>> central_square(np.zeros((40, 64, 3), np.uint8), 32, grey=False).shape
    (32, 32, 3)
    """
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
