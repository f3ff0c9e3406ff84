"""A results directory as tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from shiftbed.errors import InputError, unknown
from shiftbed.results._files import damaged, rows_of
from shiftbed.results._sql import File, create_predictions, listed
from shiftbed.results.judged import detected, judged, pm
from shiftbed.results.manifest import Manifest
from shiftbed.results.packing import runners_up, unpack
from shiftbed.results.store import Store

if TYPE_CHECKING:
    import duckdb
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

    from shiftbed.metrics import Detection, Estimate

    IntArray = npt.NDArray[np.int32]

__all__ = ["Results"]

T = TypeVar("T")


class Results:
    """A directory of cells, queried as tables.

    Tables are Arrow's: ``.to_pandas()`` and ``polars.from_arrow()`` turn them into yours.

    >>> import tempfile
    >>> results = Results(tempfile.mkdtemp())
    >>> results.cells().num_rows
    0
    >>> results.sql("select count(*) as pictures from predictions").to_pylist()
    [{'pictures': 0}]
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._recorded: tuple[Manifest, ...] | None = None
        if self.path.exists() and not self.path.is_dir():
            raise InputError(f"{self.path} is a file; results are a folder")
        self._known: dict[tuple[str, str], tuple[Manifest, tuple[int, int]]] = {}
        self._labels: dict[str, IntArray | None] = {}

    @classmethod
    def open(cls, path: str | Path) -> Results:
        """Return the results in a folder that must be there already."""
        if not any((Path(path) / part).is_dir() for part in ("cells", "imported")):
            raise InputError(
                f"there are no results in {path}; 'shiftbed eval ... -o {path}' makes some"
            )
        return cls(path)

    def __repr__(self) -> str:
        return f"Results({str(self.path)!r})"

    def snapshot(self) -> Results:
        """Return the results as they are now, whose records are read from the disk only once.

        For many questions in a row; cells that are measured later are not in it.

        >>> Results("nowhere").snapshot().cells().num_rows
        0
        """
        taken = Results(self.path)
        taken._recorded = tuple(self.manifests())
        return taken

    def manifests(self) -> list[Manifest]:
        """Return what was recorded of every cell that was measured here."""
        if self._recorded is not None:
            return list(self._recorded)
        return list(Store(self.path).manifests())

    def cells(self) -> pa.Table:
        """Return one row per cell, measured here or imported, sorted by model and setting."""
        import pyarrow as pa

        from shiftbed.results.imported import read_imported
        from shiftbed.results.schema import CELLS

        manifests = self._distinct()
        clean: dict[str, pa.Table] = {}
        rows = [self._cell(manifest, manifests, clean) for manifest in manifests.values()]
        measured = pa.Table.from_pylist(rows, schema=CELLS)
        table = pa.concat_tables([measured, read_imported(self.path).cast(CELLS)])
        return table.sort_by([("model", "ascending"), ("setting", "ascending")])

    def predictions(self, model: str, setting: str) -> pa.Table:
        """Return one row per picture of a cell, in the order of the image set."""
        import pyarrow as pa

        from shiftbed.results.schema import PREDICTIONS

        manifest = self._named(model, setting)
        rows = self.rows(manifest, others=True)
        names = pa.array([model] * len(rows)), pa.array([setting] * len(rows))
        pictures = self.pictures(manifest)["picture"].take(rows["index"])
        kept = [field.name for field in PREDICTIONS if field.name in rows.column_names]
        columns = [*names, pictures, *rows.select(kept).columns]
        return pa.table(columns, schema=PREDICTIONS)

    def answers(self, model: str, setting: str) -> pa.Table:
        """Return what scores need of a cell's pictures, and quickly: no names, one class."""
        return self.rows(self._named(model, setting))

    def logits(self, model: str, setting: str) -> pa.Table:
        """Return the pictures of a cell with their logits, if these were kept."""
        import pyarrow as pa

        manifest = self._named(model, setting)
        paths = self._files(manifest, "logits")
        if not paths:
            raise InputError(
                f"no logits were kept for {model} on {setting}; evaluate again with --keep logits"
            )
        rows = pa.concat_tables([rows_of(path) for path in paths])
        pictures = self.pictures(manifest)["picture"].take(rows["index"])
        return pa.table({"picture": pictures, "logits": rows["logits"]})

    def estimate(self, model: str, setting: str, level: float = 0.95) -> Estimate | None:
        """Return a cell's score by a metric that is no plain count, with its interval.

        That is AUPR, mAP or the accuracy on frame sets; None for the others.
        """
        manifest = self._named(model, setting)
        return judged(self, manifest, self._distinct().get((model, _usual(manifest))), level)

    def detection(
        self, model: str, setting: str, usual: str | None = None, level: float = 0.95
    ) -> Detection:
        """Return how well low confidence tells a cell's pictures from usual ones.

        Without ``usual``, the setting that the cell's image set names as that.
        """
        manifest = self._named(model, setting)
        if usual is None and "usual" not in manifest.spec:
            raise InputError(
                f"{setting} does not say which pictures are usual; name their setting, as in "
                "--usual imagenet-val"
            )
        other = self._named(model, usual or _usual(manifest))
        found = detected(self, other, manifest, level)
        if found is None:
            raise InputError(
                f"{setting} or {other.identity.setting} is incomplete or has fewer than two "
                "pictures; run the evaluation again"
            )
        return found

    def frames(self, model: str, setting: str, k: int, level: float = 0.95) -> Estimate:
        """Return the share of a cell's frame sets right on every frame within k: pm-k."""
        manifest = self._named(model, setting)
        found = pm(self, manifest, k, level) if manifest.complete else None
        if found is None:
            raise InputError(f"{model} on {setting} is incomplete, or no anchor could be read")
        return found

    def sql(self, query: str) -> pa.Table:
        """Ask DuckDB a question of the tables ``cells`` and ``predictions``, and of nothing else.

        A query, whoever wrote it, can neither read nor write other files, nor load extensions;
        `connect` gives a connection that can.
        """
        import duckdb

        connection = self.connect()
        try:
            files = [str(path) for path in self._read_by_queries()]
            connection.execute(f"set allowed_paths = {listed(files)}")
            connection.execute("set enable_external_access = false")
            connection.execute("set lock_configuration = true")
            answer = connection.sql(query)
            if answer is None:
                raise InputError("the query returns no table; it should be a select")
            return answer.to_arrow_table()
        except duckdb.Error as problem:
            raise InputError(f"DuckDB cannot run the query: {problem}") from None
        finally:
            connection.close()

    def connect(self) -> duckdb.DuckDBPyConnection:
        """Return a DuckDB connection with the views ``cells`` and ``predictions``."""
        import duckdb

        connection = duckdb.connect()
        connection.register("cells", self.cells())
        cells = self._distinct()
        labelled = {
            manifest.identity.pictures: "label" in self.pictures(manifest).column_names
            for manifest in {one.identity.pictures: one for one in cells.values()}.values()
        }
        files = {
            path: File(
                str(path),
                manifest.identity.model,
                manifest.identity.setting,
                str(self._picture_path(manifest)),
                _packed(path),
                labelled[manifest.identity.pictures],
            )
            for manifest in cells.values()
            for path in self._files(manifest, "part")
        }
        owners = {path: one for one in cells.values() for path in self._files(one, "part")}
        try:
            create_predictions(
                connection,
                list(files.values()),
                lambda path: self._unpacked(owners[path], path, runners_up),
            )
        except duckdb.Error as problem:
            raise InputError(
                f"a file in {self.path} is damaged ({str(problem).splitlines()[0]}); "
                "'shiftbed results verify --repair' removes what is"
            ) from None
        return connection

    def _read_by_queries(self) -> Iterator[Path]:
        for manifest in self._distinct().values():
            yield self._picture_path(manifest)
            yield from self._files(manifest, "part")

    # One cell

    def _distinct(self) -> dict[tuple[str, str], Manifest]:
        cells: dict[tuple[str, str], Manifest] = {}
        for manifest in self.manifests():
            identity = manifest.identity
            other = cells.setdefault((identity.model, identity.setting), manifest)
            if other is not manifest:
                raise InputError(
                    f"{self.path} holds two different cells for {identity.model} on "
                    f"{identity.setting}, which differ in "
                    f"{other.identity.difference(identity)}; remove one with 'shiftbed results "
                    f"gc {self.path} --cell {other.key}' or '--cell {manifest.key}'"
                )
        return cells

    def _named(self, model: str, setting: str) -> Manifest:
        known = self._known.get((model, setting))
        if known is not None and self._written(known[0]) == known[1]:
            return known[0]
        cells = self._distinct()
        self._known = {name: (one, self._written(one)) for name, one in cells.items()}
        if (model, setting) in cells:
            return cells[model, setting]
        models = {name for name, _ in cells}
        if model not in models:
            raise unknown(f"model in {self.path}", model, models)
        settings = [name for owner, name in cells if owner == model]
        raise unknown(f"setting of {model} in {self.path}", setting, settings)

    def _written(self, manifest: Manifest) -> tuple[int, int]:
        """When a cell's record was written, and its size: what changes with it."""
        try:
            found = (Store(self.path).folder(manifest.key) / "manifest.json").stat()
        except FileNotFoundError:
            return 0, 0
        return found.st_mtime_ns, found.st_size

    def _files(self, manifest: Manifest, kind: str) -> list[Path]:
        folder = Store(self.path).folder(manifest.key)
        whole = folder / ("predictions.parquet" if kind == "part" else f"{kind}.parquet")
        return [whole] if whole.exists() else sorted(folder.glob(f"{kind}-*.parquet"))

    def rows(self, manifest: Manifest, *, others: bool = False) -> pa.Table:
        """Return what is stored of a cell's pictures, done so far.

        The classes after the first of a complete cell are null, unless asked for.
        """
        import pyarrow as pa

        from shiftbed.results.schema import STORED

        paths = self._files(manifest, "part")
        if not paths:
            return STORED.empty_table()
        if _packed(paths[0]):
            how, without = partial(unpack, others=others), "" if others else "others"
            return self._unpacked(manifest, paths[0], how, without).replace_schema_metadata()
        parts = [rows_of(path, STORED) for path in paths]
        return pa.concat_tables([part.replace_schema_metadata() for part in parts])

    def _unpacked(
        self,
        manifest: Manifest,
        path: Path,
        how: Callable[[pa.Table, IntArray | None], T],
        without: str = "",
    ) -> T:
        """Read a complete cell's file with its pictures' labels."""
        import pyarrow as pa

        from shiftbed.results.schema import PACKED

        table = rows_of(path, without=without)
        try:
            there = [field for field in PACKED if field.name in table.column_names]
            for field in there:
                place = table.column_names.index(field.name)
                table = table.set_column(place, field, table[field.name].cast(field.type))
            pictures = manifest.identity.pictures
            if pictures not in self._labels:  # the fingerprint is of the labels too
                self._labels[pictures] = Store(self.path).labels(pictures)
            return how(table, self._labels[pictures])
        except (pa.ArrowException, KeyError, ValueError) as problem:
            raise damaged(path, problem) from None

    def _picture_path(self, manifest: Manifest) -> Path:
        return self.path / "pictures" / f"{manifest.identity.pictures}.parquet"

    def pictures(self, manifest: Manifest) -> pa.Table:
        """Return the ids of the pictures that a cell shows, and their frame sets if any."""
        import pyarrow as pa

        path = self._picture_path(manifest)
        if not path.exists():
            raise InputError(f"{path} is missing: run the evaluation again, and it is made again")
        return rows_of(path, pa.schema([("picture", pa.string())]))

    def _cell(
        self,
        manifest: Manifest,
        manifests: dict[tuple[str, str], Manifest],
        clean: dict[str, pa.Table],
    ) -> dict[str, Any]:
        identity, counts = manifest.identity, manifest.counts
        accuracy: float | None = None
        top5: int | None = None
        if manifest.metric not in ("top1", "agreement"):
            estimate = judged(self, manifest, manifests.get((identity.model, _usual(manifest))))
            n = estimate.n if estimate else self._scored(manifest)
            accuracy = estimate.value if estimate else None
            correct = None
            if estimate and manifest.metric.startswith("pm"):
                correct = round(estimate.value * estimate.n)
        elif manifest.metric == "agreement":
            unshifted = manifests.get((identity.model, str(manifest.spec.get("clean"))))
            n, correct = self._agreement(manifest, unshifted, clean)
        elif counts is not None:
            n, correct, top5 = counts.scored, counts.correct, counts.top5
        else:
            ranks = self.rows(manifest)["rank_true"].drop_null().to_numpy()
            n, correct, top5 = len(ranks), int((ranks == 1).sum()), int((ranks <= 5).sum())
        if correct is not None and n:
            accuracy = correct / n
        return {
            "model": identity.model,
            "setting": identity.setting,
            "n": n,
            "correct": correct,
            "accuracy": accuracy,
            "top5": None if top5 is None or not n else top5 / n,
            "metric": manifest.metric,
            "class_space": manifest.class_space,
            "origin": "measured",
            "source": manifest.key,
            "category": manifest.tags.get("category"),
            "complete": manifest.complete,
            "clean": manifest.spec.get("clean"),
        }

    def _scored(self, manifest: Manifest) -> int:
        return manifest.counts.scored if manifest.counts else len(self.rows(manifest))

    def _agreement(
        self, manifest: Manifest, unshifted: Manifest | None, clean: dict[str, pa.Table]
    ) -> tuple[int, int | None]:
        """Return n, and for how many of these pictures the shift left the answer as it was."""
        import numpy as np

        shifted = self.rows(manifest)
        same = unshifted is not None and unshifted.identity.pictures == manifest.identity.pictures
        if unshifted is None or unshifted is manifest or not same:
            return len(shifted), None
        if unshifted.key not in clean:
            clean[unshifted.key] = self.rows(unshifted)
        before = clean[unshifted.key]
        _, here, there = np.intersect1d(
            shifted["index"], before["index"], assume_unique=True, return_indices=True
        )
        kept = shifted["class1"].to_numpy()[here] == before["class1"].to_numpy()[there]
        return len(kept), int(kept.sum())


def _usual(manifest: Manifest) -> str:
    return str(manifest.spec.get("usual"))


def _packed(path: Path) -> bool:
    """Whether a file holds a complete cell's answers, in few bytes."""
    return path.name == "predictions.parquet"
