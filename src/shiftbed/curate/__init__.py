"""Curation: from a heap of pictures to the few that fool a classifier, and to a set of them."""

from __future__ import annotations

from shiftbed.curate.shortlist import Answer, Entry, Shortlist, Step

__all__ = ["Answer", "Entry", "Shortlist", "Step"]
