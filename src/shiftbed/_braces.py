"""Braces in patterns, as a shell expands them."""

from __future__ import annotations

from shiftbed.errors import InputError

__all__ = ["expand_braces"]

_LIMIT = 100_000
_LONGEST = 10_000
_DEPTH = 20
#: Characters of a name, as of a path. Wildcards take time with the square of it.
_NAME = 4096


def expand_braces(pattern: str) -> list[str]:
    """Return what a pattern with braces stands for, in order, as a shell does.

    >>> expand_braces("mnist-test+{clean,fog,rotate}")
    ['mnist-test+clean', 'mnist-test+fog', 'mnist-test+rotate']
    >>> expand_braces("photos+{fog,snow}.{1..3}")[:4]
    ['photos+fog.1', 'photos+fog.2', 'photos+fog.3', 'photos+snow.1']
    """
    names = _expanded(pattern, pattern, 0)
    longest = max(map(len, names))
    if longest > _NAME:
        raise InputError(f"a name has {longest:,} characters; expected at most {_NAME:,}")
    return names


def _expanded(text: str, pattern: str, depth: int) -> list[str]:
    head, opened, rest = text.partition("{")
    if "}" in head:
        raise InputError(f"the pattern {pattern!r} closes a brace that was never opened")
    if not opened:
        return [text]
    parts, tail = _split(rest, pattern)
    if depth > _DEPTH:
        raise InputError(f"the pattern {pattern!r} has braces within braces without end")
    middles = [name for part in parts for name in _expanded(part, pattern, depth + 1)]
    tails = _expanded(tail, pattern, depth + 1)
    if len(middles) * len(tails) > _LIMIT:
        raise InputError(f"the pattern {pattern!r} stands for more than {_LIMIT:,} names")
    return [head + middle + end for middle in middles for end in tails]


def _split(rest: str, pattern: str) -> tuple[list[str], str]:
    """Return the alternatives of an opened brace, and what follows its end."""
    depth, start, parts = 0, 0, []
    for position, char in enumerate(rest):
        if char == "{":
            depth += 1
        elif char == "}" and depth:
            depth -= 1
        elif char in ",}" and not depth:
            parts.append(rest[start:position])
            start = position + 1
            if char == "}":
                return _range(parts), rest[start:]
    raise InputError(f"the pattern {pattern!r} opens a brace that is never closed")


def _range(parts: list[str]) -> list[str]:
    """Return the numbers that ``1..5`` or ``008..012`` stands for, or the alternatives."""
    first, dots, last = parts[0].partition("..")
    if len(parts) > 1 or not (dots and first.isdecimal() and last.isdecimal()):
        return parts
    if max(len(first), len(last)) > 9 or abs(int(first) - int(last)) >= _LONGEST:
        raise InputError(f"the range {parts[0]} is too long")
    low, high = int(first), int(last)
    step = 1 if low <= high else -1
    padded = any(end.startswith("0") and len(end) > 1 for end in (first, last))
    width = max(len(first), len(last)) if padded else 0
    return [f"{number:0{width}}" for number in range(low, high + step, step)]
