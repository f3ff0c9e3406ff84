"""The grammar of names: ``SET+SHIFT`` with braces and wildcards."""

from __future__ import annotations

from shiftbed.errors import InputError

__all__ = ["expand_braces", "split_pattern"]

_LIMIT = 100_000


def expand_braces(pattern: str) -> list[str]:
    """Return what a pattern with braces stands for, in order, as a shell does.

    >>> expand_braces("mnist-test+{clean,fog,rotate}")
    ['mnist-test+clean', 'mnist-test+fog', 'mnist-test+rotate']
    >>> expand_braces("photos+{fog,snow}.{1..3}")[:4]
    ['photos+fog.1', 'photos+fog.2', 'photos+fog.3', 'photos+snow.1']
    """
    done: list[str] = []
    waiting = [pattern]
    while waiting:
        text = waiting.pop()
        opened = text.rfind("{")
        if opened < 0:
            if "}" in text:
                raise InputError(f"the pattern {pattern!r} closes a brace that was never opened")
            done.append(text)
            continue
        # The last opened brace holds no other, so that the innermost goes first.
        closed = text.find("}", opened)
        if closed < 0:
            raise InputError(f"the pattern {pattern!r} opens a brace that is never closed")
        inside = _alternatives(text[opened + 1 : closed])
        if len(done) + len(waiting) + len(inside) > _LIMIT:
            raise InputError(f"the pattern {pattern!r} stands for more than {_LIMIT:,} names")
        waiting.extend(text[:opened] + part + text[closed + 1 :] for part in inside)
    return done


def _alternatives(inside: str) -> list[str]:
    first, dots, last = inside.partition("..")
    if dots and first.isdecimal() and last.isdecimal() and max(len(first), len(last)) < 6:
        low, high = int(first), int(last)
        step = 1 if low <= high else -1
        return [str(number) for number in range(low, high + step, step)]
    return inside.split(",")


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
