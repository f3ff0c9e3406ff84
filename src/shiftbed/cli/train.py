"""shiftbed train: networks to evaluate, and networks to augment with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from shiftbed.cli._app import app
from shiftbed.cli._options import Seed
from shiftbed.errors import InputError, MissingExtraError

train = typer.Typer(no_args_is_help=True, help="Train networks.")
app.add_typer(train, name="train")


@train.command("autoencoder")
def autoencoder(
    images: Annotated[
        str, typer.Argument(metavar="SET", help="A folder of pictures, or a known set.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Ends in .safetensors.")],
    steps: Annotated[int, typer.Option("--steps", help="Batches of 16 patches.")] = 1500,
    seed: Seed = 0,
    force: Annotated[bool, typer.Option("--force", "-f", help="Replace the output file.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Train a small autoencoder for DeepAugment, on any pictures, in minutes.

    Use it with `shiftbed augment SET deepaugment --option network=autoencoder
    --option weights=FILE.safetensors -o DIR`.
    """
    from shiftbed.cli._progress import progress
    from shiftbed.data import open_set

    if output.suffix != ".safetensors":
        raise InputError(f"{output} does not end in .safetensors; name a file that does")
    if not output.parent.is_dir():
        raise InputError(f"there is no folder {output.parent}; make it first")
    if output.exists() and not force:
        raise InputError(f"{output} exists already; name another, or replace it with --force")
    try:
        from shiftbed.augment.deep.training import save, train_autoencoder
    except ImportError:
        raise MissingExtraError("training", "torch") from None
    pictures = open_set(images)
    with progress("steps", steps, quiet) as watch:
        trained = train_autoencoder(pictures, steps=steps, seed=seed, watch=watch)
    save(trained.network, output)
    print(
        f"wrote {output}: trained on {trained.pictures:,} pictures; {trained.psnr:.1f} dB on others"
    )
