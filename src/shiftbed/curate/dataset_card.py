"""The card of an exported set, for people: what it is, and how it came to be."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence

from shiftbed.curate.shortlist import Entry, Shortlist, Step
from shiftbed.curate.votes import Agreement, Vote
from shiftbed.data import imagenet_names

__all__ = ["dataset_card", "said"]

_RULES = {
    "all": "A picture is in the set if every reviewer who judged it accepted it.",
    "any": "A picture is in the set if at least one reviewer accepted it.",
    "unreviewed": "Nobody had to accept a picture for it to be in the set: **it was not reviewed, "
    "and may hold wrong labels.**",
}


def said(name: str) -> str:
    """Return a class as people call it: of a WordNet id, also the word.

    >>> said("n01443537"), said("owl")
    ('goldfish (n01443537)', 'owl')
    """
    words = imagenet_names().get(name)
    return f"{words[0]} ({name})" if words else name


def dataset_card(
    shortlist: Shortlist,
    name: str,
    taken: Sequence[Entry],
    votes: Mapping[str, Sequence[Vote]],
    *,
    rule: str,
    agreements: Sequence[Agreement],
    licence: str,
) -> str:
    """Return the card as Markdown, with a header that dataset hubs read."""
    hard = shortlist.recipe == "hard"
    counts = Counter(entry.class_name for entry in taken)
    models = ", ".join(model.name for model in shortlist.models)
    parts = [
        "---",
        f"pretty_name: {json.dumps(name, ensure_ascii=False)}",
        f"license: {json.dumps(licence or 'unknown', ensure_ascii=False)}",
        "task_categories: [image-classification]",
        f"size_categories: [{_size(len(taken))}]",
        "---",
        "",
        f"# {_cell(name)}",
        "",
        f"{len(taken):,} pictures, chosen from {shortlist.funnel[0].left:,} because "
        + (
            f"{models} had each of them wrong in every crop."
            if hard
            else f"{models} was sure of a class for each of them, though they show none of the "
            "known classes."
        ),
        "",
        "A set that was chosen against some models says little about these models: judge others "
        "by it."
        if hard
        else "The models that it was chosen against are at a disadvantage here: judge others "
        "by it.",
        "",
        f"Licence: {_cell(licence) if licence else 'not stated; ask whoever owns the pictures'}.",
        "",
        "## How it was chosen",
        "",
        "| step | | pictures |",
        "|---|---|---:|",
        *(f"| {step.step} | {step.about} | {step.left:,} |" for step in shortlist.funnel),
        f"| **in the set** | | **{len(taken):,}** |",
        "",
        *_thresholds(shortlist),
        "",
        "| model | spec | classes | fingerprint |",
        "|---|---|---|---|",
        *(
            f"| {_cell(one.name)} | `{_cell(one.spec)}` | {_cell(one.class_space)} "
            f"| `{one.fingerprint}` |"
            for one in shortlist.models
        ),
        "",
        "Computed with " + ", ".join(f"{k} {v}" for k, v in shortlist.versions.items()) + ".",
        "",
        "## Review",
        "",
        _RULES[rule],
        *_review(votes, agreements),
        "",
        f"## The {len(counts):,} classes",
        "",
        *_classes(shortlist.funnel, counts),
        "",
        "## Files",
        "",
        "- `images/`: the pictures, a folder for each class, named by the first 16 digits of "
        "their SHA-256.",
        "- `manifest.parquet`: a row for each picture, with its source, hash, label, what each "
        "model said, and every vote.",
        "- `set.toml`: how the set is read and scored, for `shiftbed eval`.",
        "",
    ]
    return "\n".join(parts)


def _cell(text: str) -> str:
    """Return a text that cannot break out of a table's cell or into markup."""
    plain = " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;")
    return plain.replace("|", "\\|").replace("`", "'")


def _size(pictures: int) -> str:
    if pictures < 1000:
        return "n<1K"
    return "1K<n<10K" if pictures < 10_000 else "10K<n<100K" if pictures < 100_000 else "n>100K"


def _thresholds(shortlist: Shortlist) -> list[str]:
    options = shortlist.options
    lines = []
    if shortlist.recipe == "hard":
        lines += [
            f"- crops of each picture: {options['crops']}",
            f"- largest mean probability of the picture's own class: {options['max_confidence']}",
        ]
    else:
        lines.append(f"- smallest probability of the predicted class: {options['min_confidence']}")
        overlap = ", ".join(f"{_cell(k)} (is {_cell(v)})" for k, v in shortlist.overlap.items())
        lines.append(f"- classes left out as known: {overlap or 'none'}")
        lines.append(f"- usual pictures: `{_cell(shortlist.usual or '')}`")
    lines += [
        f"- pictures of one confusion (class, predicted class): at most {options['per_confusion']}",
        f"- near-duplicates: up to {options['near']} of 256 signs of a thumbnail differ",
        f"- reference sets: {', '.join(map(_cell, shortlist.against)) or 'none'}",
    ]
    return lines


def _review(votes: Mapping[str, Sequence[Vote]], agreements: Sequence[Agreement]) -> list[str]:
    by_reviewer: dict[str, Counter[str]] = {}
    reasons: Counter[str] = Counter()
    for cast in votes.values():
        for vote in cast:
            by_reviewer.setdefault(vote.reviewer, Counter())[vote.verdict] += 1
            if vote.reason:
                reasons[vote.reason] += 1
    if not by_reviewer:
        return []
    lines = ["", "| reviewer | accepted | rejected | skipped |", "|---|---:|---:|---:|"]
    lines += [
        f"| {_cell(one)} | {n['accept']:,} | {n['reject']:,} | {n['skip']:,} |"
        for one, n in sorted(by_reviewer.items())
    ]
    if reasons:
        why = ", ".join(f"{reason} {count:,}" for reason, count in reasons.most_common())
        lines += ["", f"Reasons for rejection: {why}."]
    for one in agreements:
        kappa = "not defined" if one.kappa is None else f"{one.kappa:.2f}"
        lines += [
            "",
            f"{_cell(one.reviewers[0])} and {_cell(one.reviewers[1])} judged {one.pictures:,} "
            f"pictures both, each blind to the other, and agreed on {one.agreed:,}; "
            f"Cohen's kappa {kappa}.",
        ]
    return lines


def _classes(funnel: Sequence[Step], counts: Counter[str]) -> list[str]:
    lines = ["| class | candidates | on the shortlist | in the set |", "|---|---:|---:|---:|"]
    for name in sorted(counts):
        first, last = (step.per_class.get(name, 0) for step in (funnel[0], funnel[-1]))
        lines.append(f"| {_cell(said(name))} | {first:,} | {last:,} | {counts[name]:,} |")
    return lines
