"""shiftbed doctor: what works here."""

from __future__ import annotations

import dataclasses
from typing import Annotated

import typer

from shiftbed.cli._app import app, examples
from shiftbed.cli._rows import show_rows


@app.command("doctor", epilog=examples("shiftbed doctor"))
def doctor(as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False) -> None:
    """Look at versions, extras, torch, caches and sets; exit status 1 if something is wrong."""
    from shiftbed.doctor import examine

    findings = examine()
    show_rows([dataclasses.asdict(finding) for finding in findings], as_json)
    if any(finding.state == "wrong" for finding in findings):
        raise typer.Exit(1)
