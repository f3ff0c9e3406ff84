"""From a grid of models and settings to results: plan, units of work, engine."""

from __future__ import annotations

from shiftbed.run.backends import BACKENDS, on_backend
from shiftbed.run.cluster import Recipe, execute_on_ray
from shiftbed.run.cost import Cost, check_models, estimate
from shiftbed.run.local import COMPUTE_BATCH, Progress, Watch, execute
from shiftbed.run.plan import SLICE, Cell, Plan, Unit, make_plan
from shiftbed.run.progress import shown
from shiftbed.run.sample import limited, sample
from shiftbed.run.threads import library_threads

__all__ = [
    "BACKENDS",
    "COMPUTE_BATCH",
    "SLICE",
    "Cell",
    "Cost",
    "Plan",
    "Progress",
    "Recipe",
    "Unit",
    "Watch",
    "check_models",
    "estimate",
    "execute",
    "execute_on_ray",
    "library_threads",
    "limited",
    "make_plan",
    "on_backend",
    "sample",
    "shown",
]
