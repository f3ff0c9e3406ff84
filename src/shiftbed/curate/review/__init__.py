"""The page on which people accept or reject a shortlist's pictures, and their votes."""

from __future__ import annotations

from pathlib import Path

from shiftbed.curate.shortlist import Shortlist
from shiftbed.errors import InputError

__all__ = ["serve"]


def serve(directory: str | Path) -> None:
    """Serve the page for a curation's directory until it is stopped."""
    shortlist = Shortlist.load(directory)
    raise InputError(f"{shortlist.name} cannot be reviewed here yet; export it without review")
