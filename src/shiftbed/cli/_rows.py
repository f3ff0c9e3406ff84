"""Rows of facts: a table for a person, JSON for a program."""

from __future__ import annotations

from typing import Any

from shiftbed._tables import add, grid, print_parts


def show_rows(rows: list[dict[str, Any]], as_json: bool = False) -> None:
    """Print rows, which share their columns, on at most the terminal's width."""
    if as_json:
        import json

        print(json.dumps(rows, indent=1))
        return
    table = grid("", list(rows[0]) if rows else [])
    for row in rows:
        add(table, *(_text(value) for value in row.values()))
    print_parts([table])


def show_facts(things: list[dict[str, Any]]) -> None:
    """Print what is known of each thing, a fact to a line; what is not known is left out."""
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False, markup=False)
    wide = max((len(name) for one in things for name in one), default=0)
    for number, one in enumerate(things):
        if number:
            console.print()
        table = Table.grid(padding=(0, 2))
        table.add_column(min_width=wide)
        table.add_column(overflow="fold")
        for name, value in one.items():
            text = ", ".join(value) if isinstance(value, list) else _text(value)
            if text:
                table.add_row(name, text)
        console.print(table)


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
