"""A curation in tables, for a person at a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from shiftbed._tables import ROWS, add, add_column, grid
from shiftbed.curate.dataset_card import said
from shiftbed.curate.shortlist import Shortlist, Step
from shiftbed.curate.votes import Agreement, Vote

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["parts_of"]

#: Classes and confusions that are shown unless all are asked for.
_SHOWN = 12


def parts_of(
    shortlist: Shortlist,
    votes: Sequence[Vote] = (),
    agreements: Sequence[Agreement] = (),
    *,
    everything: bool = False,
) -> list[RenderableType]:
    """Return the funnel, in all and for the largest classes, the confusions, and the votes."""
    most = ROWS if everything else _SHOWN
    parts: list[RenderableType] = []
    table = grid("What each step left", ["step", ""], ["pictures"])
    for step in shortlist.funnel:
        add(table, step.step, step.about, f"{step.left:,}")
    parts.append(table)
    parts += _per_class(shortlist, most)
    if shortlist.overlap:
        pairs = [f"{k} (is {said(v)})" for k, v in shortlist.overlap.items()]
        more = f" and {len(pairs) - most:,} more" if len(pairs) > most else ""
        parts.append(f"Left out as known classes: {', '.join(pairs[:most])}{more}.")
    parts += _confusions(shortlist, most)
    parts += _votes(votes, agreements, len(shortlist))
    return parts


def _per_class(shortlist: Shortlist, most: int) -> list[RenderableType]:
    steps = shortlist.funnel
    if not steps:
        return []
    classes = sorted(
        steps[0].per_class, key=lambda one: (-steps[-1].per_class[one], -steps[0].per_class[one])
    )
    title = "What each step left of each class"
    if len(classes) > most:
        title += f" ({most} of {len(classes):,}; --all shows more)"
    table = grid(title, ["class"])
    kept = [one for one, last in zip(steps, (None, *steps), strict=False) if _took(one, last)]
    for step in kept:
        add_column(table, step.step, number=True)
    for one in classes[:most]:
        add(table, said(one) or "-", *(f"{step.per_class[one]:,}" for step in kept))
    return [table]


def _took(step: Step, last: Step | None) -> bool:
    return last is None or step.left < last.left


def _confusions(shortlist: Shortlist, most: int) -> list[RenderableType]:
    found = shortlist.confusions
    if not found:
        return []
    cap = shortlist.options["per_confusion"]
    title = f"Confusions, before and after at most {cap} of each were kept"
    table = grid(title, ["class", "taken for"], ["before", "after"])
    for one in found[:most]:
        add(
            table,
            said(one.class_name) or "-",
            said(one.predicted),
            f"{one.before:,}",
            f"{one.after:,}",
        )
    before, after = (max(share) for share in zip(*_shares(shortlist), strict=True))
    return [
        table,
        f"{len(found):,} different confusions; the commonest has {before:.0%} of the pictures "
        f"before the cap and {after:.0%} after it.",
    ]


def _shares(shortlist: Shortlist) -> list[tuple[float, float]]:
    before = sum(one.before for one in shortlist.confusions)
    after = sum(one.after for one in shortlist.confusions)
    return [(one.before / before, one.after / after) for one in shortlist.confusions]


def _votes(
    votes: Sequence[Vote], agreements: Sequence[Agreement], pictures: int
) -> list[RenderableType]:
    if not votes:
        return []
    table = grid("Votes", ["reviewer"], ["accepted", "rejected", "skipped", "open"])
    for reviewer in sorted({vote.reviewer for vote in votes}):
        own = [vote.verdict for vote in votes if vote.reviewer == reviewer]
        counts = [own.count(verdict) for verdict in ("accept", "reject", "skip")]
        add(table, reviewer, *(f"{n:,}" for n in (*counts, pictures - sum(counts))))
    parts: list[RenderableType] = [table]
    for one in agreements:
        kappa = "is not defined" if one.kappa is None else f"{one.kappa:.2f}"
        parts.append(
            f"{' and '.join(one.reviewers)} agree on {one.agreed:,} of {one.pictures:,} pictures "
            f"that both judged; Cohen's kappa {kappa}"
        )
    return parts
