"""Checking a results directory, and removing what nobody needs."""

from __future__ import annotations

import shutil
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from shiftbed.assets import sha256_of
from shiftbed.errors import InputError, unknown
from shiftbed.results._files import sweep
from shiftbed.results.manifest import Manifest
from shiftbed.results.store import Store

__all__ = ["Fault", "collect_garbage", "verify"]


@dataclass(frozen=True)
class Fault:
    """Something in a results directory that is not as it was written."""

    path: Path
    problem: str


def verify(path: str | Path, *, repair: bool = False) -> list[Fault]:
    """Check every file against its record; with ``repair``, remove what is damaged.

    What was removed is made again by running the same evaluation again.

    >>> verify("nowhere")
    []
    """
    store = Store(path)
    faults: list[Fault] = []
    for folder in sorted((store.path / "cells").glob("*")):
        damaged = _cell_faults(store, folder)
        faults += damaged
        if repair and damaged:
            shutil.rmtree(folder)
    for ids in sorted((store.path / "pictures").glob("*.parquet")):
        problem = _unreadable(ids)
        if problem:
            faults.append(Fault(ids, problem))
            if repair:
                ids.unlink()
    return faults


def _cell_faults(store: Store, folder: Path) -> list[Fault]:
    try:
        manifest = store.manifest(folder.name)
    except (InputError, UnicodeDecodeError) as damage:
        return [Fault(folder / "manifest.json", str(damage))]
    if manifest is None:
        return [Fault(folder, "has no manifest.json")]
    if manifest.key != folder.name:
        return [Fault(folder, f"is the folder of another cell, {manifest.key}")]
    if not (store.path / "pictures" / f"{manifest.identity.pictures}.parquet").exists():
        return [Fault(folder, "has no list of its pictures in pictures/")]
    faults = []
    for name, digest in manifest.files.items():
        if not (folder / name).exists():
            faults.append(Fault(folder / name, "is missing"))
        elif sha256_of(folder / name) != digest:
            faults.append(Fault(folder / name, "is not what was written: its SHA-256 differs"))
    for part in sorted([*folder.glob("part-*.parquet"), *folder.glob("logits-*.parquet")]):
        problem = _unreadable(part)
        if problem:
            faults.append(Fault(part, problem))
    return faults


def _unreadable(path: Path) -> str:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        pq.read_table(path)
    except (pa.ArrowException, OSError) as problem:
        return f"cannot be read: {str(problem).splitlines()[0]}"
    return ""


def collect_garbage(
    path: str | Path,
    *,
    models: Collection[str] = (),
    settings: Collection[str] = (),
    cells: Collection[str] = (),
) -> list[Path]:
    """Remove leftovers of killed runs, id lists that no cell uses, and the cells named.

    A cell is named by its key, or by model, setting or both. Returns what was removed.

    >>> collect_garbage("nowhere")
    []
    """
    store = Store(path)
    removed = sweep(store.path)
    manifests = list(store.manifests())
    _known("model", models, {one.identity.model for one in manifests})
    _known("setting", settings, {one.identity.setting for one in manifests})
    _known("cell", cells, {one.key for one in manifests})
    kept = set()
    for manifest in manifests:
        if _named(manifest, models, settings, cells):
            shutil.rmtree(store.folder(manifest.key))
            removed.append(store.folder(manifest.key))
        else:
            kept.add(manifest.identity.pictures)
            removed += _superseded(store.folder(manifest.key), manifest)
    for ids in sorted((store.path / "pictures").glob("*.parquet")):
        if ids.stem not in kept:
            ids.unlink()
            removed.append(ids)
    return removed


def _known(kind: str, given: Collection[str], known: Collection[str]) -> None:
    for name in given:
        if name not in known:
            raise unknown(f"{kind} in the results", name, known)


def _named(
    manifest: Manifest, models: Collection[str], settings: Collection[str], cells: Collection[str]
) -> bool:
    if manifest.key in cells:
        return True
    if not models and not settings:
        return False
    identity = manifest.identity
    return (not models or identity.model in models) and (
        not settings or identity.setting in settings
    )


def _superseded(folder: Path, manifest: Manifest) -> list[Path]:
    """Remove parts that a complete cell's files hold already."""
    if not manifest.complete:
        return []
    parts = list(folder.glob("part-*.parquet"))
    if "logits.parquet" in manifest.files:
        parts += folder.glob("logits-*.parquet")
    for part in parts:
        part.unlink()
    return parts
