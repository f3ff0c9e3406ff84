"""shiftbed list: what there is to name in the other commands."""

from __future__ import annotations

import json
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Annotated

import typer

from shiftbed.cli._app import app, examples
from shiftbed.cli._options import Variant
from shiftbed.cli._rows import show_facts, show_rows
from shiftbed.errors import unknown

if TYPE_CHECKING:
    from shiftbed.data import SetInfo

list_app = typer.Typer(no_args_is_help=True, help="Show what there is to name.")
app.add_typer(list_app, name="list")

Json = Annotated[bool, typer.Option("--json", help="As JSON.")]


@list_app.command("corruptions", epilog=examples("shiftbed list corruptions --variant mnist-c"))
def corruptions(variant: Variant = "imagenet-c", as_json: Json = False) -> None:
    """Show a benchmark's corruptions: main list, extra ones, and others beside them."""
    from shiftbed.corruptions import corruption_names
    from shiftbed.corruptions import corruptions as known

    corruption_names(variant)  # refuses an unknown variant
    show_rows(
        [
            {
                "corruption": spec.name,
                "family": spec.family,
                "benchmark": spec.standing,
                "severities": list(spec.severities),
                "standard": spec.standard,
                "random": spec.random,
            }
            for spec in known(variant)
        ],
        as_json,
    )


@list_app.command("attacks", epilog=examples("shiftbed list attacks"))
def attacks(as_json: Json = False) -> None:
    """Show the published attacks; any other radius may be named, as in pgd.linf.8."""
    from shiftbed.attacks import published

    show_rows(
        [
            {"attack": str(one), "steps": one.gradients, "step / radius": one.step}
            for one in published()
        ],
        as_json,
    )


@list_app.command("augmentations", epilog=examples("shiftbed list augmentations"))
def augmentations(as_json: Json = False) -> None:
    """Show the augmentations and their options, for `shiftbed augment` and for recipes."""
    import dataclasses

    from shiftbed.augment import augmentations as known

    show_rows(
        [
            {
                "augmentation": name,
                "options": ", ".join(
                    field.name for field in dataclasses.fields(kind) if field.name != "seed"
                ),
                "about": (kind.__doc__ or "").partition("\n")[0],
            }
            for name, kind in known().items()
        ],
        as_json,
    )


@list_app.command("sets", epilog=examples("shiftbed list sets 'imagenet*'"))
def sets(
    pattern: Annotated[
        str | None,
        typer.Argument(help="A name, or as in 'imagenet-*': all that is known of these sets."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Show the image sets that are known by name, and which of them are on this machine.

    'fetch': the first use or `shiftbed fetch` brings it; 'by hand': a person has to. With a
    name, also its licence, its source, its clean counterpart and how to have it.
    """
    from shiftbed.data import list_sets

    infos = list_sets()
    if pattern is not None:
        names = [info.name for info in infos]
        infos = [info for info in infos if fnmatchcase(info.name, pattern)]
        if not infos:
            raise unknown("image set", pattern, names)
    if as_json:
        print(json.dumps([_facts(info) for info in infos], indent=1))
    elif pattern is not None:
        show_facts([_facts(info) for info in infos])
    else:
        show_rows(
            [
                {
                    "set": f"{info.family}.*" if info.family else info.name,
                    "about": info.card.about,
                    "state": info.state,
                }
                for info in _one_of_each_family(infos)
            ]
        )


@list_app.command("suites", epilog=examples("shiftbed list suites"))
def suites(as_json: Json = False) -> None:
    """Show the suites, for `shiftbed eval --suite` and `shiftbed make`."""
    from shiftbed.settings import list_suites

    show_rows(
        [
            {
                "suite": one.name,
                "about": one.about,
                "score": one.score,
                "set": one.images or "yours",
            }
            for one in list_suites()
        ],
        as_json,
    )


@list_app.command("settings", epilog=examples("shiftbed list settings --ready"))
def settings(
    patterns: Annotated[
        list[str] | None,
        typer.Argument(help="A suite, or as in 'imagenet-photos+{fog,snow}.*'; the known sets'."),
    ] = None,
    state: Annotated[
        bool, typer.Option("--state", help="Say which are ready, by a column beside the names.")
    ] = False,
    ready: Annotated[
        bool, typer.Option("--ready", help="Only those whose pictures are on this machine.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show the names of settings, one per line."""
    from shiftbed.settings import list_settings, states_of

    names = list_settings(patterns) if patterns else list_settings()
    states = states_of(names) if state or ready else {}
    if ready:
        names = [name for name in names if states[name] == "ready"]
    if state:
        show_rows([{"setting": name, "state": states[name]} for name in names], as_json)
    else:
        _lines(names, as_json)


@list_app.command("models", epilog=examples("shiftbed list models 'timm:resnet*'"))
def models(
    pattern: Annotated[
        str | None,
        typer.Argument(help="As in resnet, timm:*a1_in1k or package:*; all, unless said."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Show the specs of models that can be listed, one per line."""
    from shiftbed.models import list_models

    _lines(list_models(pattern), as_json)


def _one_of_each_family(infos: list[SetInfo]) -> list[SetInfo]:
    return list({info.family or info.name: info for info in infos}.values())


def _facts(info: SetInfo) -> dict[str, object]:
    card = info.card
    return {
        "set": info.name,
        "about": card.about,
        "state": info.state,
        "variant": card.variant,
        "score": card.score,
        "clean": card.clean,
        "usual": card.usual,
        "suites": list(info.suites),
        "licence": card.licence,
        "citation": card.citation,
        "how to have it": "" if info.state == "ready" else info.missing,
    }


def _lines(names: list[str], as_json: bool) -> None:
    print(json.dumps(names, indent=1) if as_json else "\n".join(names))
