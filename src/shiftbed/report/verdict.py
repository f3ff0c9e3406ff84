"""The verdict: what the numbers say of each model, in words and as few figures as possible."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from shiftbed.metrics import Estimate
from shiftbed.report.corrupted import MEAN
from shiftbed.report.sources import Sources
from shiftbed.report.words import percent, shown

__all__ = ["Line", "Verdict", "forefront", "verdicts"]

#: How many of the most robust models a report names where it is about no model in particular.
_FOREFRONT = 3


@dataclass(frozen=True)
class Line:
    """One number: what it is, the number with its interval, and what to know of it."""

    name: str
    estimate: Estimate
    note: str = ""
    #: ``points`` for a difference of accuracies, ``percent`` otherwise.
    unit: str = "percent"
    #: Robust beyond its accuracy: ``yes``, ``no`` or ``cannot tell``.
    verdict: str = ""


@dataclass
class Verdict:
    """What is said of one model on one set of pictures."""

    model: str
    images: str
    words: list[str] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)


def verdicts(sources: Sources, matrices: list[dict[str, Any]], models: list[str]) -> list[Verdict]:
    """Return the verdicts on models: one for each clean setting that they were measured on."""
    found = []
    for model in models:
        settings = [s for m, s in sources.by_name if m == model]
        cleans = dict.fromkeys(
            sources.usual.get(setting) or sources.cleans.get(setting, setting)
            for setting in settings
        )
        # A clean setting of another one is told there; pictures without labels come last.
        roots = [name for name in cleans if name not in sources.cleans]
        roots.sort(key=lambda name: sources.metrics.get(name) == "agreement")
        found += [_verdict(sources, matrices, model, clean) for clean in roots]
    return [verdict for verdict in found if verdict.lines]


def _verdict(sources: Sources, matrices: list[dict[str, Any]], model: str, clean: str) -> Verdict:
    verdict = Verdict(model, clean)
    _say_clean(sources, verdict)
    for matrix in matrices:
        if matrix["clean"] == clean and model in matrix["error"]:
            _say_corrupted(matrix, verdict)
    _say_natural(sources, verdict)
    _say_anomalous(sources, verdict)
    _say_neighbours(sources, verdict)
    return verdict


def _say_clean(sources: Sources, verdict: Verdict) -> None:
    cell = sources.by_name.get((verdict.model, verdict.images))
    if cell is None or cell["accuracy"] is None or cell["metric"] == "agreement":
        return
    name = "clean accuracy" if cell["metric"] == "top1" else cell["metric"]
    note = "" if cell["complete"] else "incomplete: of the pictures done so far"
    verdict.lines.append(Line(name, _estimate(cell), note))
    verdict.words.append(
        f"It is right on {percent(cell['accuracy'])} of {verdict.images}"
        + (" (incomplete)." if note else ".")
    )


def _say_corrupted(matrix: dict[str, Any], verdict: Verdict) -> None:
    errors = matrix["error"][verdict.model]
    each = {name: errors[name] for name in matrix["corruptions"] if name in errors}
    count = len(matrix["averaged"])
    what = f"{count} corruption{'s' if count > 1 else ''} of {matrix['name'].rstrip('+')}"
    relative = matrix["ce"].get(verdict.model)
    if relative is not None and matrix["baseline"] != verdict.model:
        note = f"{what}; errors in units of {matrix['baseline']}'s"
        name = "mCE" if matrix["whole"] else "mean CE"
        verdict.lines.append(Line(name, _entry(relative[MEAN]), note))
    if MEAN in errors:
        kept = matrix["counts"] == "agreement"
        name = "mean change of answers" if kept else "mean error under corruption"
        does = "changes its answer on" if kept else "errs on"
        verdict.lines.append(Line(name, _entry(errors[MEAN]), what))
        verdict.words.append(f"Under {what} it {does} {percent(errors[MEAN][0])} on average.")
    worst = sorted(each, key=lambda name: -each[name][0])[:3]
    listed = [f"{_called(name)} ({percent(each[name][0])})" for name in worst]
    verdict.words.append(f"It is worst at {', '.join(listed)}.")


def _say_natural(sources: Sources, verdict: Verdict) -> None:
    for shifted in sources.natural:
        clean = sources.cleans[shifted]
        if clean.split(".")[0] != verdict.images.split(".")[0]:
            continue
        cell = sources.by_name.get((verdict.model, shifted))
        if cell is None or cell["accuracy"] is None:
            continue
        rows = sources.effective(shifted) if shifted in sources.fits else []
        for row in rows:
            if row["model"] == verdict.model:
                drawn = sources.fits[shifted]
                whose = "published" if drawn.published else "these results'"
                note = (
                    f"{percent(row['shifted'])} where {percent(row['expected'])} is expected of "
                    f"its {percent(row['clean'])} on {clean} ({whose} baseline, "
                    f"{drawn.fit.models} models)"
                )
                if row["extrapolated"]:
                    note += "; beyond the baseline's models"
                estimate = _ends(row["rho"], row["low"], row["high"], row["n_shifted"])
                name = f"effective robustness on {shifted}"
                verdict.lines.append(Line(name, estimate, note, "points", row["verdict"]))
                break
        else:
            verdict.lines.append(Line(f"accuracy on {shifted}", _estimate(cell)))


def _say_anomalous(sources: Sources, verdict: Verdict) -> None:
    for anomalous, usual in sources.usual.items():
        cell = sources.by_name.get((verdict.model, anomalous))
        if usual == verdict.images and cell is not None and cell["accuracy"] is not None:
            note = f"of telling these pictures from those of {usual} by low confidence"
            verdict.lines.append(Line(f"AUPR on {anomalous}", _estimate(cell), note))


def _say_neighbours(sources: Sources, verdict: Verdict) -> None:
    """Say between which imported models a model lies, on its clean pictures and natural shifts."""
    shifts = [s for s in sources.natural if sources.cleans[s] == verdict.images]
    for setting in [verdict.images, *shifts]:
        mine = sources.by_name.get((verdict.model, setting))
        if mine is None or mine["accuracy"] is None:
            continue
        others = sorted(
            (
                cell
                for cell in sources.cells
                if cell["setting"] == setting
                and cell["origin"] == "imported"
                and cell["accuracy"] is not None
                and cell["model"] != verdict.model
            ),
            key=lambda cell: cell["accuracy"],
        )
        if not others:
            continue
        at = int(np.searchsorted([cell["accuracy"] for cell in others], mine["accuracy"]))
        ends = [
            f"{cell['model']} ({shown(_estimate(cell))})"
            for cell in others[max(at - 1, 0) : at + 1]
        ]
        if at == 0:
            place = f"below all, the nearest being {ends[0]}"
        elif at == len(others):
            place = f"above all, the nearest being {ends[0]}"
        else:
            place = f"between {ends[0]} and {ends[1]}"
        verdict.words.append(f"Of {len(others):,} published models on {setting} it is {place}.")


def forefront(sources: Sources) -> list[dict[str, Any]]:
    """Return, for each natural shift, its baseline and the models that stand out most from it."""
    rows = []
    for shifted in sources.natural:
        if shifted in sources.fits:
            effective = sources.effective(shifted)
            robust = [row for row in effective if row["verdict"] == "yes"]
            rows.append(
                {
                    "shifted": shifted,
                    "drawn": sources.fits[shifted],
                    "models": len(effective),
                    "robust": len(robust),
                    "first": [
                        (row["model"], _ends(row["rho"], row["low"], row["high"], row["n_shifted"]))
                        for row in robust[:_FOREFRONT]
                    ],
                }
            )
    return rows


def _estimate(cell: dict[str, Any]) -> Estimate:
    return _ends(cell["accuracy"], cell["low"], cell["high"], cell["n"])


def _entry(entry: list[Any]) -> Estimate:
    return _ends(*entry)


def _ends(value: float, low: float | None, high: float | None, n: int | None) -> Estimate:
    low, high = (np.nan if end is None else end for end in (low, high))
    return Estimate(value, low, high, n or 0)


def _called(corruption: str) -> str:
    return corruption.replace("_", " ")
