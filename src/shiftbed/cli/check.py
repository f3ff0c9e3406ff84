"""shiftbed check: is a model shown pictures as it wants them?"""

from __future__ import annotations

from typing import Annotated

import typer

from shiftbed.cli._app import app, examples
from shiftbed.cli._options import Classes, ClassMap, Mean, Resize, Size, Std


@app.command("check", epilog=examples("shiftbed check onnx:mine.onnx --data photos"))
def check(
    model: Annotated[list[str], typer.Argument(metavar="MODEL...", help="Specs, as for eval.")],
    data: Annotated[
        str, typer.Option("--data", "-d", help="Clean labelled pictures of the model's classes.")
    ],
    limit: Annotated[int, typer.Option("--limit", help="At most so many pictures.")] = 200,
    class_map: ClassMap = None,
    classes: Classes = None,
    size: Size = None,
    resize: Resize = None,
    mean: Mean = None,
    std: Std = None,
    device: Annotated[str | None, typer.Option("--device", help="cpu, cuda, ...")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="All that was tried, as JSON.")] = False,
) -> None:
    """Try the usual mistakes on clean pictures: classes, normalisation, channels, crop.

    Exit status 1 if the model is no better than guessing, or does better in another way.
    """
    import dataclasses
    import json

    from shiftbed.data import match_classes, open_set, read_class_map
    from shiftbed.evaluation import check_preparation
    from shiftbed.models import expand, load

    images = open_set(data)
    mapped = None if class_map is None else read_class_map(class_map)
    found = []
    for spec in expand(model):
        loaded = load(
            spec, classes=classes, size=size, resize=resize, mean=mean, std=std, device=device
        )
        space = match_classes(
            images.classes,
            loaded.class_keys,
            loaded.outputs,
            class_map=mapped,
            model=loaded.name,
            images=images.name,
        )
        found.append(check_preparation(loaded, images, space, limit=limit))
        if not as_json:
            one = found[-1]
            for doubt in one.doubts():
                print(doubt)
            if one.sound:
                print(
                    f"{one.model} is right on {one.as_it_is} of {one.images}; none of "
                    f"{len(one.alternatives)} other ways is better"
                )
    if as_json:
        print(
            json.dumps(
                [{**dataclasses.asdict(one), "doubts": one.doubts()} for one in found], indent=1
            )
        )
    if not all(one.sound for one in found):
        raise typer.Exit(1)
