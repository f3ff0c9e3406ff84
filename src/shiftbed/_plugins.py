"""Other packages' additions: each entry point of ``shiftbed.plugins`` names a module.

Importing the module is all that happens: what it decorates registers itself.
"""

from __future__ import annotations

from functools import cache

__all__ = ["load"]


@cache
def load() -> None:
    """Import every plugin that is installed, once."""
    from importlib.metadata import entry_points

    for entry in entry_points(group="shiftbed.plugins"):
        entry.load()
