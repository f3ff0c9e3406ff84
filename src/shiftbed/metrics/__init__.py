"""Pure functions from predictions to numbers with intervals."""

from __future__ import annotations

from shiftbed.metrics.estimate import Estimate, clopper_pearson, proportion

__all__ = ["Estimate", "clopper_pearson", "proportion"]
