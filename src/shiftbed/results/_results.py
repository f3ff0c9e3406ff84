"""A results directory as tables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from shiftbed.errors import InputError, unknown
from shiftbed.results.manifest import Manifest
from shiftbed.results.store import Store

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

__all__ = ["Results"]


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
        if self.path.exists() and not self.path.is_dir():
            raise InputError(f"{self.path} is a file; results are a folder")

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

    def manifests(self) -> list[Manifest]:
        """Return what was recorded of every cell that was measured here."""
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
        rows = self._rows(manifest)
        names = pa.array([model] * len(rows)), pa.array([setting] * len(rows))
        pictures = self._picture_ids(manifest).take(rows["index"])
        columns = [*names, pictures, *rows.drop_columns(["index"]).columns]
        return pa.table(columns, schema=PREDICTIONS)

    def logits(self, model: str, setting: str) -> pa.Table:
        """Return the pictures of a cell with their logits, if these were kept."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        manifest = self._named(model, setting)
        paths = self._files(manifest, "logits")
        if not paths:
            raise InputError(
                f"no logits were kept for {model} on {setting}; evaluate again with --keep logits"
            )
        rows = pa.concat_tables([pq.read_table(path) for path in paths])
        pictures = self._picture_ids(manifest).take(rows["index"])
        return pa.table({"picture": pictures, "logits": rows["logits"]})

    def sql(self, query: str) -> pa.Table:
        """Ask DuckDB a question of the tables ``cells`` and ``predictions``."""
        import duckdb

        connection = self.connect()
        try:
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
        import pyarrow as pa

        from shiftbed.results.schema import STORED

        connection = duckdb.connect()
        files = [
            (str(path), manifest.identity.model, manifest.identity.setting, str(ids))
            for manifest in self._distinct().values()
            for ids in [self._picture_path(manifest)]
            for path in self._files(manifest, "part")
        ]
        connection.register("cells", self.cells())
        if not files:
            empty = STORED.remove(0).insert(0, pa.field("picture", pa.string()))
            for name in ("setting", "model"):
                empty = empty.insert(0, pa.field(name, pa.string()))
            connection.register("predictions", empty.empty_table())
            return connection
        parts = [[row[column] for row in files] for column in range(4)]
        names = ["part", "model", "setting", "ids"]
        connection.register("parts", pa.table(dict(zip(names, parts, strict=True))))
        kept = ", ".join(f"stored.{field.name}" for field in STORED if field.name != "index")
        connection.execute(
            f"""
            create view predictions as
            select parts.model, parts.setting, pictures.picture, {kept}
            from read_parquet({_listed(parts[0])}, filename = true) stored
            join parts on parts.part = stored.filename
            join read_parquet({_listed(parts[3])}, filename = true, file_row_number = true)
                pictures
                on pictures.filename = parts.ids
                and pictures.file_row_number = stored."index"
            """
        )
        return connection

    # One cell

    def _distinct(self) -> dict[tuple[str, str], Manifest]:
        cells: dict[tuple[str, str], Manifest] = {}
        for manifest in Store(self.path).manifests():
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
        cells = self._distinct()
        if (model, setting) in cells:
            return cells[model, setting]
        models = {name for name, _ in cells}
        if model not in models:
            raise unknown(f"model in {self.path}", model, models)
        settings = [name for owner, name in cells if owner == model]
        raise unknown(f"setting of {model} in {self.path}", setting, settings)

    def _files(self, manifest: Manifest, kind: str) -> list[Path]:
        folder = Store(self.path).folder(manifest.key)
        whole = folder / ("predictions.parquet" if kind == "part" else f"{kind}.parquet")
        return [whole] if whole.exists() else sorted(folder.glob(f"{kind}-*.parquet"))

    def _rows(self, manifest: Manifest) -> pa.Table:
        import pyarrow as pa
        import pyarrow.parquet as pq

        from shiftbed.results.schema import STORED

        parts = [pq.read_table(path) for path in self._files(manifest, "part")]
        if not parts:
            return STORED.empty_table()
        return pa.concat_tables([part.replace_schema_metadata() for part in parts])

    def _picture_path(self, manifest: Manifest) -> Path:
        return self.path / "pictures" / f"{manifest.identity.pictures}.parquet"

    def _picture_ids(self, manifest: Manifest) -> pa.ChunkedArray:
        import pyarrow.parquet as pq

        path = self._picture_path(manifest)
        if not path.exists():
            raise InputError(f"{path} is missing: run the evaluation again, and it is made again")
        return pq.read_table(path)["picture"]

    def _cell(
        self,
        manifest: Manifest,
        manifests: dict[tuple[str, str], Manifest],
        clean: dict[str, pa.Table],
    ) -> dict[str, Any]:
        identity, counts = manifest.identity, manifest.counts
        if manifest.metric == "agreement":
            unshifted = manifests.get((identity.model, str(manifest.spec.get("clean"))))
            n, correct = self._agreement(manifest, unshifted, clean)
            top5 = None
        elif counts is not None:
            n, correct, top5 = counts.scored, counts.correct, counts.top5
        else:
            ranks = self._rows(manifest)["rank_true"].drop_null().to_numpy()
            n, correct, top5 = len(ranks), int((ranks == 1).sum()), int((ranks <= 5).sum())
        return {
            "model": identity.model,
            "setting": identity.setting,
            "n": n,
            "correct": correct,
            "accuracy": None if correct is None or not n else correct / n,
            "top5": None if top5 is None or not n else top5 / n,
            "metric": manifest.metric,
            "class_space": manifest.class_space,
            "origin": "measured",
            "source": manifest.key,
            "category": manifest.tags.get("category"),
            "complete": manifest.complete,
        }

    def _agreement(
        self, manifest: Manifest, unshifted: Manifest | None, clean: dict[str, pa.Table]
    ) -> tuple[int, int | None]:
        """Return n, and for how many of these pictures the shift left the answer as it was."""
        import numpy as np

        shifted = self._rows(manifest)
        if unshifted is None or unshifted is manifest:
            return len(shifted), None
        if unshifted.key not in clean:
            clean[unshifted.key] = self._rows(unshifted)
        before = clean[unshifted.key]
        _, here, there = np.intersect1d(
            shifted["index"], before["index"], assume_unique=True, return_indices=True
        )
        same = shifted["class1"].to_numpy()[here] == before["class1"].to_numpy()[there]
        return len(same), int(same.sum())


def _listed(paths: list[str]) -> str:
    quoted = ("'" + path.replace("'", "''") + "'" for path in sorted(set(paths)))
    return f"[{', '.join(quoted)}]"
