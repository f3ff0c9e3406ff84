"""Other packages' additions: each entry point of ``shiftbed.plugins`` names a module.

Importing the module is all that happens: what it decorates registers itself.
"""

from __future__ import annotations

from functools import cache

from shiftbed.errors import InputError

__all__ = ["load"]


@cache
def load() -> None:
    """Import every plugin that is installed, once."""
    from importlib.metadata import entry_points

    for entry in entry_points(group="shiftbed.plugins"):
        try:
            entry.load()
        except Exception as problem:  # whatever another package's code raises
            raise InputError(
                f"the plugin {entry.name} ({entry.value}) cannot be imported "
                f"({type(problem).__name__}: {problem}); mend or uninstall it"
            ) from problem
