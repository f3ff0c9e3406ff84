"""Results to look at: one self-contained page, and figures for papers."""

from __future__ import annotations

from shiftbed.report.figures import plot_curves, plot_matrix, plot_reliability, plot_scatter
from shiftbed.report.page import write_report

__all__ = ["plot_curves", "plot_matrix", "plot_reliability", "plot_scatter", "write_report"]
