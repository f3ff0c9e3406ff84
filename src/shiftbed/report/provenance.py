"""Where every number comes from: models, settings, seeds, versions, dates, hashes, gaps."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from shiftbed.report.sources import Sources
from shiftbed.results import Store

__all__ = ["provenance"]


def provenance(sources: Sources) -> dict[str, Any]:
    """Return the tables of the last section."""
    records = _records(sources)
    dates = sorted(row["finished"] for row in records if row["finished"])
    return {
        "models": _models(sources),
        "settings": _settings(sources),
        "imports": _imports(sources),
        "records": records,
        "versions": _versions(sources),
        "dates": dates[:1] + dates[-1:] if dates else [],
        "left_out": list(sources.grid.left_out),
        "gaps": int(sources.grid.accuracy.size - len(sources.by_name)),
        "cells": len(sources.cells),
    }


def _records(sources: Sources) -> list[dict[str, Any]]:
    """Return what was recorded of each measured cell."""
    store = Store(sources.results.path)
    rows = []
    for (model, setting), manifest in sorted(sources.manifests.items()):
        try:
            timing = json.loads((store.folder(manifest.key) / "timing.json").read_text("utf-8"))
            finished = str(timing.get("finished", ""))
        except (OSError, ValueError, AttributeError):  # it may be lost without harm
            finished = ""
        rows.append(
            {
                "model": model,
                "setting": setting,
                "n": manifest.counts.scored if manifest.counts else None,
                "skipped": len(manifest.skipped),
                "complete": manifest.complete,
                "seed": manifest.identity.seed,
                "finished": finished,
                "cell": manifest.key,
                "sha256": manifest.files.get("predictions.parquet", ""),
            }
        )
    return rows


def _models(sources: Sources) -> list[dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for (model, _), manifest in sorted(sources.manifests.items()):
        row = found.setdefault(
            model,
            {
                "model": model,
                "spec": str(manifest.spec.get("model") or ""),
                "category": str(manifest.tags.get("category") or ""),
                "geometry": str(manifest.spec.get("geometry") or ""),
                "weights": manifest.identity.weights,
                "cells": 0,
            },
        )
        row["cells"] += 1
    return list(found.values())


def _settings(sources: Sources) -> list[dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for cell in sources.cells:
        row = found.setdefault(
            cell["setting"],
            {
                "setting": cell["setting"],
                "metric": cell["metric"],
                "class_space": cell["class_space"] or "",
                "clean": sources.cleans.get(cell["setting"], ""),
                "pictures": "",
                "shift": "",
                "seed": "",
                "n": set(),
                "origins": Counter(),
            },
        )
        row["n"].add(cell["n"])
        row["origins"]["incomplete" if not cell["complete"] else cell["origin"]] += 1
        manifest = sources.manifests.get((cell["model"], cell["setting"]))
        if manifest is not None and cell["origin"] == "measured":
            identity = manifest.identity
            shift = identity.shift or {}
            row["pictures"] = identity.pictures
            row["shift"] = ", ".join(f"{k} {v}" for k, v in shift.items() if v is not None)
            row["seed"] = "" if identity.seed is None else str(identity.seed)
    models = len(sources.grid.models)
    for row in found.values():
        known = sorted(n for n in row["n"] if n)
        row["n"] = " to ".join(f"{n:,}" for n in dict.fromkeys(known[:1] + known[-1:]))
        row["missing"] = models - sum(row["origins"].values())
    return [found[setting] for setting in sorted(found)]


def _imports(sources: Sources) -> list[dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for cell in sources.cells:
        if cell["origin"] == "imported":
            row = found.setdefault(
                cell["source"],
                {"source": cell["source"], "models": set(), "settings": set(), "cells": 0, "n": 0},
            )
            row["models"].add(cell["model"])
            row["settings"].add(cell["setting"])
            row["cells"] += 1
            row["n"] += cell["n"] is None
    return [
        {**row, "models": len(row["models"]), "settings": len(row["settings"])}
        for row in found.values()
    ]


def _versions(sources: Sources) -> list[tuple[str, str]]:
    found = {pair for one in sources.manifests.values() for pair in one.versions.items()}
    return sorted((str(name), str(version)) for name, version in found)
