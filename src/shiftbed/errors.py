"""The one error that a user's mistake raises, and the sentences it is made of."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = ["InputError", "MissingExtraError", "unknown"]


class InputError(ValueError):
    """A user's mistake, told in one sentence: what was given, what was expected, what to do.

    The command line prints the sentence alone and exits with status 2.
    """


class MissingExtraError(InputError):
    """A part of the package that an optional dependency would bring."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs an extra: pip install 'shiftbed[{extra}]'")


#: No name is longer, and looking for the nearest would take minutes.
_LONG = 300


def unknown(kind: str, given: object, known: Iterable[str]) -> InputError:
    """Return the error for a name that is not among ``known``, with near matches.

    >>> print(unknown("corruption", "fgo", ["fog", "frost", "snow"]))
    there is no corruption 'fgo'; did you mean fog?
    >>> print(unknown("corruption", "xyz", ["fog", "frost", "snow"]))
    there is no corruption 'xyz'; choose one of fog, frost, snow
    """
    known = sorted(known)
    if isinstance(given, str) and len(given) > _LONG:
        given = f"{given[:_LONG]}…"
    near = difflib.get_close_matches(str(given), known, n=3, cutoff=0.6)
    if near:
        advice = f"did you mean {' or '.join(near)}?"
    elif known:
        more = f" and {len(known) - 12} more" if len(known) > 12 else ""
        advice = f"choose one of {', '.join(known[:12])}{more}"
    else:
        advice = "there is none to choose from"
    return InputError(f"there is no {kind} {given!r}; {advice}")
