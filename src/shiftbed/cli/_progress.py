"""How far a command has come, and what is said where it is stopped."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import typer


@contextmanager
def resumable(output: str | Path) -> Iterator[None]:
    """Let Ctrl-C stop a command whose finished work is in ``output``: exit status 130."""
    try:
        yield
    except KeyboardInterrupt:
        print(
            f"\nshiftbed: stopped; the same command goes on from what is in {output}",
            file=sys.stderr,
        )
        raise typer.Exit(130) from None


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
