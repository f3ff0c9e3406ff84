"""Curation: from a heap of pictures to the few that fool a classifier, and to a set of them."""

from __future__ import annotations

from shiftbed.curate.exporting import export
from shiftbed.curate.recipes import anomalies, hard
from shiftbed.curate.shortlist import Answer, Confusion, Entry, Filter, Shortlist, Step

__all__ = [
    "Answer",
    "Confusion",
    "Entry",
    "Filter",
    "Shortlist",
    "Step",
    "anomalies",
    "export",
    "hard",
]
