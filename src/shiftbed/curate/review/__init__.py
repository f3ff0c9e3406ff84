"""The page on which people accept or reject a shortlist's pictures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from shiftbed.curate.shortlist import Shortlist
from shiftbed.errors import MissingExtraError

__all__ = ["serve"]


def serve(
    directory: str | Path,
    reviewers: Sequence[str] = ("reviewer",),
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    open_browser: bool = False,
) -> None:
    """Serve the page for a curation's directory until stopped; print a link for each reviewer.

    A link can be opened once: it makes the browser that of its reviewer. ``port`` 0 is any
    that is free.
    """
    shortlist = Shortlist.load(directory)
    try:
        from shiftbed.curate.review.server import run
    except ImportError:
        raise MissingExtraError("the review", "curate") from None
    run(shortlist, reviewers, host, port, open_browser)
