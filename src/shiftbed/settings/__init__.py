"""Settings: what models are shown. Their names, the catalogue and the suites."""

from __future__ import annotations

from shiftbed.settings.grammar import expand_braces
from shiftbed.settings.resolve import DataLike, given_sets, list_settings, resolve, states_of
from shiftbed.settings.setting import Setting, Shift, own_or
from shiftbed.settings.suites import Suite, add_suite, list_suites, suite

__all__ = [
    "DataLike",
    "Setting",
    "Shift",
    "Suite",
    "add_suite",
    "expand_braces",
    "given_sets",
    "list_settings",
    "list_suites",
    "own_or",
    "resolve",
    "states_of",
    "suite",
]
