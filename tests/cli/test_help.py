"""Every command has a help that ends in examples, and these are lines that the commands take."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any

import pytest
from typer.main import get_command

from shiftbed.cli import app


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    inner = getattr(command, "commands", None)
    if inner is None:
        yield path
    else:
        for name, one in inner.items():
            yield from commands(one, (*path, name))


@pytest.mark.parametrize("path", sorted(commands(get_command(app))), ids=" ".join)
def test_examples_are_taken_by_the_commands_they_are_of(path: tuple[str, ...]) -> None:
    command = get_command(app)
    for name in path:
        command = command.commands[name]
    assert command.help, "a command says what it does"
    heading, *lines = (command.epilog or "").split("\n\n")
    assert heading == "For example:"
    assert lines
    for line in lines:
        program, *words = shlex.split(line)
        assert program == "shiftbed"
        assert tuple(words[: len(path)]) == path
        command.make_context(line, words[len(path) :])  # refuses unknown options and values
