"""Results that others measured, as cells: read from their files, kept beside one's own.

Each import is one Parquet file with the columns of `CELLS` in the folder ``imported`` of a
results directory. Importing again under the same name replaces it; deleting the file undoes it.
"""

from __future__ import annotations

import csv
import math
import os
import re
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from shiftbed.errors import InputError, unknown

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Format", "Imported", "detect_format", "import_results", "read_imported"]

#: ``testbed``: a table of models x settings, as the ImageNet testbed publishes its grid.
#: ``timm``: one of timm's ``results-*.csv``. ``predictions``: one row per picture, as
#: ImageNet-X has them. ``cells``: ``model,setting,accuracy`` with further columns if known.
Format = Literal["testbed", "timm", "predictions", "cells"]

_MAX_BYTES = 256 * 2**20
_MAX_ROWS = 5_000_000
_MAX_NAME = 300

#: The testbed's names of settings: ours, and how many pictures they have. The numbers are
#: those that the grid itself tells: every accuracy is a whole count divided by them.
_TESTBED = {
    "val": ("imagenet-val", 50_000),
    "val-on-imagenet-a-classes": ("imagenet-val.imagenet-a-classes", 10_000),
    "val-on-imagenet-r-classes": ("imagenet-val.imagenet-r-classes", 10_000),
    "val-on-objectnet-classes": ("imagenet-val.objectnet-classes", 6_250),
    # The two video sets merge classes into 30 and 24 superclasses.
    "val-on-vid-robust-classes": ("imagenet-val.imagenet-vid-robust-classes", 14_400),
    "val-on-ytbb-robust-classes": ("imagenet-val.ytbb-robust-classes", 11_550),
    "val_subsampled_class_1_8": ("imagenet-val.class-1-of-8", 6_250),
    "imagenetv2-matched-frequency": ("imagenet-v2-matched-frequency", 10_000),
    "imagenetv2-threshold0.7": ("imagenet-v2-threshold-0.7", 10_000),
    "imagenetv2-topimages": ("imagenet-v2-top-images", 10_000),
    # The same pictures, encoded once more as ImageNet's validation set was.
    "imagenetv2-matched-frequency-format-val": (
        "imagenet-v2-matched-frequency.format-val",
        10_000,
    ),
    "imagenetv2-threshold-0.7-format-val": ("imagenet-v2-threshold-0.7.format-val", 10_000),
    "imagenetv2-top-images-format-val": ("imagenet-v2-top-images.format-val", 10_000),
    "imagenetv2-matched-frequency-format-val_subsampled_class_1_8": (
        "imagenet-v2-matched-frequency.format-val.class-1-of-8",
        1_250,
    ),
    "objectnet-1.0-beta": ("objectnet", 18_514),
    "imagenet-vid-robust_pm0": ("imagenet-vid-robust.anchors", 1_109),
    "imagenet-vid-robust_pm10": ("imagenet-vid-robust.pm10", 1_109),
    "ytbb-robust_pm0": ("ytbb-robust.anchors", 2_030),
    "ytbb-robust_pm10": ("ytbb-robust.pm10", 2_030),
    "imagenet-a": ("imagenet-a", 7_500),
    "imagenet-r": ("imagenet-r", 30_000),
    "imagenet-sketch": ("imagenet-sketch", 50_889),
    "stylized_imagenet": ("stylized-imagenet", 50_000),
    "greyscale": ("imagenet-val+greyscale", 50_000),
}

#: timm's ``results-NAME.csv``: our setting, and its pictures.
_TIMM = {
    "imagenet": ("imagenet-val", 50_000),
    "imagenet-real": ("imagenet-val.real-labels", 46_837),
    "imagenet-a": ("imagenet-a", 7_500),
    "imagenet-a-clean": ("imagenet-val.imagenet-a-classes", 10_000),
    "imagenet-r": ("imagenet-r", 30_000),
    "imagenet-r-clean": ("imagenet-val.imagenet-r-classes", 10_000),
    "imagenetv2-matched-frequency": ("imagenet-v2-matched-frequency", 10_000),
    "sketch": ("imagenet-sketch", 50_889),
}

_CELLS_COLUMNS = {"model", "setting", "accuracy", "n", "top5", "category", "class_space"}
_PREDICTION_COLUMNS = {"file_name", "predicted_class", "predicted_probability"}


