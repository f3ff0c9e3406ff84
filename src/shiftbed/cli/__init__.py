"""The command line: one short file per command, which parses, calls and prints."""

from __future__ import annotations

import importlib
import pkgutil
import sys

from shiftbed.cli._app import app
from shiftbed.errors import InputError

__all__ = ["app", "main"]

for _module in pkgutil.iter_modules(__path__):
    if not _module.name.startswith("_"):
        importlib.import_module(f"{__name__}.{_module.name}")


def main() -> None:
    """Run the command line; a user's mistake is one sentence and exit status 2."""
    try:
        app()
    except InputError as mistake:
        print(f"shiftbed: {mistake}", file=sys.stderr)
        raise SystemExit(2) from None
