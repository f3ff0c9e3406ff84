"""shiftbed eval: models on settings, every prediction kept."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from shiftbed.cli._app import app, examples
from shiftbed.cli._config import Config
from shiftbed.cli._options import Classes, ClassMap, Combine, Interpolation, Mean, Resize, Size, Std
from shiftbed.cli._progress import resumable

_HOW = "How the models compute"
_RUN = "The run"


@app.command(
    "eval",
    epilog=examples(
        "shiftbed eval --model onnx:mine.onnx --data photos --suite imagenet-c -o results",
        "shiftbed eval --model timm:resnet50.a1_in1k --setting 'imagenet-{a,r}' -o results",
        "shiftbed eval --model onnx:new.onnx --baseline onnx:last.onnx --data photos -s '+fog.*'",
    ),
)
def evaluate(
    model: Annotated[
        list[str],
        typer.Option(
            "--model",
            "-m",
            help="A spec (timm:resnet50.a1_in1k, torchvision:resnet18, onnx:net.onnx, "
            "python:module:factory, ...), a wildcard, or @FILE with one per line. NAME=SPEC "
            "names it. Repeatable.",
        ),
    ],
    data: Annotated[
        list[str] | None,
        typer.Option(
            "--data",
            "-d",
            help="An image set: a folder with one folder per class, a table, arrays, shards, "
            "hf:NAME:SPLIT, or a known set. NAME=PATH names it. Repeatable.",
        ),
    ] = None,
    suite: Annotated[
        list[str] | None,
        typer.Option("--suite", help="A suite, as imagenet-c or mnist-c. Repeatable."),
    ] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option(
            "--setting",
            "-s",
            help="Settings, with braces and wildcards: 'mnist-test+{clean,fog}', '+blur*.3'.",
        ),
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="The results directory.")] = Path(
        "results"
    ),
    baseline: Annotated[
        str | None,
        typer.Option("--baseline", "-b", help="The model (a spec or a name) that mCE divides by."),
    ] = None,
    class_map: ClassMap = None,
    combine: Combine = "max",
    seed: Annotated[
        int, typer.Option("--seed", help="Of the corruptions and the sample.", rich_help_panel=_RUN)
    ] = 0,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit", help="At most so many pictures, evenly over classes.", rich_help_panel=_RUN
        ),
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option("--keep", help="'logits': keep them too.", rich_help_panel=_RUN),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            "--workers", "-j", help="Threads that prepare pictures.", rich_help_panel=_RUN
        ),
    ] = None,
    batch_size: Annotated[
        int,
        typer.Option("--batch-size", help="Pictures prepared at a time.", rich_help_panel=_RUN),
    ] = 32,
    engine: Annotated[
        str,
        typer.Option(
            "--engine",
            help="local: threads of this process; ray: the workers of a Ray cluster.",
            rich_help_panel=_RUN,
        ),
    ] = "local",
    address: Annotated[
        str | None,
        typer.Option(
            "--address",
            help="Of the Ray cluster, as HOST:6379 or auto; unless said, one is started here.",
            rich_help_panel=_RUN,
        ),
    ] = None,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict",
            help="Stop at a picture that cannot be read, instead of leaving it out.",
            rich_help_panel=_RUN,
        ),
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Say what would be done and what it costs.", rich_help_panel=_RUN
        ),
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="No progress, no tables.", rich_help_panel=_RUN)
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="The numbers as JSON.", rich_help_panel=_RUN)
    ] = False,
    device: Annotated[
        str | None, typer.Option("--device", help="cpu, cuda, cuda:1, ...", rich_help_panel=_HOW)
    ] = None,
    dtype: Annotated[
        str | None,
        typer.Option("--dtype", help="float32, bfloat16, float16.", rich_help_panel=_HOW),
    ] = None,
    backend: Annotated[
        str | None,
        typer.Option(
            "--backend",
            help="torch; onnxruntime or openvino: the same precision, faster on most CPUs.",
            rich_help_panel=_HOW,
        ),
    ] = None,
    compiled: Annotated[
        bool | None,
        typer.Option("--compile", help="torch.compile the models.", rich_help_panel=_HOW),
    ] = None,
    size: Size = None,
    resize: Resize = None,
    interpolation: Interpolation = None,
    mean: Mean = None,
    std: Std = None,
    classes: Classes = None,
    config: Config = None,
) -> None:
    """Evaluate models on settings and keep every prediction.

    Run the same command again after an interruption: it does what is missing.
    """
    from rich.console import Console

    from shiftbed import evaluation

    asked: dict[str, Any] = {
        "models": model,
        "settings": [*(suite or []), *(setting or [])] or None,
        "data": data,
        "results": output,
        "baseline": baseline,
        "seed": seed,
        "limit": limit,
        "keep": keep or (),
        "class_map": class_map,
        "combine": combine,
        "backend": backend,
        "device": device,
        "dtype": dtype,
        "compile": compiled,
        "size": size,
        "resize": resize,
        "interpolation": interpolation,
        "mean": mean,
        "std": std,
        "classes": classes,
    }
    if dry_run:
        plan, _ = evaluation.prepare(**asked)
        print(evaluation.described(plan, workers, as_json=as_json))
        return
    with resumable(output):
        run = evaluation.evaluate(
            **asked,
            workers=workers,
            batch_size=batch_size,
            engine=engine,
            address=address,
            strict=strict,
            quiet=quiet or as_json,
        )
    if as_json:
        print(evaluation.as_json(run))
    elif not quiet:
        console = Console()
        evaluation.show(run, console)
        shown = "".join(f" --data {shlex.quote(one)}" for one in data or ())
        said = f"To look at it: shiftbed report {shlex.quote(str(output))}{shown}"
        console.print(said, highlight=False, markup=False)
