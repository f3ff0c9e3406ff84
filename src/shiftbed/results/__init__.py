"""Predictions on disk, and questions over them."""

from __future__ import annotations

from shiftbed.results._results import Results

__all__ = ["Results"]
