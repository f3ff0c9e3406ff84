"""What the studies share: their arguments, their trainings, and tables beside the papers'."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TimeRemainingColumn

import shiftbed as sb
from shiftbed.data import ImageSet, Subset, card_of
from shiftbed.train import train

console = Console()


def arguments(about: str | None, output: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--output", type=Path, default=Path(output), help="a folder")
    parser.add_argument(
        "--small", action="store_true", help="a cut of it that shows the way, in seconds"
    )
    parser.add_argument(
        "--full", action="store_true", help="with all pictures, as the paper: hours or days"
    )
    return parser.parse_args()


def some(
    images: ImageSet, count: int | None, name: str, seed: int = 0, *, always: bool = False
) -> ImageSet:
    """Return so many of the pictures, the same ones each time; all keep their own name."""
    if not always and (count is None or count >= len(images)):
        return images
    chosen = np.random.default_rng(seed).permutation(len(images))[:count]
    return Subset(images, np.sort(chosen), name, replace(card_of(images), name=name))


def pixels_of(images: ImageSet) -> tuple[np.ndarray, np.ndarray]:
    assert images.labels is not None
    return np.stack([images.load(place) for place in range(len(images))]), images.labels


def trained(recipe: str, images: ImageSet, folder: Path, **changes: Any) -> str:
    """Train, if it is not done already, and return the spec that evaluates the network."""
    bar = Progress(
        "{task.description}", BarColumn(), TimeRemainingColumn(), console=console, transient=True
    )
    with bar:
        task = bar.add_task(f"{folder.name}: {recipe} on {len(images):,} pictures", total=None)
        card = train(
            recipe,
            images,
            folder,
            watch=lambda told: bar.update(task, total=told.steps, completed=told.step),
            **changes,
        )
    last = card.history[-1]
    seconds = sum(one["seconds"] for one in card.history)
    console.print(
        f"{folder.name}: {recipe}, {len(images):,} pictures, {len(card.history)} passes: "
        f"loss {last['loss']:.3f}, {last['accuracy']:.1%} in training, {seconds:.0f} s",
        highlight=False,
        soft_wrap=True,
    )
    return f"trained:{folder}"


def accuracies(run: sb.Evaluation) -> dict[tuple[str, str], float]:
    """Return the accuracy of each model on each setting, in percent."""
    return {
        (row["model"], row["setting"]): 100 * row["accuracy"] for row in run.table().to_pylist()
    }


class Report:
    """A report that is printed as it is written, and then kept in Markdown."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lines: list[str] = []

    def say(self, *lines: str) -> None:
        for line in lines:
            console.print(line, markup=False, highlight=False, soft_wrap=True)
        self.lines += [*lines, ""]

    def table(self, title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        from shiftbed._tables import add, grid, print_parts

        shown = grid(title, columns[:1], columns[1:])
        for row in rows:
            add(shown, *map(_text, row))
        print_parts([shown], console)
        console.print()
        self.lines += [f"**{title}**", "", f"| {' | '.join(columns)} |"]
        self.lines += ["|---" + "|---:" * (len(columns) - 1) + "|"]
        self.lines += [f"| {' | '.join(map(_text, row))} |" for row in rows] + [""]

    def far(self, what: str, ours: Mapping[str, float], theirs: Mapping[str, float]) -> None:
        """Say where a series is more than 10 points from the paper's."""
        off = [
            f"{key} {ours[key]:.1f} ({value:.1f})"
            for key, value in theirs.items()
            if abs(ours[key] - value) > 10
        ]
        if off:
            self.say(
                f"{what}: more than 10 points from the paper's (in brackets): {', '.join(off)}."
            )

    def findings(self, held: Mapping[str, bool]) -> None:
        """Say of each direction that a paper reports whether it came out here."""
        self.table(
            "Directions",
            ["what the paper reports", "here"],
            [(what, "the same" if same else "DIFFERS") for what, same in held.items()],
        )

    def write(self, title: str) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / "report.md"
        figure = "![the same as bars](figure.png)"
        text = "\n".join([f"# {title}", "", *self.lines[:2], figure, "", *self.lines[2:]])
        path.write_text(text.rstrip() + "\n", "utf-8")
        console.print(f"{path} has these tables, beside them figure.png", highlight=False)


def _text(value: object) -> str:
    if value is None or value != value:
        return ""
    return f"{value:.1f}" if isinstance(value, float) else str(value)


def bars(
    path: Path, groups: Sequence[str], series: Mapping[str, Sequence[float]], unit: str
) -> None:
    """Draw a series of bars for each name, ours beside theirs."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    path.parent.mkdir(parents=True, exist_ok=True)
    figure, axes = pyplot.subplots(figsize=(max(6, 0.55 * len(groups) + 2), 3.6))
    width = 0.8 / len(series)
    for number, (name, values) in enumerate(series.items()):
        places = np.arange(len(groups)) + (number - (len(series) - 1) / 2) * width
        axes.bar(places, values, width, label=name)
    axes.set_xticks(range(len(groups)), groups, rotation=40, ha="right")
    axes.set_ylabel(unit)
    axes.legend(
        frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1), ncols=4, fontsize="small"
    )
    axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
