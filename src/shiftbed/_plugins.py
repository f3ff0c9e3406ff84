"""Other packages' additions: each entry point of ``shiftbed.plugins`` names a module.

Importing the module is all that happens: what it decorates registers itself. Rooms that add to
one above them are found in the same way.
"""

from __future__ import annotations

from functools import cache

from shiftbed.errors import InputError

__all__ = ["load"]

#: Adds the models that are trained here to the sources of models.
_OWN = ("shiftbed.train.source",)


@cache
def load() -> None:
    """Import every plugin that is installed, once."""
    from importlib import import_module
    from importlib.metadata import entry_points

    for name in _OWN:
        import_module(name)

    for entry in entry_points(group="shiftbed.plugins"):
        try:
            entry.load()
        except Exception as problem:  # whatever another package's code raises
            raise InputError(
                f"the plugin {entry.name} ({entry.value}) cannot be imported "
                f"({type(problem).__name__}: {problem}); mend or uninstall it"
            ) from problem
