"""Rows of facts: a table for a person, JSON for a program."""

from __future__ import annotations

from typing import Any


def show_rows(rows: list[dict[str, Any]], as_json: bool = False) -> None:
    """Print rows, which share their columns, on at most the terminal's width."""
    if as_json:
        import json

        print(json.dumps(rows, indent=1))
        return
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    for name in rows[0] if rows else ():
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*(_text(value) for value in row.values()))
    Console(markup=False, highlight=False, emoji=False).print(table)


def _text(value: object) -> str:
    """Return a value as people write it: yes or nothing, and 1-5 for a run of numbers.

    >>> _text(True), _text(None), _text([1, 2, 3]), _text([1])
    ('yes', '', '1-3', '1')
    """
    if isinstance(value, bool) or value is None:
        return "yes" if value else ""
    if isinstance(value, list):
        ends = dict.fromkeys((*value[:1], *value[-1:]))
        return "-".join(map(str, ends))
    return str(value)
