"""The main job: any models on any settings, once, with every prediction kept."""

from __future__ import annotations

from shiftbed.evaluation.job import Evaluation, evaluate, prepare
from shiftbed.evaluation.preparation import Alternative, Preparation, check_preparation
from shiftbed.evaluation.report import as_json, described
from shiftbed.evaluation.summary import Score, scores
from shiftbed.evaluation.tables import accuracy_tables, print_table, show, show_results

__all__ = [
    "Alternative",
    "Evaluation",
    "Preparation",
    "Score",
    "accuracy_tables",
    "as_json",
    "check_preparation",
    "described",
    "evaluate",
    "prepare",
    "print_table",
    "scores",
    "show",
    "show_results",
]