@dataclass(frozen=True)
class Imported:
    """What an import brought: where it is kept, and how much it is."""

    path: Path
    format: Format
    models: int
    settings: int
    cells: int
    #: What a careful reader should know: sentences.
    notes: tuple[str, ...] = ()


def read_imported(results: str | Path) -> pa.Table:
    """Return all imported cells of a results directory; no rows where there are none.

    >>> read_imported("nowhere").num_rows
    0
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    from shiftbed.results.schema import CELLS

    tables = []
    for path in sorted((Path(results) / "imported").glob("*.parquet")):
        try:
            table = pq.read_table(path)
            if "clean" not in table.column_names:
                table = table.append_column("clean", pa.nulls(len(table), pa.string()))
            tables.append(table.select(CELLS.names).cast(CELLS))
        except (pa.ArrowInvalid, pa.ArrowKeyError, KeyError, ValueError, OSError) as problem:
            reason = str(problem).splitlines()[0]
            raise InputError(
                f"{path} is not an import of this version ({reason}); import it again or delete it"
            ) from None
    return pa.concat_tables(tables) if tables else CELLS.empty_table()


def import_results(
    source: str | Path,
    results: str | Path,
    *,
    format: Format | None = None,
    name: str | None = None,
    model: str | None = None,
    setting: str | None = None,
    labels: str | Path | None = None,
) -> Imported:
    """Read published results from ``source`` into the results directory ``results``.

    The format is detected unless given. ``name`` is the import's own, by default that of the
    file. ``setting`` says what a timm file or a file of predictions was measured on where its
    name does not; ``model`` and ``labels`` (a CSV of ``file_name,label``) belong to
    predictions.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "mine.csv").write_text("model,setting,accuracy,n\\nnet,photos,81.5,200\\n")
    >>> import_results(folder / "mine.csv", folder / "results").cells
    1
    >>> read_imported(folder / "results").to_pylist()[0]["correct"]
    163
    """
    import pyarrow as pa

    from shiftbed.results.schema import CELLS

    source = Path(source)
    if format is None:
        format = detect_format(source)
    elif format not in get_args(Format):
        raise unknown("format", format, get_args(Format))
    for option, given, belongs in (
        ("labels", labels, ("predictions",)),
        ("model", model, ("predictions",)),
        ("setting", setting, ("predictions", "timm")),
    ):
        if given is not None and format not in belongs:
            raise InputError(f"a {format} file says its {option} itself; leave --{option} out")
    name = _import_name(source if name is None else name)

    notes: list[str] = []
    if format == "testbed":
        rows = _testbed_rows(source, notes)
    elif format == "timm":
        rows = _timm_rows(source, setting)
    elif format == "cells":
        rows = _cells_rows(source)
    else:
        rows = _prediction_rows(source, model, setting, labels, notes)
    defaults = {"metric": "top1", "origin": "imported", "source": name, "complete": True}
    cells = [{**defaults, **row} for row in rows]
    if not cells:
        raise InputError(f"{source} has no results below its header")
    _check_cells(source, cells)

    path = Path(results) / "imported" / f"{name}.parquet"
    _write(pa.Table.from_pylist(cells, schema=CELLS), path)
    return Imported(
        path=path,
        format=format,
        models=len({cell["model"] for cell in cells}),
        settings=len({cell["setting"] for cell in cells}),
        cells=len(cells),
        notes=tuple(notes),
    )


def detect_format(source: Path) -> Format:
    """Tell by its columns what a file of published results is.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "mine.csv"
    >>> _ = path.write_text("model,setting,accuracy\\nnet,photos,81.5\\n")
    >>> detect_format(path)
    'cells'
    """
    if source.is_dir():
        if (source / "top1.csv").exists():
            return "testbed"
        raise InputError(
            f"{source} is a folder without a top1.csv; give one of its files, "
            "or the folder of the ImageNet testbed's grid"
        )
    header = set(next(_lines(source))[1])
    if header >= {"model", "setting", "accuracy"}:
        return "cells"
    if header >= {"model", "img_size", "top1"}:
        return "timm"
    if header >= {"file_name", "predicted_class"}:
        return "predictions"
    if "model" in header and header & _TESTBED.keys():
        return "testbed"
    raise InputError(
        f"{source} has the columns {_some(sorted(header))}, which is none of the known formats: "
        "'model,setting,accuracy,n', timm's 'model,img_size,top1,...', "
        "'file_name,predicted_class,predicted_probability', or a testbed's 'model,val,...'"
    )


# The formats: each reader yields rows for CELLS.


def _testbed_rows(source: Path, notes: list[str]) -> Iterator[dict[str, Any]]:
    folder = source if source.is_dir() else source.parent
    grid = folder / "top1.csv" if source.is_dir() else source
    categories = {}
    if (folder / "models.csv").exists():
        table = _rows(folder / "models.csv", {"model", "category"})
        categories = {
            row["model"]: _optional(folder / "models.csv", line, "category", row)
            for line, row in table
        }
    else:
        notes.append(
            "there is no models.csv beside the grid, so its models have no category, "
            "and no study knows which of them are the standard ones"
        )

    columns: dict[str, list[tuple[str, float]]] = {}
    seen: set[str] = set()
    for line, row in _rows(grid, {"model"}):
        model = _name(grid, line, "model", row.pop("model"))
        if model in seen:
            raise InputError(f"{grid}, line {line}: model {model!r} is there twice")
        seen.add(model)
        for column, text in row.items():
            if text:
                value = _number(grid, line, column, text, 100)
                columns.setdefault(column, []).append((model, value / 100))

    for column, values in columns.items():
        setting, n = _testbed_setting(column)
        if n is not None and not _counts_of(n, [accuracy for _, accuracy in values]):
            notes.append(
                f"the accuracies on {setting} are not counts out of {n:,}, "
                "so its number of pictures is left open"
            )
            n = None
        for model, accuracy in values:
            yield {
                "model": model,
                "setting": setting,
                "n": n,
                "correct": None if n is None else round(accuracy * n),
                "accuracy": accuracy if n is None else round(accuracy * n) / n,
                "category": categories.get(model),
            }


def _testbed_setting(column: str) -> tuple[str, int | None]:
    """Return our name of a testbed's setting, and its number of pictures if that is known.

    Corruptions computed on the fly and the stored data set, which went through JPEG once more,
    are different settings: a ResNet-50's accuracies on the two differ by up to 24 points.

    >>> _testbed_setting("imagenet-c.fog.3_in-memory"), _testbed_setting("imagenet-c.fog.3_on-disk")
    (('imagenet-val+fog.3', 50000), ('imagenet-c.fog.3', 50000))
    >>> _testbed_setting("pgd.linf.eps0.5")
    ('imagenet-val+pgd.linf.0.5', 50000)
    """
    if column in _TESTBED:
        return _TESTBED[column]
    if found := re.fullmatch(r"imagenet-c\.(\w+\.[1-5])_(in-memory|on-disk)", column):
        prefix = "imagenet-val+" if found[2] == "in-memory" else "imagenet-c."
        return prefix + found[1], 50_000
    if found := re.fullmatch(r"pgd\.(linf|l2)\.eps([\d.]+)", column):
        return f"imagenet-val+pgd.{found[1]}.{found[2]}", 50_000
    return column, None


def _timm_rows(source: Path, setting: str | None) -> Iterator[dict[str, Any]]:
    n = None
    if setting is None:
        found = re.fullmatch(r"results-(.+)\.csv", source.name)
        if not found or found[1] not in _TIMM:
            raise InputError(
                f"the name {source.name} does not say what was measured; "
                "say it with --setting, like --setting imagenet-val"
            )
        setting, n = _TIMM[found[1]]
    for line, row in _rows(source, {"model", "img_size", "top1"}):
        accuracy = _number(source, line, "top1", row["top1"], 100) / 100
        size = _number(source, line, "img_size", row["img_size"], 100_000)
        top5 = row.get("top5")
        yield {
            # A name comes with several image sizes, each of which is a model of its own.
            "model": f"timm:{_name(source, line, 'model', row['model'])}@{size:.0f}",
            "setting": setting,
            "n": n,
            "correct": None if n is None else round(accuracy * n),
            "accuracy": accuracy,
            "top5": _number(source, line, "top5", top5, 100) / 100 if top5 else None,
        }


def _cells_rows(source: Path) -> Iterator[dict[str, Any]]:
    rows = list(_rows(source, {"model", "setting", "accuracy"}))
    surplus = {key for _, row in rows[:1] for key in row} - _CELLS_COLUMNS
    if surplus:
        raise unknown(f"column for {source.name}", sorted(surplus)[0], _CELLS_COLUMNS)
    values = [_number(source, line, "accuracy", row["accuracy"], 100) for line, row in rows]
    # Percent or fractions: a whole file is one or the other.
    said = any(row["accuracy"].endswith("%") for _, row in rows)
    scale = 100.0 if said or any(value > 1 for value in values) else 1.0
    for (line, row), value in zip(rows, values, strict=True):
        accuracy = value / scale
        n = _count(source, line, row["n"]) if row.get("n") else None
        yield {
            "model": _name(source, line, "model", row["model"]),
            "setting": _name(source, line, "setting", row["setting"]),
            "n": n,
            "correct": None if n is None else round(accuracy * n),
            "accuracy": accuracy,
            "top5": (
                _number(source, line, "top5", row["top5"], scale) / scale
                if row.get("top5")
                else None
            ),
            "category": _optional(source, line, "category", row),
            "class_space": _optional(source, line, "class_space", row),
        }


def _prediction_rows(
    source: Path,
    model: str | None,
    setting: str | None,
    labels: str | Path | None,
    notes: list[str],
) -> Iterator[dict[str, Any]]:
    truth = None if labels is None else _read_labels(Path(labels))
    correct = n = 0
    seen: set[str] = set()
    for line, row in _rows(source, {"file_name", "predicted_class"}):
        picture = _name(source, line, "file_name", row["file_name"])
        if picture in seen:
            raise InputError(f"{source}, line {line}: picture {picture!r} is there twice")
        seen.add(picture)
        if row.get("predicted_probability"):
            column = "predicted_probability"
            _number(source, line, column, row[column], 1)
        label = _folder_label(source, line, picture) if truth is None else truth.get(picture)
        if label is None:
            raise InputError(f"{source}, line {line}: {labels} has no label for {picture!r}")
        n += 1
        correct += _class_key(row["predicted_class"]) == label
    if truth is not None and len(truth) > n:
        notes.append(
            f"{len(truth) - n:,} of the {len(truth):,} labelled pictures have no prediction, "
            "so the cell is marked incomplete"
        )
    if n:
        yield {
            "model": model or source.stem,
            "setting": setting or "imagenet-val",
            "n": n,
            "correct": correct,
            "accuracy": correct / n,
            "complete": truth is None or len(truth) == n,
        }


def _read_labels(path: Path) -> dict[str, str]:
    labels: dict[str, str] = {}
    for line, row in _rows(path, {"file_name", "label"}):
        picture = _name(path, line, "file_name", row["file_name"])
        if picture in labels:
            raise InputError(f"{path}, line {line}: picture {picture!r} is there twice")
        labels[picture] = _class_key(_name(path, line, "label", row["label"]))
    if not labels:
        raise InputError(f"{path} has no labels below its header")
    return labels


def _class_key(text: str) -> str:
    """Return one spelling for a class: its number, where it is ImageNet's WordNet id too.

    >>> _class_key("n01440764"), _class_key(" 7 "), _class_key("7.0"), _class_key("my class")
    ('0', '7', '7', 'my class')
    """
    text = text.strip()
    if re.fullmatch(r"n\d{8}", text):
        from shiftbed.data.imagenet import imagenet_classes

        classes = imagenet_classes()
        return str(classes.index(text)) if text in classes else text
    return text.removesuffix(".0") if re.fullmatch(r"\d+\.0", text) else text


def _folder_label(source: Path, line: int, picture: str) -> str:
    found = re.search(r"(?:^|[/\\])(n\d{8})[/\\_]|^(n\d{8})_", picture)
    if not found:
        raise InputError(
            f"{source}, line {line}: {picture!r} does not say its class in its folder; "
            "give the true classes with --labels, a CSV of file_name,label"
        )
    return _class_key(found[1] or found[2])


# Reading text that anybody may have written.


def _lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield (line number, fields), the header first, with every fault told in a sentence."""
    try:
        size = path.stat().st_size
    except OSError as problem:
        raise InputError(f"cannot read {path} ({problem.strerror})") from None
    if path.is_dir():
        raise InputError(f"{path} is a folder; expected a CSV file")
    if size > _MAX_BYTES:
        raise InputError(
            f"{path} has {size / 2**20:,.0f} MiB; an import reads at most {_MAX_BYTES / 2**20:.0f}"
        )
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, strict=True)
            header = [field.strip() for field in next(reader, [])]
            if not any(header):
                raise InputError(f"{path} is empty; expected a CSV file with a header")
            twice = [column for column, count in Counter(header).items() if count > 1]
            if twice:
                raise InputError(f"{path} has the column {twice[0]!r} twice")
            yield 1, header
            for count, fields in enumerate(reader, start=1):
                if not any(fields):
                    continue
                if count > _MAX_ROWS:
                    raise InputError(f"{path} has more than {_MAX_ROWS:,} rows; split it")
                if len(fields) != len(header):
                    raise InputError(
                        f"{path}, line {reader.line_num}: {len(fields)} fields, "
                        f"but the header has {len(header)}"
                    )
                yield reader.line_num, fields
    except OSError as problem:
        raise InputError(f"cannot read {path} ({problem.strerror})") from None
    except UnicodeDecodeError:
        raise InputError(f"{path} is not text in UTF-8; expected a CSV file") from None
    except csv.Error as problem:
        raise InputError(f"{path} is not a well-formed CSV file ({problem})") from None


