"""Predictions on disk, and questions over them."""

from __future__ import annotations

from shiftbed.results._results import Results
from shiftbed.results.answers import answers
from shiftbed.results.manifest import Counts, Identity, Manifest
from shiftbed.results.store import Store

__all__ = ["Counts", "Identity", "Manifest", "Results", "Store", "answers"]
