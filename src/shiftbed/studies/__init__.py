"""Questions asked of many cells: baselines, effective robustness, correlations, hypotheses."""

from __future__ import annotations

from shiftbed.studies.baseline import (
    BaselineFit,
    fit_baseline,
    fit_baselines,
    shipped_baseline,
)
from shiftbed.studies.grid import Grid
from shiftbed.studies.robustness import (
    effective_robustness,
    effective_robustness_of,
    effective_robustness_table,
    relative_robustness_table,
)

__all__ = [
    "BaselineFit",
    "Grid",
    "effective_robustness",
    "effective_robustness_of",
    "effective_robustness_table",
    "fit_baseline",
    "fit_baselines",
    "relative_robustness_table",
    "shipped_baseline",
]
