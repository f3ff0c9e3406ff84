"""How figures look: width, fonts, markers, ticks, and how they are saved."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from shiftbed.errors import InputError, MissingExtraError
from shiftbed.studies.lines import Scale, to_scale

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "INK",
    "SOFT",
    "STYLES",
    "drawing",
    "legend",
    "limits",
    "line",
    "place",
    "points",
    "short",
    "ticks",
]

FloatArray = npt.NDArray[np.float64]

#: Colours that colour-blind readers tell apart, each with a marker and a line of its own.
STYLES: tuple[tuple[str, str, Any], ...] = (
    ("#0068a8", "o", "-"),
    ("#c94f00", "s", "--"),
    ("#00805c", "D", ":"),
    ("#b0558a", "^", "-."),
    ("#8a6d00", "P", (0, (5, 1))),
    ("#5f6b78", "X", (0, (3, 1, 1, 1))),
)
INK, SOFT = "#16202b", "#5f6b78"
_FORMATS = ("pdf", "svg", "png", "eps")
_TICKS = np.array(
    [0.0001, 0.001, 0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999, 0.9999]
)


@contextmanager
def drawing(output: str | Path, width: float, height: float) -> Iterator[Figure]:
    """Give an empty figure, and save what is drawn in it; the same drawing is the same bytes."""
    path = Path(output)
    kind = path.suffix.lower().removeprefix(".")
    if kind not in _FORMATS:
        raise InputError(
            f"{path.name} has no ending that says what to draw; give .{', .'.join(_FORMATS)}"
        )
    if not 1 <= width <= 40:
        raise InputError(f"a width of {width:g} inches was asked for; choose 1 to 40")
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure as Blank
    except ImportError:
        raise MissingExtraError("a figure", "report") from None
    style: dict[Any, Any] = {
        "font.size": 7,
        "axes.linewidth": 0.6,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "legend.fontsize": 6,
        "pdf.fonttype": 42,
        "svg.hashsalt": "shiftbed",
        "text.parse_math": False,  # dollars in a name are dollars
        "xtick.major.width": 0.6,
        "ytick.major.width": 0.6,
    }
    with mpl.rc_context(style), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # of somebody's name
        figure = Blank(figsize=(width, height), layout="constrained")
        yield figure
        dated = {"pdf": "CreationDate", "svg": "Date", "eps": None, "png": None}[kind]
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            figure.savefig(path, dpi=300, metadata=None if dated is None else {dated: None})
        except OSError as problem:
            raise InputError(f"cannot write {path} ({problem.strerror})") from None


def line(
    panel: Axes,
    number: int,
    name: str,
    x: FloatArray,
    y: FloatArray,
    low: FloatArray,
    high: FloatArray,
) -> None:
    """Draw a line through points with error bars, in the look of a number."""
    ink, marker, dash = STYLES[number % len(STYLES)]
    style: dict[str, Any] = {"color": ink, "marker": marker, "ls": dash, "lw": 0.9, "ms": 2.6}
    panel.errorbar(x, y, _reach(y, low, high), label=name, elinewidth=0.5, capsize=1, **style)


def points(
    panel: Axes,
    places: Sequence[Sequence[FloatArray]],
    look: tuple[str, str],
    label: str,
    *,
    star: bool,
) -> None:
    """Draw points with their error bars, from (value, low, high) along both axes."""
    ink, marker = look
    (x, y), (across, up) = zip(
        *[(at, _reach(at, low, high)) for at, low, high in places], strict=True
    )
    panel.errorbar(x, y, up, across, fmt="none", ecolor=ink, elinewidth=0.4, alpha=0.5)
    size, over = (42, 4) if star else (9, 3)
    style: dict[str, Any] = {"s": size, "color": ink, "marker": marker, "zorder": over}
    panel.scatter(x, y, lw=0.3, ec="white", label=label, **style)


def _reach(at: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """Return how far error bars reach down and up; nowhere, where the ends are not known."""
    reach: FloatArray = np.nan_to_num(np.stack([at - low, high - at])).clip(0)
    return reach


def place(accuracy: npt.ArrayLike, axes: Scale) -> FloatArray:
    """Return places along an axis; what is exactly 0 or 1 is drawn at its edge."""
    return to_scale(accuracy, axes, 2000.0)


def short(name: str, most: int = 40) -> str:
    """Return a name that leaves room for the figure.

    >>> short("resnet50", 5)
    'resn…'
    """
    return name if len(name) <= most else f"{name[: most - 1]}…"


def ticks(axis: Any, values: FloatArray, axes: Scale) -> None:
    """Mark readable accuracies along an axis of any scale."""
    if axes == "linear":
        axis.set_major_formatter(lambda value, _: f"{100 * value:g}%")
        return
    low, high = float(values.min()), float(values.max())
    inside = _TICKS[(low * 0.9 <= _TICKS) & (high + (1 - high) * 0.1 >= _TICKS)]
    if len(inside) < 4:
        steps = [step for step in (0.002, 0.005, 0.01, 0.02, 0.05, 0.1) if (high - low) / step <= 7]
        step = steps[0] if steps else 0.1
        inside = np.arange(np.floor(low / step), np.ceil(high / step) + 1) * step
        inside = inside[(inside > 0) & (inside < 1)]
    # No two closer than a tenth of the axis, the middle ones first.
    apart = 0.1 * float(np.ptp(place([low, high], axes)))
    kept: list[float] = []
    for value in sorted(inside, key=lambda one: abs(one - 0.5)):
        if all(abs(float(place(value, axes) - place(other, axes))) >= apart for other in kept):
            kept.append(float(value))
    inside = np.array(sorted(kept))
    axis.set_ticks(place(inside, axes), [f"{round(100 * value, 4):g}%" for value in inside])


def limits(panel: Axes, x: FloatArray, y: FloatArray) -> None:
    """Let the axes reach a little beyond the points."""
    for ends, values in ((panel.set_xlim, x), (panel.set_ylim, y)):
        low, high = float(values.min()), float(values.max())
        pad = max(0.06 * (high - low), 0.01)
        ends(low - pad, high + pad)


def legend(panel: Axes) -> None:
    """Name what is drawn, at the upper left, where an accuracy that is lost leaves room."""
    panel.legend(loc="upper left", frameon=False, handlelength=1.4, borderaxespad=0.2)
