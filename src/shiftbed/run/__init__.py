"""From a grid of models and settings to results: plan, units of work, engine."""

from __future__ import annotations

from shiftbed.run.local import COMPUTE_BATCH, Progress, execute
from shiftbed.run.plan import SLICE, Cell, Plan, Unit, make_plan
from shiftbed.run.sample import limited

__all__ = [
    "COMPUTE_BATCH",
    "SLICE",
    "Cell",
    "Plan",
    "Progress",
    "Unit",
    "execute",
    "limited",
    "make_plan",
]
