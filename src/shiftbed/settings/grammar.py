"""The grammar of names: ``SET+SHIFT`` with braces and wildcards."""

from __future__ import annotations

from shiftbed._braces import expand_braces

__all__ = ["expand_braces", "split_pattern"]


def split_pattern(pattern: str) -> tuple[str, str | None]:
    """Return the set's part and the shift's part of a pattern, at its last ``+``.

    >>> split_pattern("photos+fog.3"), split_pattern("c++/photos/"), split_pattern("+fog.3")
    (('photos', 'fog.3'), ('c++/photos/', None), ('', 'fog.3'))
    """
    head, plus, tail = pattern.rpartition("+")
    # A shift has no slash: what has one is a path with a plus in it.
    if not plus or "/" in tail:
        return pattern, None
    return head, tail