def _rows(path: Path, needed: set[str]) -> Iterator[tuple[int, dict[str, str]]]:
    lines = _lines(path)
    _, header = next(lines)
    missing = needed - set(header)
    if missing:
        raise InputError(
            f"{path} has no column {sorted(missing)[0]!r}; its columns are {_some(header)}"
        )
    for line, fields in lines:
        yield line, dict(zip(header, (field.strip() for field in fields), strict=True))


def _number(path: Path, line: int, column: str, text: str, most: float) -> float:
    try:
        # Thousands may be set off by commas, and percent may say so.
        value = float(text.replace(",", "").removesuffix("%"))
    except ValueError:
        raise InputError(f"{path}, line {line}: {column} is {text!r}, not a number") from None
    if not math.isfinite(value) or not 0 <= value <= most:
        raise InputError(
            f"{path}, line {line}: {column} is {text}; it must lie between 0 and {most:g}"
        )
    return value


def _count(path: Path, line: int, text: str) -> int:
    value = _number(path, line, "n", text, 1e12)
    if value < 1 or value != int(value):
        raise InputError(f"{path}, line {line}: n is {text}; expected a whole number of pictures")
    return int(value)


def _name(path: Path, line: int, column: str, text: str) -> str:
    if not text:
        raise InputError(f"{path}, line {line}: {column} is empty")
    if len(text) > _MAX_NAME or not text.isprintable():
        raise InputError(
            f"{path}, line {line}: {column} is no name: it has "
            + (f"{len(text):,} characters" if len(text) > _MAX_NAME else "unprintable characters")
        )
    return text


