"""The page: one HTML file with everything in it, which opens from a disk and fetches nothing."""

from __future__ import annotations

import base64
import gzip
import json
import os
import tempfile
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from shiftbed import __version__
from shiftbed.errors import InputError, MissingExtraError
from shiftbed.report.calibrated import anomalies, calibration
from shiftbed.report.corrupted import matrices
from shiftbed.report.pictures import Album, examples, galleries
from shiftbed.report.provenance import provenance
from shiftbed.report.sources import Sources
from shiftbed.report.verdict import forefront, verdicts
from shiftbed.report.words import certainty, interval, number, shown
from shiftbed.results import Results
from shiftbed.settings import DataLike
from shiftbed.studies import declaration, judge, synthetic_against_natural
from shiftbed.studies.baseline import STANDARD
from shiftbed.studies.lines import Scale
from shiftbed.studies.shifts import NATURAL, classes_of, stored, synthetic
from shiftbed.studies.show import findings_table

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["PICTURE_BYTES", "write_report"]

#: The bytes that small copies of pictures may take, unless said.
PICTURE_BYTES = 3_000_000

#: Our own scripts, in the order in which they run.
_SCRIPTS = ("page", "tables", "scatter", "corruptions", "calibration", "pictures", "start")


def write_report(
    results: Results | str | Path,
    output: str | Path = "report.html",
    *,
    models: Sequence[str] = (),
    data: DataLike | None = None,
    baseline: str | Sequence[str] = (),
    title: str | None = None,
    scale: Scale = "logit",
    level: float = 0.95,
    picture_bytes: int = PICTURE_BYTES,
) -> Path:
    """Write the report on some results as one HTML file, and return its path.

    The verdict is on ``models``: by default all that were measured here, not imported.
    ``data`` are image sets whose pictures may be shown, as `evaluate` takes them; sets that are
    known by name and on this machine are found without it. ``baseline`` is the model that
    corruption errors are relative to; of several, the first that was measured on a benchmark.

    >>> import tempfile
    >>> from shiftbed.results import import_results
    >>> folder = Path(tempfile.mkdtemp())
    >>> rows = "model,setting,accuracy,n\\nnet,photos,81.5,200\\nnet,photos+fog.1,70,200\\n"
    >>> _ = (folder / "mine.csv").write_text(rows)
    >>> _ = import_results(folder / "mine.csv", folder)
    >>> write_report(folder, folder / "report.html").stat().st_size < 3_000_000
    True
    """
    try:
        import jinja2
        from plotly.offline import get_plotlyjs
    except ImportError:
        raise MissingExtraError("the report", "report") from None
    if picture_bytes < 0:
        raise InputError(f"pictures cannot have {picture_bytes} bytes; 0 leaves them out")
    if not isinstance(results, Results):
        results = Results.open(results)
    baselines = [baseline] if isinstance(baseline, str) else baseline
    sources = Sources(results, baselines=baselines, scale=scale, level=level)
    if not sources.cells:
        raise InputError(f"there are no cells in {results.path} to report on")
    album = Album(data, picture_bytes)
    content = _content(sources, album, models, title or f"Robustness: {_called(results.path)}")
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_template),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"shown": shown, "number": number, "certainty": certainty}
    environment.globals |= {"interval": interval}
    page = environment.get_template("page.html").render(
        **content,
        style=_template("page.css"),
        scripts=[_template(f"{name}.js") for name in _SCRIPTS],
        plotly=_packed(get_plotlyjs()),
        version=__version__,
    )
    return _written(Path(output), page)


def _called(path: Path) -> str:
    return path.resolve().name or str(path)


