"""shiftbed corrupt: a photo under one corruption, or under all of them on a contact sheet."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from shiftbed.cli._app import app, examples
from shiftbed.cli._options import Option, Seed, Variant, as_options
from shiftbed.errors import InputError


@app.command(
    "corrupt",
    epilog=examples(
        "shiftbed corrupt photo.jpg fog --severity 3 -o foggy.png",
        "shiftbed corrupt photo.jpg --all -o sheet.png",
    ),
)
def corrupt(
    photo: Annotated[Path, typer.Argument(help="A picture file.")],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="Ends in .png or .webp (lossless) or .jpg (85)."),
    ],
    name: Annotated[
        str | None, typer.Argument(help="A corruption; see `shiftbed list corruptions`.")
    ] = None,
    severity: Annotated[
        int | None,
        typer.Option(
            "--severity", "-s", help="From 1; unless said, the benchmark's own (MNIST-C)."
        ),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Draw a contact sheet of all corruptions.")
    ] = False,
    variant: Variant = "imagenet-c",
    seed: Seed = 0,
    key: Annotated[
        str | None,
        typer.Option("--key", help="Names the random draws; unless said, the file's name."),
    ] = None,
    option: Option = None,
    cell: Annotated[
        int | None, typer.Option("--cell", help="With --all: the side of a cell in pixels.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", "-f", help="Replace the output file.")] = False,
) -> None:
    """Corrupt a photo: shiftbed corrupt photo.jpg fog --severity 3 -o foggy.png.

    The photo keeps its size and is turned as its EXIF orientation says; a grey one stays grey,
    and any other is read as RGB, without its transparency. With --all, its central square is
    drawn at the benchmark's size under every corruption and severity.
    """
    from shiftbed.corruptions import corrupt as corrupted
    from shiftbed.corruptions.sheet import contact_sheet
    from shiftbed.corruptions.stored import save, writable

    options = as_options(option)
    if everything == (name is not None):
        raise InputError(
            "name one corruption, as in `shiftbed corrupt photo.jpg fog -s 3 -o out.png`, or "
            "draw all of them with --all"
        )
    if everything and severity is not None:
        raise InputError("--all draws every severity; leave --severity out")
    writable(output, replace=force)
    picture = _read(photo)
    key = photo.name if key is None else key
    if name is None:
        sheet = contact_sheet(
            picture,
            variant=variant,
            title=photo.name,
            seed=seed,
            key=key,
            cell=cell,
            options=options,
        )
        save(sheet, output, replace=force)
    else:
        result = corrupted(picture, name, severity, variant=variant, seed=seed, key=key, **options)
        save(result, output, replace=force)
    print(f"wrote {output}")


def _read(photo: Path) -> Any:
    """Return a photo as an array: grey if its file is, RGB otherwise."""
    from PIL import Image

    from shiftbed.data import UnreadablePicture
    from shiftbed.data.pictures import read_picture

    if not photo.is_file():
        what = "is a folder" if photo.is_dir() else "does not exist"
        raise InputError(f"{photo} {what}; expected a picture file")
    try:
        picture = read_picture(photo, orient=True)
    except UnreadablePicture as problem:
        raise InputError(f"cannot read {photo}: {problem.reason}") from None
    with Image.open(photo) as image:
        return picture[..., 0] if image.mode in ("1", "L", "LA") else picture
