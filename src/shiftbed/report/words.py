"""Numbers as the page and the figures print them."""

from __future__ import annotations

import math

from shiftbed.metrics import Estimate

__all__ = ["certainty", "interval", "number", "percent", "shown"]


def percent(value: float | None, digits: int = 1) -> str:
    """Return a fraction in percent.

    >>> percent(0.7613), percent(None)
    ('76.1%', 'none')
    """
    return "none" if value is None else f"{100 * value:.{digits}f}%"


def interval(low: float | None, high: float | None, digits: int = 1) -> str:
    """Return the ends of an interval in percent, or say that they are not known.

    >>> interval(0.757, 0.765), interval(None, None)
    ('[75.7, 76.5]', '[interval not known]')
    """
    if low is None or high is None or math.isnan(low) or math.isnan(high):
        return "[interval not known]"
    return f"[{100 * low:.{digits}f}, {100 * high:.{digits}f}]"


def number(estimate: Estimate, unit: str = "percent") -> str:
    """Return a number alone, in percent or as a difference in points.

    >>> number(Estimate(0.02, 0.01, 0.03, n=100), "points")
    '+2.0 points'
    """
    return f"{100 * estimate.value:+.1f} points" if unit == "points" else percent(estimate.value)


def certainty(estimate: Estimate) -> str:
    """Return what belongs to every number: its interval and n, also where these are not known.

    >>> certainty(Estimate(0.761, 0.757, 0.765, n=50_000))
    '[75.7, 76.5], n = 50,000'
    """
    n = f"n = {estimate.n:,}" if estimate.n else "n not known"
    return f"{interval(estimate.low, estimate.high)}, {n}"


def shown(estimate: Estimate, unit: str = "percent") -> str:
    """Return a number with its interval and n.

    >>> shown(Estimate(0.02, 0.01, 0.03, n=0), "points")
    '+2.0 points [1.0, 3.0], n not known'
    """
    return f"{number(estimate, unit)} {certainty(estimate)}"