def _content(sources: Sources, album: Album, models: Sequence[str], title: str) -> dict[str, Any]:
    chosen = sources.measured
    if models:
        mask = sources.grid.mask(models)
        chosen = [name for name, wanted in zip(sources.grid.models, mask, strict=True) if wanted]
    tables = matrices(sources)
    calibrated, anomalous = calibration(sources), anomalies(sources)
    shown_on = examples(sources, album)
    gallery = galleries(sources, album)
    source = provenance(sources)
    declared = declaration()
    findings = judge(sources.grid, declared, level=sources.level)
    measured = {finding.dataset for finding in findings if finding.sign != "not measured"}
    judged = [dataset for dataset in declared.datasets if dataset.name in measured]
    correlated = _correlated(sources)
    absent = {
        "the corruption matrix (no setting is a corruption at known severities)": tables,
        "calibration (only cells measured here have predictions)": calibrated,
        "pictures (they need cells measured here, and image sets at hand: --data)": gallery,
        "hypotheses (none of the declared ones can be judged by these models)": judged,
        f"synthetic against natural shifts ({correlated['why']})": correlated["rows"],
    }
    data = {
        **_grid(sources),
        "fits": {name: _fit(sources, name) for name in sources.fits},
        "matrices": tables,
        "calibration": calibrated,
        "anomalies": anomalous,
        "examples": shown_on,
        "galleries": gallery,
        "album": album.copies,
        "tables": {
            "hypotheses": _columns(findings_table(findings)),
            "correlations": correlated["table"],
            **{name: _rows(source[name]) for name in ("models", "imports", "records")},
        },
    }
    return {
        "title": title,
        "level": sources.level,
        "verdicts": verdicts(sources, tables, chosen),
        "forefront": [] if chosen else forefront(sources),
        "counts": _counts(sources),
        "has": {
            "scatter": len(sources.grid.settings) > 1,
            "matrices": bool(tables),
            "calibration": bool(calibrated),
            "anomalies": bool(anomalous),
            "pictures": bool(gallery),
        },
        "findings": findings if judged else (),
        "declared": declared,
        "judged": judged,
        "correlations": correlated,
        "absent": [what for what, there in absent.items() if not there],
        "provenance": source,
        "data": _packed(json.dumps(data, allow_nan=False, separators=(",", ":"))),
    }


def _counts(sources: Sources) -> dict[str, int]:
    imported = {c["model"] for c in sources.cells if c["origin"] == "imported"}
    return {
        "models": len(sources.grid.models),
        "settings": len(sources.grid.settings),
        "cells": len(sources.cells),
        "measured": len(sources.measured),
        "imported": len(imported),
    }


#: What a cell is, as the page's script knows it.
_ORIGINS = {"measured": 1, "imported": 2}


def _grid(sources: Sources) -> dict[str, Any]:
    """Return the cells as columns: for each setting, a list over the models."""
    grid = sources.grid
    measured = set(sources.measured)

    def column(setting: str, name: str) -> list[Any]:
        cells = (sources.by_name.get((model, setting)) for model in grid.models)
        # Incomplete cells are in no study.
        return [cell[name] if cell and cell["complete"] else None for cell in cells]

    def origin(model: str, setting: str) -> int:
        cell = sources.by_name.get((model, setting))
        if cell is None:
            return 0
        return _ORIGINS[cell["origin"]] if cell["complete"] else 3

    return {
        "level": sources.level,
        "scale": sources.scale,
        "models": [
            {"name": name, "category": category, "measured": name in measured}
            for name, category in zip(grid.models, grid.categories, strict=True)
        ],
        "settings": [
            {
                "name": name,
                "clean": sources.cleans.get(name),
                "group": _group(sources, name),
                "classes": classes_of(name),
                "filtered": name in NATURAL and NATURAL[name].kind == "filtered",
                "metric": sources.metrics[name],
            }
            for name in grid.settings
        ],
        **{
            name: [column(setting, name) for setting in grid.settings]
            for name in ("accuracy", "low", "high", "n")
        },
        "origin": [[origin(model, s) for model in grid.models] for s in grid.settings],
        "baseline": np.flatnonzero(grid.mask(STANDARD, lenient=True)).tolist(),
    }


