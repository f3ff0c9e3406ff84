"""A plan in words, and a run as JSON."""

from __future__ import annotations

import dataclasses
import json

from shiftbed.evaluation.job import Evaluation
from shiftbed.evaluation.tables import assumptions
from shiftbed.run import Plan, estimate

__all__ = ["as_json", "described"]


def as_json(run: Evaluation) -> str:
    """Return the cells with their intervals, the summaries, the skipped, and the doubts."""
    skipped = {
        manifest.identity.setting: [list(pair) for pair in manifest.skipped]
        for manifest in run.manifests()
        if manifest.skipped
    }
    content = {
        "results": str(run.results.path),
        "baseline": run.baseline,
        "cells": run.table().to_pylist(),
        "scores": [dataclasses.asdict(score) for score in run.scores()],
        "skipped": skipped,
        "doubts": run.doubts(),
    }
    return json.dumps(content, indent=1)


def described(plan: Plan, workers: int | None = None, *, as_json: bool = False) -> str:
    """Say what a plan would do, what is there already, and what the rest costs."""
    cost = estimate(plan, workers)
    models = list(dict.fromkeys(cell.model.name for cell in plan.cells))
    settings = list(dict.fromkeys(cell.setting.name for cell in plan.cells))
    if as_json:
        return json.dumps(
            {
                "models": models,
                "settings": settings,
                "predictions": plan.total,
                "missing": plan.predictions,
                "decoded": plan.decoded,
                "corrupted": plan.shifted,
                "attacked": plan.attacked,
                "units": len(plan.units),
                "seconds": round(cost.seconds, 1),
                "bytes": cost.bytes,
            },
            indent=1,
        )
    done = plan.total - plan.predictions
    lines = [
        f"{_count(len(models), 'model')}: {_some(models)}",
        f"{_count(len(settings), 'setting')}: {_some(settings)}",
        f"{plan.total:,} predictions in {_count(len(plan.cells), 'cell')}, "
        f"{done:,} of them already there",
    ]
    attack = f"attack {plan.attacked:,} times, " if plan.attacked else ""
    if plan.units:
        lines += [
            f"to do: read {plan.decoded:,} pictures, corrupt {plan.shifted:,}, {attack}"
            f"show {plan.predictions:,} to models",
            f"about {_duration(cost.seconds)} with {_count(cost.workers, 'worker')} "
            f"({_duration(cost.pictures)} of work on pictures, {_duration(cost.models)} of "
            f"models), {cost.bytes / 1e6:,.1f} MB",
        ]
    else:
        lines.append("nothing to do")
    lines += assumptions(plan)
    return "\n".join(lines)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _some(names: list[str]) -> str:
    more = f" and {len(names) - 4} more" if len(names) > 4 else ""
    return ", ".join(names[:4]) + more


def _duration(seconds: float) -> str:
    """Say a time as a person would.

    >>> _duration(3.2), _duration(200), _duration(9000)
    ('3 s', '3 min', '2.5 h')
    """
    if seconds < 90:
        return f"{max(seconds, 1):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
