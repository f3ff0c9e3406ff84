"""What a person watching a run sees."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

from shiftbed.run.local import Progress, Watch
from shiftbed.run.plan import Plan

__all__ = ["shown"]


@contextmanager
def shown(plan: Plan, quiet: bool = False) -> Iterator[Watch]:
    """Show a bar on standard error while the block runs: cells, speed, time left, the worst."""
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    console = Console(stderr=True)
    bar = Bar(
        TextColumn("{task.fields[cells]}", markup=False),
        BarColumn(bar_width=16),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeRemainingColumn(compact=True),
        TextColumn("{task.fields[speed]}", markup=False),
        TextColumn("{task.fields[worst]}", markup=False),
        console=console,
        disable=quiet or not console.is_terminal,
        transient=True,
    )
    left: defaultdict[str, int] = defaultdict(int)
    for unit in plan.units:
        for cell in unit.cells:
            left[cell.manifest.key] += 1
    scored: defaultdict[str, int] = defaultdict(int)
    correct: defaultdict[str, int] = defaultdict(int)
    names = {cell.manifest.key: f"{cell.model.name} on {cell.setting.name}" for cell in plan.cells}
    begun = time.monotonic()
    task = bar.add_task("", total=plan.predictions, cells="", speed="", worst="")
    done = 0
    by_node: defaultdict[str, int] = defaultdict(int)

    def watch(progress: Progress) -> None:
        nonlocal done
        key = progress.cell.manifest.key
        done += progress.pictures
        by_node[progress.node] += progress.pictures
        left[key] -= 1
        if progress.correct is not None:
            scored[key] += progress.scored
            correct[key] += progress.correct
        accuracies = {key: correct[key] / n for key, n in scored.items() if n}
        worst = min(accuracies, key=accuracies.__getitem__, default=None)
        passed = max(time.monotonic() - begun, 1e-9)
        nodes = [f"{node} {n / passed:,.0f}/s" for node, n in sorted(by_node.items()) if node]
        speed = f"{done / passed:,.0f} pictures/s"
        bar.update(
            task,
            advance=progress.pictures,
            cells=f"{len(plan.cells) - sum(n > 0 for n in left.values())}/{len(plan.cells)} cells",
            speed=f"{speed} ({', '.join(nodes)})" if nodes else speed,
            worst="" if worst is None else f"worst {accuracies[worst]:.1%} {names[worst]}",
        )

    with bar:
        yield watch
