"""A little of the fuzzing that `make fuzz` does by the million, the same on every run."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest
from fuzz import mutations
from targets import TARGETS


@pytest.mark.parametrize("name", TARGETS)
def test_any_bytes_are_taken_or_refused_in_a_sentence(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    target = TARGETS[name]
    cases = mutations(target.seeds(), target.words, seed=99)
    for content in islice(cases, round(150 * target.weight) + 10):
        target(content, folder)


def test_a_broken_promise_would_be_found() -> None:
    cases = islice(mutations([b"{a}"], ("{", "}"), seed=0), 3_000)
    assert any(content.startswith(b"{{") for content in cases)