def _optional(path: Path, line: int, column: str, row: dict[str, str]) -> str | None:
    text = row.get(column)
    return _name(path, line, column, text) if text else None


def _counts_of(n: int, accuracies: list[float]) -> bool:
    """Say whether every accuracy is k/n, as precisely as a 32-bit float can tell."""
    return all(abs(a * n - round(a * n)) <= 1e-7 * n + 1e-9 for a in accuracies)


def _check_cells(source: Path, cells: list[dict[str, Any]]) -> None:
    pairs = Counter((cell["model"], cell["setting"]) for cell in cells)
    (model, setting), most = pairs.most_common(1)[0]
    if most > 1:
        raise InputError(f"{source} has {most} results of {model!r} on {setting!r}; keep one")


def _import_name(source: str | Path) -> str:
    stem = source if isinstance(source, str) else (source.resolve().stem or "import")
    name = re.sub(r"[^\w.-]+", "-", stem).strip("-.")
    if not name or len(name) > 100:
        raise InputError(
            f"{stem!r} cannot name an import; use up to 100 letters, digits, '-', '_' or '.'"
        )
    return name


def _some(columns: list[str]) -> str:
    more = f" and {len(columns) - 6} more" if len(columns) > 6 else ""
    return ", ".join(column[:40] for column in columns[:6]) + more


def _write(table: pa.Table, path: Path) -> None:
    import pyarrow.parquet as pq

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, scratch = tempfile.mkstemp(prefix=".", suffix=".part", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                pq.write_table(table, file, compression="zstd")
            Path(scratch).chmod(0o644)
            Path(scratch).replace(path)
        finally:
            Path(scratch).unlink(missing_ok=True)
    except OSError as problem:
        raise InputError(f"cannot write {path} ({problem.strerror})") from None
