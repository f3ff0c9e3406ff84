"""Corruptions are the same to the byte wherever they are made."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

spec = importlib.util.spec_from_file_location("digests", Path(__file__).with_name("digests.py"))
assert spec is not None
assert spec.loader is not None
digests = importlib.util.module_from_spec(spec)
spec.loader.exec_module(digests)


def test_pixels_are_those_on_record() -> None:
    known = json.loads(digests.DIGESTS.read_text())
    found = {name: digests.digest(pixels) for name, pixels in digests.corrupted()}
    assert found == known
