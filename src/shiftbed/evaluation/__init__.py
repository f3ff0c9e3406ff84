"""The main job: any models on any settings, once, with every prediction kept."""

from __future__ import annotations

from shiftbed.evaluation.job import Evaluation, evaluate, prepare
from shiftbed.evaluation.report import as_json, described
from shiftbed.evaluation.summary import Score, scores
from shiftbed.evaluation.tables import accuracy_tables, print_table, show, show_results

__all__ = [
    "Evaluation",
    "Score",
    "accuracy_tables",
    "as_json",
    "described",
    "evaluate",
    "prepare",
    "print_table",
    "scores",
    "show",
    "show_results",
]
