"""A file that gives a command's options: ``--config run.toml``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from shiftbed.errors import InputError, unknown


def _apply(context: typer.Context, file: Path | None) -> Path | None:
    """Make the file's values the defaults of the command's options."""
    if file is None:
        return None
    from shiftbed.data import read_toml

    flags = {
        flag.removeprefix("--"): parameter
        for parameter in context.command.params
        for flag in parameter.opts
        if (flag.startswith("--") and flag not in ("--help", "--config"))
    }
    defaults: dict[str, Any] = {}
    for name, value in read_toml(file, "expected lines like seed = 1").items():
        parameter = flags.get(name.replace("_", "-"))
        if parameter is None:
            raise unknown(f"option of {context.command_path} for {file}", name, flags)
        if isinstance(value, dict):
            raise InputError(f"{name} in {file.name} is a table; expected a value of --{name}")
        several = getattr(parameter, "multiple", False)
        if isinstance(value, list) and not several:
            raise InputError(f"{name} in {file.name} is a list, but --{name} is given once")
        if several and not isinstance(value, list):
            value = [value]
        if parameter.name is not None:
            defaults[parameter.name] = value
    context.default_map = defaults
    return file


Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE.toml",
        help="Options from a file, named as the flags are; what is given here comes first.",
        callback=_apply,
        is_eager=True,
    ),
]
