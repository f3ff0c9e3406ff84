"""Questions asked of many cells: baselines, effective robustness, correlations, hypotheses."""

from __future__ import annotations

from shiftbed.studies.baseline import (
    BaselineFit,
    baseline_for,
    fit_baseline,
    fit_baselines,
    shipped_baseline,
)
from shiftbed.studies.compare import compare, compare_corruptions, worse
from shiftbed.studies.correlate import (
    correlation,
    correlations,
    synthetic_against_natural,
    synthetic_averages,
)
from shiftbed.studies.grid import Grid
from shiftbed.studies.hypotheses import Declaration, Finding, declaration, judge, many_faces_grid
from shiftbed.studies.robustness import (
    effective_robustness,
    effective_robustness_of,
    effective_robustness_table,
    made_from,
    placed,
    relative_robustness_table,
)
from shiftbed.studies.scoring import score, score_of_cell
from shiftbed.studies.shifts import chosen_shifts, clean_of, natural_shifts

__all__ = [
    "BaselineFit",
    "Declaration",
    "Finding",
    "Grid",
    "baseline_for",
    "chosen_shifts",
    "clean_of",
    "compare",
    "compare_corruptions",
    "correlation",
    "correlations",
    "declaration",
    "effective_robustness",
    "effective_robustness_of",
    "effective_robustness_table",
    "fit_baseline",
    "fit_baselines",
    "judge",
    "made_from",
    "many_faces_grid",
    "natural_shifts",
    "placed",
    "relative_robustness_table",
    "score",
    "score_of_cell",
    "shipped_baseline",
    "synthetic_against_natural",
    "synthetic_averages",
    "worse",
]
