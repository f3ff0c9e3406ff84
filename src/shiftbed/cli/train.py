"""shiftbed train: networks to evaluate, and networks to augment with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from shiftbed.cli._app import app, examples
from shiftbed.cli._config import Config
from shiftbed.cli._options import Seed
from shiftbed.cli._progress import progress, resumable
from shiftbed.errors import InputError, MissingExtraError

train = typer.Typer(
    no_args_is_help=True, help="Train networks by the papers' recipes, and what augments pictures."
)
app.add_typer(train, name="train")


@train.command("list", epilog=examples("shiftbed train list augmix"))
def list_(
    recipe: Annotated[
        str | None, typer.Argument(help="Show all that this recipe says; a name or a .toml file.")
    ] = None,
) -> None:
    """List the recipes and architectures that come with the package."""
    from shiftbed._tables import add, grid, print_parts
    from shiftbed.models.architectures import FAMILIES
    from shiftbed.train import read_recipe, recipes

    if recipe is not None:
        from dataclasses import asdict

        table = grid(recipe, ["key", "value"])
        for key, value in asdict(read_recipe(recipe)).items():
            add(table, key, "none" if value is None else str(value))
        print_parts([table])
        return
    table = grid("recipes", ["name", "what"])
    for name, about in recipes().items():
        add(table, name, about)
    networks = grid("architectures", ["like", "what"])
    for family in FAMILIES.values():
        add(networks, family.example, family.about)
    print_parts([table, networks, "timm:NAME, torchvision:NAME and python:MODULE:FACTORY too."])


@train.command(
    "run",
    epilog=examples("shiftbed train run augmix --data photos --architecture resnet18 -o trained"),
)
def run(
    recipe: Annotated[
        str, typer.Argument(help="A recipe by its name (`shiftbed train list`), or a .toml file.")
    ],
    data: Annotated[
        str,
        typer.Option(
            "--data",
            metavar="SET",
            help="Labelled pictures: a folder with one folder per class, a table, an .npz file, "
            "or a known set.",
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="A new folder, or one to go on with.")
    ],
    test: Annotated[
        str | None, typer.Option("--test", metavar="SET", help="Scored after each pass.")
    ] = None,
    architecture: Annotated[
        str | None,
        typer.Option("--architecture", "-a", help="resnet20, timm:seresnet50, ... (see list)."),
    ] = None,
    epochs: Annotated[int | None, typer.Option("--epochs", help="Passes over the set.")] = None,
    start: Annotated[
        str | None,
        typer.Option("--start", help="Weights to go on from: a checkpoint or a training's folder."),
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Of all draws.")] = None,
    value: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="Change what the recipe says; more than one may do."
        ),
    ] = None,
    device: Annotated[
        str, typer.Option("--device", help="auto (what Accelerate finds) or cpu.")
    ] = "auto",
    workers: Annotated[
        int, typer.Option("--workers", "-j", help="Processes that prepare pictures.")
    ] = 0,
    minutes: Annotated[
        float, typer.Option("--save-every", help="Minutes between checkpoints within a pass.")
    ] = 5.0,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
    config: Config = None,
) -> None:
    """Train a network, and leave its weights and its run card in a folder.

    Run the same command again after an interruption: it goes on, and ends with the same bits.
    On several GPUs or machines: `torchrun ... -m shiftbed train run ...`, or `accelerate launch`.
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TimeRemainingColumn

    from shiftbed.train import train as train_network

    changes = _changes(value)
    for key, given in (
        ("architecture", architecture),
        ("epochs", epochs),
        ("start", start),
        ("seed", seed),
    ):
        if given is not None:
            changes[key] = given
    console = Console(stderr=True)
    bar = Progress(
        "{task.description}",
        BarColumn(bar_width=30),
        "[progress.percentage]{task.percentage:>3.0f}%",
        TimeRemainingColumn(compact=True),
        console=console,
        disable=quiet or not console.is_terminal,
        transient=True,
    )
    task = bar.add_task(recipe, total=None)
    with resumable(output), bar:
        card = train_network(
            recipe,
            data,
            output,
            test=test,
            device=device,
            workers=workers,
            minutes=minutes,
            watch=lambda told: bar.update(
                task,
                total=told.steps,
                completed=told.step,
                description=f"pass {told.epoch} loss {told.loss:.3f}",
            ),
            **changes,
        )
    last = card.history[-1]
    tested = "" if card.accuracy is None else f", {card.accuracy:.2%} on {card.data['test']}"
    print(
        f"{len(card.history)} passes over {card.data['pictures']:,} pictures: loss "
        f"{last['loss']:.4f}, {last['accuracy']:.2%} in training{tested}"
    )
    print(f"{output} holds it; evaluate it as trained:{output}")


@train.command(
    "autoencoder", epilog=examples("shiftbed train autoencoder photos -o autoencoder.safetensors")
)
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


def _changes(given: list[str] | None) -> dict[str, Any]:
    """Return KEY=VALUE pairs as a dictionary.

    >>> _changes(["rate=0.05", "mirror=no"])
    {'rate': '0.05', 'mirror': 'no'}
    """
    changes: dict[str, Any] = {}
    for pair in given or ():
        key, equals, value = pair.partition("=")
        if not (key and equals and value):
            raise InputError(f"--set {pair} is not KEY=VALUE, as in rate=0.05")
        changes[key.strip()] = value.strip()
    return changes
