"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
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
Level = Annotated[float, typer.Option("--level", help="Of the intervals.")]

_LOOK = "What the models see (their own way, unless said)"
Size = Annotated[str | None, typer.Option("--size", help="224, or 224x192.", rich_help_panel=_LOOK)]
Resize = Annotated[
    str | None, typer.Option("--resize", help="The size before the crop.", rich_help_panel=_LOOK)
]
Interpolation = Annotated[
    str | None,
    typer.Option("--interpolation", help="bilinear, bicubic, ...", rich_help_panel=_LOOK),
]
Mean = Annotated[
    str | None, typer.Option("--mean", help="As 0.485/0.456/0.406.", rich_help_panel=_LOOK)
]
Std = Annotated[
    str | None, typer.Option("--std", help="As 0.229/0.224/0.225.", rich_help_panel=_LOOK)
]
Classes = Annotated[
    str | None,
    typer.Option(
        "--classes",
        help="What the outputs mean: imagenet-1k, or a file with one class per line.",
        rich_help_panel=_LOOK,
    ),
]
ClassMap = Annotated[
    Path | None,
    typer.Option("--class-map", help="A file that says which outputs mean which class."),
]
Combine = Annotated[
    str, typer.Option("--combine", help="Several outputs of one class: max, mean or sum.")
]
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