def _group(sources: Sources, setting: str) -> str:
    """Return the heading under which a menu lists a setting."""
    if setting in sources.natural:
        return "natural shifts"
    if not synthetic(setting):
        return "pictures as they are"
    if stored(setting):
        return f"stored: {setting.split('.')[0]}"
    return f"made in memory: {setting.split('+')[0]}"


def _fit(sources: Sources, shifted: str) -> dict[str, Any]:
    drawn = sources.fits[shifted]
    fit = drawn.fit
    rows = {row["model"]: row for row in sources.effective(shifted)}
    mine = [rows.get(model) for model in sources.grid.models]
    low, high = fit.interval("slope", sources.level)
    knee = None
    if fit.knee_accuracy is not None:
        ends = _from_scale(fit.interval("knee", sources.level), fit.scale)
        knee = [fit.knee_accuracy, *ends]
    return {
        "clean": fit.clean,
        "published": drawn.published,
        "text": str(fit),
        "models": fit.models,
        "r2": fit.r2 if np.isfinite(fit.r2) else None,
        "slope": [fit.slope, low, high],
        "knee": knee,
        "range": [fit.low, fit.high],
        "curve": [column.tolist() for column in (drawn.x, drawn.y, drawn.low, drawn.high)],
        "rho": [
            None if row is None else [row[name] for name in ("expected", "rho", "low", "high")]
            for row in mine
        ],
    }


def _from_scale(values: Sequence[float], scale: Scale) -> list[float]:
    from shiftbed.studies.lines import from_scale

    return [float(value) for value in from_scale(list(values), scale)]


def _correlated(sources: Sources) -> dict[str, Any]:
    """Return the matrix of synthetic averages by natural shifts, or why there is none."""
    try:
        table = synthetic_against_natural(sources.grid, scale=sources.scale, level=sources.level)
    except InputError as problem:
        return {"rows": [], "table": _rows([]), "why": str(problem)}
    matrix: dict[str, dict[str, Any]] = {}
    for row in table.to_pylist():
        matrix.setdefault(row["synthetic"], {})[row["natural"]] = row
    return {
        "rows": list(matrix.items()),
        "natural": list(dict.fromkeys(table["natural"].to_pylist())),
        "table": _columns(table),
        "why": "",
    }


def _columns(table: pa.Table) -> dict[str, list[Any]]:
    """Return an Arrow table as the page keeps one: the columns' names, and the rows."""
    return {
        "columns": table.column_names,
        "rows": [list(row.values()) for row in table.to_pylist()],
    }


def _rows(rows: Sequence[dict[str, Any]]) -> dict[str, list[Any]]:
    """Return rows that share their keys as the page keeps a table."""
    return {"columns": list(rows[0]) if rows else [], "rows": [[*row.values()] for row in rows]}


def _packed(text: str) -> str:
    """Return text compressed and in letters that mean nothing to HTML.

    >>> gzip.decompress(base64.b64decode(_packed("</script>"))).decode()
    '</script>'
    """
    packed = gzip.compress(text.encode("utf-8", "replace"), compresslevel=9, mtime=0)
    return base64.b64encode(packed).decode()


def _template(name: str) -> str:
    return (resources.files("shiftbed.report") / "template" / name).read_text("utf-8")


def _written(path: Path, text: str) -> Path:
    """Write a file that is there whole or not at all."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, scratch = tempfile.mkstemp(prefix=".", suffix=".part", dir=path.parent)
        try:
            with os.fdopen(handle, "w", encoding="utf-8", errors="replace") as file:
                file.write(text)
            Path(scratch).chmod(0o644)
            Path(scratch).replace(path)
        finally:
            Path(scratch).unlink(missing_ok=True)
    except OSError as problem:
        raise InputError(f"cannot write {path} ({problem.strerror})") from None
    return path
