"""shiftbed curate: from a heap of pictures to the few that fool a classifier."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shiftbed.cli._app import app, examples
from shiftbed.cli._options import ClassMap, Combine
from shiftbed.cli._progress import resumable

if TYPE_CHECKING:
    from shiftbed.curate import Shortlist

curate = typer.Typer(
    no_args_is_help=True,
    help="From a heap of pictures to those that fool a classifier: filter, review, export.",
)
app.add_typer(curate, name="curate")

Directory = Annotated[Path, typer.Argument(metavar="DIR", help="A curation's directory.")]
Heap = Annotated[
    str,
    typer.Argument(
        metavar="CANDIDATES",
        help="A folder with one folder per class, or a table (CSV, Parquet) of paths and labels.",
    ),
]
Models = Annotated[
    list[str],
    typer.Option("--model", "-m", help="A filter model: a spec, or NAME=SPEC. Repeatable."),
]
Output = Annotated[
    Path, typer.Option("--output", "-o", help="A new directory, or one to go on with.")
]
Name = Annotated[str | None, typer.Option("--name", help="What the new set will be called.")]
Against = Annotated[
    list[str] | None,
    typer.Option(
        "--against",
        help="A set, as the training set, of which no near-duplicate may be kept. Repeatable.",
    ),
]
PerConfusion = Annotated[
    int, typer.Option("--per-confusion", help="Of each (class, predicted class) at most so many.")
]
Near = Annotated[
    int, typer.Option("--near", help="Near-duplicates differ in so many of 256 signs, or fewer.")
]
Backend = Annotated[
    str | None,
    typer.Option("--backend", help="onnxruntime or openvino: torch networks, faster on most CPUs."),
]
Device = Annotated[str | None, typer.Option("--device", help="cpu, cuda, cuda:1, ...")]
Workers = Annotated[int | None, typer.Option("--workers", "-j", help="Threads that read pictures.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no tables.")]


@curate.command(
    "hard", epilog=examples("shiftbed curate hard heap --model onnx:mine.onnx -o curation")
)
def hard(
    heap: Heap,
    model: Models,
    output: Output,
    name: Name = None,
    classes: Annotated[
        str | None,
        typer.Option(
            "--classes",
            help="Those told apart: imagenet-a, imagenet-1k, ..., or a file with one in a line; "
            "the candidates' labels, unless said.",
        ),
    ] = None,
    class_map: ClassMap = None,
    combine: Combine = "max",
    against: Against = None,
    max_confidence: Annotated[
        float,
        typer.Option(
            "--max-confidence", help="A picture whose class gets more from a model is dropped."
        ),
    ] = 0.15,
    crops: Annotated[
        int, typer.Option("--crops", help="Of each picture: 1, 5 or 10; any right one drops it.")
    ] = 10,
    per_confusion: PerConfusion = 15,
    near: Near = 12,
    backend: Backend = None,
    device: Device = None,
    workers: Workers = None,
    quiet: Quiet = False,
) -> None:
    """Find the pictures that every model has wrong, as ImageNet-A was made.

    Run the same command again after an interruption: it does what is missing. With other
    thresholds it ranks anew without computing anything again.
    """
    from shiftbed.curate import hard as find

    asked: dict[str, Any] = {
        "name": name,
        "classes": classes,
        "class_map": class_map,
        "combine": combine,
        "against": against or (),
        "max_confidence": max_confidence,
        "crops": crops,
        "per_confusion": per_confusion,
        "near": near,
        "backend": backend,
        "workers": workers,
    }
    if device is not None:
        asked["device"] = device
    with _progress(output, quiet) as watch:
        found = find(heap, model, output, watch=watch, **asked)
    _close(found, quiet)


@curate.command(
    "anomalies",
    epilog=examples(
        "shiftbed curate anomalies heap --model onnx:mine.onnx --usual photos -o curation"
    ),
)
def anomalies(
    heap: Heap,
    model: Models,
    output: Output,
    usual: Annotated[
        str,
        typer.Option(
            "--usual", help="The labelled set whose classes are known, and whose pictures usual."
        ),
    ],
    name: Name = None,
    class_map: ClassMap = None,
    combine: Combine = "max",
    exclude: Annotated[
        list[str] | None,
        typer.Option(
            "--exclude",
            help="More classes to leave out: a name, a file with one in a line, or a published "
            "list (imagenet-1k). Repeatable.",
        ),
    ] = None,
    against: Against = None,
    min_confidence: Annotated[
        float,
        typer.Option("--min-confidence", help="So sure every model must be, or the picture goes."),
    ] = 0.5,
    per_confusion: PerConfusion = 15,
    near: Near = 12,
    backend: Backend = None,
    device: Device = None,
    workers: Workers = None,
    quiet: Quiet = False,
) -> None:
    """Find pictures of no known class that every model is sure of, as ImageNet-O was made.

    Candidates of a known class, by WordNet id or name, are left out and reported.
    """
    from shiftbed.curate import anomalies as find

    asked: dict[str, Any] = {
        "usual": usual,
        "name": name,
        "class_map": class_map,
        "combine": combine,
        "exclude": exclude or (),
        "against": against or (),
        "min_confidence": min_confidence,
        "per_confusion": per_confusion,
        "near": near,
        "backend": backend,
        "workers": workers,
    }
    if device is not None:
        asked["device"] = device
    with _progress(output, quiet) as watch:
        found = find(heap, model, output, watch=watch, **asked)
    _close(found, quiet)


@curate.command("show", epilog=examples("shiftbed curate show curation"))
def show(
    directory: Directory,
    everything: Annotated[bool, typer.Option("--all", help="Every class and confusion.")] = False,
    fate: Annotated[
        str | None,
        typer.Option(
            "--fate",
            help="Instead, list candidates that ended so: unreadable, duplicate, 'two labels', "
            "'in a reference set', 'in the class space', right, ...",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The funnel as JSON.")] = False,
) -> None:
    """Show the funnel, the confusions, the votes, and what became of candidates."""
    import dataclasses
    import json

    from shiftbed._tables import print_parts
    from shiftbed.curate import Shortlist
    from shiftbed.curate.ledger import Ledger
    from shiftbed.curate.show import parts_of
    from shiftbed.curate.votes import Votes

    shortlist = Shortlist.load(directory)
    if fate is not None:
        with Ledger(directory) as ledger:
            for path, detail in ledger.fallen(fate):
                print(f"{path}\t{detail}" if detail else path)
        return
    votes = Votes(directory)
    if as_json:
        content = {
            "name": shortlist.name,
            "funnel": [dataclasses.asdict(step) for step in shortlist.funnel],
            "confusions": [dataclasses.asdict(one) for one in shortlist.confusions],
            "overlap": shortlist.overlap,
            "agreement": [dataclasses.asdict(one) for one in votes.agreements()],
        }
        print(json.dumps(content, indent=1))
        return
    print_parts(parts_of(shortlist, votes.current(), votes.agreements(), everything=everything))


@curate.command(
    "review", epilog=examples("shiftbed curate review curation --reviewer ann --reviewer bo")
)
def review(
    directory: Directory,
    reviewer: Annotated[
        list[str] | None,
        typer.Option(
            "--reviewer", "-r", help="Who votes. Given twice, two people vote, each blind."
        ),
    ] = None,
    host: Annotated[
        str, typer.Option("--host", help="The address to listen on; this machine's own alone.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", help="Any that is free, unless said.")] = 0,
    open_browser: Annotated[
        bool, typer.Option("--open", help="Open the first reviewer's page.")
    ] = False,
) -> None:
    """Look at a shortlist in the browser, and accept or reject its pictures.

    Prints a link for each reviewer, which opens once. Votes are kept as they are cast.
    """
    from shiftbed.curate.review import serve

    serve(directory, reviewer or ["reviewer"], host=host, port=port, open_browser=open_browser)


@curate.command(
    "export", epilog=examples("shiftbed curate export curation -o photos-a --name photos-a")
)
def export(
    directory: Directory,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="A new folder; in the sets folder, unless said."),
    ] = None,
    name: Name = None,
    rule: Annotated[
        str,
        typer.Option(
            "--rule",
            help="Which are taken: what all reviewers accepted, or any; 'unreviewed': all.",
        ),
    ] = "all",
    link: Annotated[bool, typer.Option("--link", help="Hard links instead of copies.")] = False,
    clean: Annotated[
        str | None, typer.Option("--clean", help="The setting of the matched clean pictures.")
    ] = None,
    licence: Annotated[str, typer.Option("--licence", help="Of the pictures.")] = "",
    citation: Annotated[str, typer.Option("--citation", help="Of the set.")] = "",
) -> None:
    """Make an image set of the accepted pictures, which `shiftbed eval` takes at once."""
    from shiftbed.curate import export as write
    from shiftbed.data import open_set

    how: dict[str, Any] = {"rule": rule, "link": link, "clean": clean}
    folder = write(directory, output, name=name, licence=licence, citation=citation, **how)
    print(f"{folder}: {len(open_set(folder)):,} pictures")
    print(f"evaluate it: shiftbed eval -m SPEC --data {folder}")


@contextmanager
def _progress(output: Path, quiet: bool) -> Iterator[Callable[[int, int, int], None]]:
    """Show how far the filter is; say what to do after Ctrl-C."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    console = Console(stderr=True)
    bar = Progress(
        "pictures",
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeRemainingColumn(compact=True),
        "{task.fields[left]} left over",
        console=console,
        disable=quiet or not console.is_terminal,
        transient=True,
    )
    task = bar.add_task("", total=None, left="0")

    def watch(done: int, total: int, left: int) -> None:
        bar.update(task, completed=done, total=total, left=f"{left:,}")

    with resumable(output), bar:
        yield watch


def _close(found: Shortlist, quiet: bool) -> None:
    if quiet:
        return
    from shiftbed._tables import print_parts
    from shiftbed.curate.show import parts_of

    print_parts(parts_of(found))
    if found.funnel[-1].left:
        print(f"next: shiftbed curate review {found.directory}")
    else:
        print("nothing is left; take more candidates, or let more of them through")
