"""Writing cells: parts while they are computed, one file when they are whole.

::

    results/
      cells/KEY/manifest.json         what the cell is; its counts once it is complete
      cells/KEY/part-00003.parquet    a slice's rows, while the cell is incomplete
      cells/KEY/predictions.parquet   all rows, once it is complete
      cells/KEY/logits.parquet        with --keep logits (logits-00003.parquet before)
      cells/KEY/timing.json           the only file that differs between two equal runs
      pictures/FINGERPRINT.parquet    ids and labels of an image set's pictures, in order
      imported/NAME.parquet           cells that were measured elsewhere

KEY is a hash of all that the cell depends on, so copying one results directory over another
merges them, and two processes that compute the same cell write the same bytes.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shiftbed.assets import sha256_of
from shiftbed.errors import InputError
from shiftbed.results._files import read_text, rows_of, sweep, write_atomically
from shiftbed.results.manifest import Counts, Manifest
from shiftbed.results.packing import pack

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

    from shiftbed.data import Frames, Labels

__all__ = ["Store"]

SKIPPED = b"skipped"


class Store:
    """The writing side of a results directory.

    >>> import tempfile
    >>> store = Store(tempfile.mkdtemp())
    >>> list(store.manifests())
    []
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    # What is there

    def pictures(self, fingerprint: str) -> Path:
        """Where an image set's ids are."""
        return self.path / "pictures" / f"{fingerprint}.parquet"

    def labels(self, fingerprint: str) -> npt.NDArray[np.int32] | None:
        """Return an image set's labels, -1 where there is none, if it has one for each picture."""
        import pyarrow as pa

        pictures = rows_of(self.pictures(fingerprint))
        if "label" not in pictures.column_names:
            return None
        labels: npt.NDArray[np.int32] = pictures["label"].cast(pa.int32()).fill_null(-1).to_numpy()
        return labels

    def folder(self, key: str) -> Path:
        """Where a cell's files are."""
        return self.path / "cells" / key

    def manifests(self) -> Iterator[Manifest]:
        """Yield every cell's manifest, in the order of the keys."""
        for path in sorted((self.path / "cells").glob("*/manifest.json")):
            yield Manifest.from_json(read_text(path), str(path))

    def manifest(self, key: str) -> Manifest | None:
        """Return one cell's manifest, or None if the cell was never begun."""
        path = self.folder(key) / "manifest.json"
        if not path.exists():
            return None
        return Manifest.from_json(read_text(path), str(path))

    def missing(self, key: str, slices: int, keep_logits: bool) -> list[int]:
        """Return which slices of a cell are still to be computed."""
        folder, kinds = self.folder(key), ["part", "logits"] if keep_logits else ["part"]
        whole = {"part": "predictions.parquet", "logits": "logits.parquet"}
        return [
            number
            for number in range(slices)
            if not all(
                (folder / whole[kind]).exists() or (folder / f"{kind}-{number:05}.parquet").exists()
                for kind in kinds
            )
        ]

    # Writing

    def sweep(self) -> list[Path]:
        """Remove what runs that were killed left: half-written files, and parts of whole ones."""
        removed = sweep(self.path)
        for kind, whole in (("part", "predictions.parquet"), ("logits", "logits.parquet")):
            for part in sorted(self.path.glob(f"cells/*/{kind}-*.parquet")):
                manifest = self.manifest(part.parent.name)
                if manifest is not None and whole in manifest.files:
                    part.unlink(missing_ok=True)
                    removed.append(part)
        return removed

    def begin(self, manifest: Manifest) -> None:
        """Record what a cell is, before its first part."""
        path = self.folder(manifest.key) / "manifest.json"
        if not path.exists():
            self._write_text(path, manifest.to_json())

    def write_pictures(
        self,
        fingerprint: str,
        ids: Sequence[str],
        frames: Frames | None = None,
        labels: Labels | None = None,
    ) -> None:
        """Keep an image set's ids, labels and frame sets once for all the cells that show it.

        Pictures that may have several labels each keep none here.
        """
        path = self.pictures(fingerprint)
        if not path.exists():
            import numpy as np
            import pyarrow as pa

            # File names need not be text; ids in tables are.
            texts = [name.encode("utf-8", "backslashreplace").decode() for name in ids]
            table = pa.table({"picture": pa.array(texts, pa.string())})
            if labels is not None and labels.ndim == 1:
                known = pa.array(labels.astype(np.int32), mask=np.less(labels, 0))
                table = table.append_column("label", known)
            if frames is not None:
                table = table.append_column("frame_set", pa.array(frames.sets, pa.string()))
                table = table.append_column("offset", pa.array(frames.offsets, pa.int64()))
            self._write_table(path, table)

    def write_part(
        self,
        key: str,
        number: int,
        rows: pa.Table,
        skipped: Sequence[tuple[str, str]],
        logits: npt.NDArray[np.float32] | None = None,
    ) -> None:
        """Write one slice's rows, and what could not be scored in it."""
        folder = self.folder(key)
        if logits is not None and not (folder / "logits.parquet").exists():
            self._write_table(folder / f"logits-{number:05}.parquet", _logit_table(rows, logits))
        if not (folder / "predictions.parquet").exists():
            noted = rows.replace_schema_metadata({SKIPPED: json.dumps(list(skipped))})
            self._write_table(folder / f"part-{number:05}.parquet", noted)

    def finish(
        self,
        manifest: Manifest,
        slices: int,
        labelled: bool,
        keep_logits: bool,
        timing: dict[str, Any],
    ) -> Manifest:
        """Join a cell's parts into one file, and complete its manifest."""
        folder = self.folder(manifest.key)
        rows = self._join(manifest, "part", "predictions.parquet", slices)
        if keep_logits:
            self._join(manifest, "logits", "logits.parquet", slices)
        skipped = [tuple(pair) for pair in json.loads(rows.schema.metadata[SKIPPED])]
        ranks = rows["rank_true"].drop_null().to_numpy()
        unscored = rows["rank_true"].null_count if labelled else 0
        complete = dataclasses.replace(
            manifest,
            counts=Counts(
                pictures=len(rows) + len(skipped),
                scored=len(rows) - unscored,
                correct=int((ranks == 1).sum()) if labelled else None,
                top5=int((ranks <= 5).sum()) if labelled else None,
            ),
            skipped=tuple(skipped),
            files={
                path.name: sha256_of(path)
                for path in sorted(folder.glob("*.parquet"))
                if path.name in ("predictions.parquet", "logits.parquet")
            },
        )
        times = json.dumps(timing, indent=1, sort_keys=True)
        self._write_text(folder / "timing.json", times, flush=False)
        self._write_text(folder / "manifest.json", complete.to_json())
        for path in [*folder.glob("part-*.parquet"), *folder.glob("logits-*.parquet")]:
            path.unlink(missing_ok=True)
        return complete

    def _join(self, manifest: Manifest, kind: str, name: str, slices: int) -> pa.Table:
        import pyarrow as pa

        folder = self.folder(manifest.key)
        whole = folder / name
        try:
            if not whole.exists():
                parts = [rows_of(folder / f"{kind}-{n:05}.parquet") for n in range(slices)]
                table = pa.concat_tables([part.replace_schema_metadata() for part in parts])
                if kind == "part":
                    skipped = [pair for part in parts for pair in json.loads(_noted(part))]
                    table = table.replace_schema_metadata({SKIPPED: json.dumps(skipped)})
                    table = pack(table, self.labels(manifest.identity.pictures))
                self._write_table(whole, table)
        except FileNotFoundError:
            if not whole.exists():  # another process was not quicker: a part is gone
                raise
        return rows_of(whole)

    def _write_text(self, path: Path, text: str, *, flush: bool = True) -> None:
        write_atomically(
            self.path, path, lambda temporary: temporary.write_text(text, "utf-8"), flush=flush
        )

    def _write_table(self, path: Path, table: pa.Table) -> None:
        import pyarrow.parquet as pq

        encodings = {
            field.name: _ENCODINGS[field.name, str(field.type)]
            for field in table.schema
            if (field.name, str(field.type)) in _ENCODINGS
        }
        numbers = [f.name for f in table.schema if str(f.type) in ("int32", "uint8")]
        write_atomically(
            self.path,
            path,
            lambda temporary: pq.write_table(
                table,
                temporary,
                compression="zstd",
                compression_level=9,
                use_dictionary=[name for name in numbers if name not in encodings],
                column_encoding=encodings,
            ),
        )


#: Where a dictionary is not the smallest. Nothing for float16: DuckDB cannot read it split.
_ENCODINGS = {
    ("index", "int32"): "DELTA_BINARY_PACKED",
    ("rank_true", "int32"): "BYTE_STREAM_SPLIT",
    ("confidence", "double"): "BYTE_STREAM_SPLIT",
}


def _noted(part: pa.Table) -> bytes:
    try:
        noted: bytes = part.schema.metadata[SKIPPED]
    except (KeyError, TypeError):
        raise InputError(
            "a part of the results was not written by shiftbed; remove it with "
            "'shiftbed results verify --repair'"
        ) from None
    return noted


def _logit_table(rows: pa.Table, logits: npt.NDArray[np.float32]) -> pa.Table:
    import numpy as np
    import pyarrow as pa

    # Half precision ends at 65,504; a larger logit is that, not infinity.
    limit = float(np.finfo(np.float16).max)
    halves = np.clip(logits, -limit, limit).astype(np.float16)
    flat = pa.array(halves.ravel())
    return pa.table(
        {
            "index": rows["index"],
            "logits": pa.FixedSizeListArray.from_arrays(flat, halves.shape[1]),
        }
    )
