"""Tables and sentences for a person at a terminal: one look for all that is printed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
    from rich.measure import Measurement
    from rich.table import Table

__all__ = ["HEADING", "ROWS", "add", "add_column", "grid", "print_parts"]

#: How many rows of a table a person is shown.
ROWS = 200
#: The heading of a column of numbers is broken beyond this.
HEADING = 18
#: A column of names is not squeezed below this.
_NARROWEST = 12


def grid(title: str, names: Sequence[str] = (), numbers: Sequence[str] = ()) -> Table:
    """Return an empty table: columns of names on the left, of numbers on the right."""
    from rich import box
    from rich.table import Table

    table = Table(
        title=title, box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False
    )
    for name in names:
        add_column(table, name)
    for name in numbers:
        add_column(table, name, number=True)
    return table


def add_column(table: Table, name: str, *, number: bool = False, heading: int = HEADING) -> None:
    """Add a column of names, or of numbers, which are never broken."""
    if number:
        table.add_column(_Name(name, heading), justify="right", no_wrap=True)
    else:
        table.add_column(_Name(name), overflow="fold")


def add(table: Table, *texts: str) -> None:
    """Add a row. A name too long for its column goes on in the next line at a separator."""
    from rich.text import Text

    table.add_row(
        *(
            Text(text) if column.no_wrap else _Name(text)
            for text, column in zip(texts, table.columns, strict=True)
        )
    )


def print_parts(parts: Iterable[RenderableType], console: Console | None = None) -> None:
    """Print tables, each under its title, and sentences; brackets in names are no markup."""
    from rich.console import Console
    from rich.table import Table

    console = console or Console(emoji=False)
    for part in parts:
        if isinstance(part, Table) and part.title:
            title, part.title = part.title, None
            console.print()
            console.print(title, style="bold", markup=False, highlight=False)
        console.print(part, markup=False, highlight=False)


@dataclass(frozen=True)
class _Name:
    """A name that is broken where its parts meet, not within a word."""

    text: str
    #: Broken beyond this width also where there is more room.
    widest: int | None = None

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        from rich.cells import cell_len
        from rich.measure import Measurement

        lines = _broken(self.text, self.widest or len(self.text)).splitlines()
        longest = max(map(cell_len, lines), default=0)
        return Measurement(min(longest, _NARROWEST), longest)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.text import Text

        yield Text(_broken(self.text, options.max_width), overflow="fold", justify=options.justify)


def _broken(name: str, width: int) -> str:
    """Return a name in lines of at most so many characters, where its parts allow that.

    >>> print(_broken("resnet50-smoothing_noise_0.50", 18))
    resnet50-
    smoothing_noise_
    0.50
    """
    lines = [""]
    for part in re.split(r"(?<=[-_+/:\s])|(?<=\.)(?!\d)", name):
        if lines[-1] and len(lines[-1]) + len(part.rstrip()) > width:
            lines.append("")
        lines[-1] += part
    return "\n".join(line.rstrip(" ") for line in lines)
