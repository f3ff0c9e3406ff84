"""The application that every command file adds itself to."""

from __future__ import annotations

from typing import Annotated

import typer

from shiftbed import __version__

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="The testbed for distribution shift in image classification.",
)


def examples(*lines: str) -> str:
    """Return what stands below a command's help: lines that a person could type."""
    return "\n\n".join(["For example:", *lines])


def _version(wanted: bool) -> None:
    if wanted:
        print(f"shiftbed {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass
