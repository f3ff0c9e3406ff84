"""Predictions on disk, and questions over them."""

from __future__ import annotations

from shiftbed.results._results import Results
from shiftbed.results.answers import answers
from shiftbed.results.exporting import export
from shiftbed.results.imported import Imported, import_results
from shiftbed.results.manifest import Counts, Identity, Manifest
from shiftbed.results.store import Store
from shiftbed.results.upkeep import Fault, collect_garbage, verify

__all__ = [
    "Counts",
    "Fault",
    "Identity",
    "Imported",
    "Manifest",
    "Results",
    "Store",
    "answers",
    "collect_garbage",
    "export",
    "import_results",
    "verify",
]
