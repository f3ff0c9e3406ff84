"""Options that several commands about corruptions share."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from shiftbed.errors import InputError

Variant = Annotated[
    str,
    typer.Option(
        "--variant",
        help="Whose parameters: imagenet-c, imagenet-299, tiny-imagenet-c, cifar-c or mnist-c.",
    ),
]
Seed = Annotated[int, typer.Option("--seed", help="Of the random draws.")]
Option = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        metavar="NAME=VALUE",
        help="Goes to the corruptions that take it: textures=FOLDER (frost), matrix=FILE.npy "
        "(pessimal_noise). Repeatable.",
    ),
]


def as_options(given: list[str] | None) -> dict[str, Any]:
    """Return NAME=VALUE pairs as a dictionary.

    >>> as_options(["textures=photos/frost"])
    {'textures': 'photos/frost'}
    """
    options = {}
    for pair in given or ():
        name, equals, value = pair.partition("=")
        if not (name and equals and value):
            raise InputError(f"--option {pair} is not NAME=VALUE, as in textures=FOLDER")
        options[name] = value
    return options
