"""The bar that shows how far a command has come."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress(what: str, total: int, quiet: bool) -> Iterator[Callable[[int], None]]:
    """Show a bar on standard error, if that is a terminal; yield what advances it."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    console = Console(stderr=True)
    bar = Progress(
        "[progress.description]{task.description}",
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TimeRemainingColumn(compact=True),
        console=console,
        disable=quiet or not console.is_terminal,
        transient=True,
    )
    task = bar.add_task(what, total=total)
    with bar:
        yield lambda done: bar.advance(task, done)
