"""Pictures on the page: one under every corruption, and those that models get wrong.

Pictures are shown as small copies, in all at most a stated number of bytes. A shifted picture is
made again for the page: the central square at its benchmark's size, under the same corruption
with the same seed.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from shiftbed.corruptions import VARIANTS, corrupt
from shiftbed.corruptions.sheet import central_square
from shiftbed.data import ImageSet, Picture, UnreadablePicture, imagenet_names, list_sets, open_set
from shiftbed.errors import InputError
from shiftbed.report.sources import Sources
from shiftbed.results import Manifest
from shiftbed.settings import DataLike, given_sets
from shiftbed.studies.scoring import Benchmark

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Album", "examples", "galleries"]

#: The side of a thumbnail, and of the example under each corruption.
_SIDE, _EXAMPLE = 120, 112
#: At most so many pictures in one list of a gallery.
_LISTED = 8
#: Pairs are made of at most so many models.
_COMPARED = 6
#: Pictures smaller than this are kept pixel by pixel.
_TINY = 40
#: So many pictures are kept in memory.
_KEPT = 200


class Album:
    """The image sets at hand, and small copies of their pictures within a number of bytes."""

    def __init__(self, data: DataLike | None, budget: int) -> None:
        self.given = {images.name: images for images in given_sets(data)}
        self.left = budget
        self.copies: list[str] = []
        self._at: dict[tuple[str, str], int | None] = {}
        self._places: dict[str, dict[str, int]] = {}
        self._loaded: dict[tuple[str, int], Picture | None] = {}
        self._ready = {info.name: info for info in list_sets()}

    def images(self, name: str) -> ImageSet | None:
        """Return an image set that was given or is on this machine; nothing is fetched."""
        if name not in self.given:
            whole = name.partition("[")[0]  # a sample shows pictures of the whole
            info = self._ready.get(whole)
            if whole in self.given:
                self.given[name] = self.given[whole]
            elif info is not None and info.ready():
                self.given[name] = open_set(whole)
        return self.given.get(name)

    def place(self, images: ImageSet, picture: str) -> int | None:
        """Return where a picture is in its set."""
        if images.name not in self._places:
            self._places[images.name] = {one: at for at, one in enumerate(images.ids)}
        return self._places[images.name].get(picture)

    def copy(self, manifest: Manifest, images: ImageSet, picture: str) -> int | None:
        """Return the number of a picture's copy as a cell showed it; None: no room, or no file."""
        key = manifest.identity.setting, picture
        if key not in self._at:
            place = self.place(images, picture)
            pixels = None if place is None or self.left <= 0 else self.load(images, place)
            if pixels is not None:
                pixels = _as_shown(manifest, pixels, picture)
            self._at[key] = None if pixels is None else self.keep(pixels, _SIDE)
        return self._at[key]

    def load(self, images: ImageSet, place: int) -> Picture | None:
        """Return a picture, or None where it cannot be read; the last few hundred are kept."""
        key = images.name, place
        if key not in self._loaded:
            if len(self._loaded) >= _KEPT:
                self._loaded.clear()
            try:
                self._loaded[key] = images.load(place)
            except UnreadablePicture:
                self._loaded[key] = None
        return self._loaded[key]

    def keep(self, pixels: Picture, side: int) -> int:
        """Keep a small copy, and return its number."""
        self.copies.append(_embedded(pixels, side))
        self.left -= len(self.copies[-1])
        return len(self.copies) - 1


def _as_shown(manifest: Manifest, pixels: Picture, picture: str) -> Picture | None:
    shift = manifest.identity.shift or {}
    if "attack" in shift:  # its pixels depend on the model
        return None
    if "corruption" not in shift:
        return pixels
    severity = shift.get("severity")
    step = None if severity is None else int(severity)
    variant, seed = str(shift["variant"]), manifest.identity.seed or 0
    try:
        return _corrupted(pixels, str(shift["corruption"]), step, variant, seed, picture)
    except InputError:  # it needs an option
        return None


def _corrupted(
    pixels: Picture, corruption: str, severity: int | None, variant: str, seed: int, key: str
) -> Picture:
    square = central_square(pixels, VARIANTS[variant], grey=variant == "mnist-c")
    return corrupt(square, corruption, severity, variant=variant, seed=seed, key=key)


def _embedded(pixels: Picture, side: int) -> str:
    """Return a small copy as a data address."""
    image = Image.fromarray(pixels).convert("RGB" if pixels.ndim == 3 else "L")
    image.thumbnail((side, side), Image.Resampling.LANCZOS)
    sink = io.BytesIO()
    kind = "png" if max(image.size) <= _TINY else "jpeg"
    image.save(sink, kind, **({"optimize": True} if kind == "png" else {"quality": 78}))
    return f"data:image/{kind};base64,{base64.b64encode(sink.getvalue()).decode()}"


def examples(sources: Sources, album: Album) -> dict[str, Any]:
    """Return, for each benchmark, one picture clean and under each corruption and severity."""
    found = {}
    for benchmark in sources.benchmarks:
        images, manifest = _shown_on(sources, album, benchmark)
        picture = None if images is None else _first(images, album)
        if images is None or picture is None or album.left <= 0:
            continue
        shift = {} if manifest is None else manifest.identity.shift or {}
        variant = str(
            shift.get("variant", "mnist-c" if "mnist" in benchmark.name else "imagenet-c")
        )
        at, pixels = picture
        seed = 0 if manifest is None else manifest.identity.seed or 0
        rows: dict[str, list[int | None]] = {}
        for corruption, settings in benchmark.settings.items():
            rows[corruption] = []
            for setting in settings:
                step = setting.rpartition(".")[2]
                severity = int(step) if step.isdecimal() else None
                try:
                    copy = _corrupted(pixels, corruption, severity, variant, seed, images.ids[at])
                    rows[corruption].append(album.keep(copy, _EXAMPLE))
                except InputError:
                    rows[corruption].append(None)
        clean = central_square(pixels, VARIANTS[variant], grey=variant == "mnist-c")
        found[benchmark.name] = {
            "picture": images.ids[at],
            "images": images.name,
            "clean": album.keep(clean, _EXAMPLE),
            "corruptions": rows,
        }
    return found


def _shown_on(
    sources: Sources, album: Album, benchmark: Benchmark
) -> tuple[ImageSet | None, Manifest | None]:
    """Return the pictures of a benchmark if they are at hand, or else any that were given."""
    settings = {name for steps in benchmark.settings.values() for name in steps}
    for (_, setting), manifest in sorted(sources.manifests.items()):
        if setting in settings and manifest.identity.shift:
            images = album.images(str(manifest.spec.get("images")))
            if images is not None:
                return images, manifest
    return next(iter(album.given.values()), None), None


def _first(images: ImageSet, album: Album) -> tuple[int, Picture] | None:
    for at in range(min(len(images), 20)):
        pixels = album.load(images, at)
        if pixels is not None:
            return at, pixels
    return None


@dataclass(frozen=True)
class _Cell:
    """A measured cell's answers, by picture."""

    manifest: Manifest
    images: ImageSet
    ids: pa.Array
    index: npt.NDArray[np.int64]
    label: npt.NDArray[np.int64]
    said: npt.NDArray[np.int64]
    sure: npt.NDArray[np.float64]

    def by_index(self) -> dict[int, int]:
        return {int(index): row for row, index in enumerate(self.index)}


@dataclass
class _List:
    """Pictures that belong together, the most telling first, and how many there are in all."""

    kind: str
    setting: str
    models: tuple[str, ...]
    total: int
    rows: list[tuple[_Cell, list[Any]]]


def galleries(sources: Sources, album: Album) -> list[dict[str, Any]]:
    """Return lists of pictures: confident mistakes, lost under the shift, and disagreements.

    All lists get their first picture before any gets its second, until the bytes are used up.
    """
    lists = list(_lists(sources, album))
    kept: list[list[list[Any]]] = [[] for _ in lists]
    for rank in range(_LISTED):
        for number, one in enumerate(lists):
            if rank < len(one.rows):
                cell, entry = one.rows[rank]
                copy = album.copy(cell.manifest, cell.images, entry[0])
                if copy is not None:
                    kept[number].append([copy, *entry])
    return [
        {
            "kind": one.kind,
            "setting": one.setting,
            "models": one.models,
            "total": one.total,
            "rows": rows,
        }
        for one, rows in zip(lists, kept, strict=True)
        if rows
    ]


def _lists(sources: Sources, album: Album) -> Iterator[_List]:
    cleans: dict[tuple[str, str], _Cell | None] = {}
    for setting in sources.measured_settings():
        cells: dict[str, _Cell] = {}
        for model in sources.measured:
            cell = _cell(sources, album, model, setting)
            if cell is None:
                continue
            cells[model] = cell
            wrong = np.flatnonzero((cell.said != cell.label) & (cell.label >= 0))
            yield _listed("mistakes", setting, cell, wrong)
            clean = sources.cleans.get(setting)
            before = None
            if clean is not None:
                if (model, clean) not in cleans:
                    cleans[model, clean] = _cell(sources, album, model, clean)
                before = cleans[model, clean]
            if before is not None and before.manifest.identity.pictures == (
                cell.manifest.identity.pictures
            ):
                was = before.by_index()
                right = [
                    row
                    for row in wrong
                    if (at := was.get(int(cell.index[row]))) is not None
                    and before.said[at] == before.label[at]
                ]
                yield _listed("lost", setting, cell, np.array(right, int))
        for first, second in combinations(list(cells)[:_COMPARED], 2):
            yield _disagreements(setting, cells[first], cells[second])


def _cell(sources: Sources, album: Album, model: str, setting: str) -> _Cell | None:
    manifest = sources.manifests.get((model, setting))
    if manifest is None or not manifest.complete or manifest.metric not in ("top1", "agreement"):
        return None
    images = album.images(str(manifest.spec.get("images")))
    if images is None:
        return None
    rows = sources.results.rows(manifest)
    return _Cell(
        manifest,
        images,
        sources.results.pictures(manifest)["picture"],
        rows["index"].to_numpy().astype(np.int64),
        rows["label"].fill_null(-1).to_numpy().astype(np.int64),
        rows["class1"].to_numpy().astype(np.int64),
        rows["confidence"].to_numpy().astype(float),
    )


def _listed(kind: str, setting: str, cell: _Cell, rows: npt.NDArray[np.int64]) -> _List:
    order = rows[np.argsort(-cell.sure[rows], kind="stable")][:_LISTED]
    entries = [(cell, _entry(cell, int(row))) for row in order]
    return _List(kind, setting, (cell.manifest.identity.model,), len(rows), entries)


def _disagreements(setting: str, first: _Cell, second: _Cell) -> _List:
    there = second.by_index()
    pairs = [
        (row, there[int(index)])
        for row, index in enumerate(first.index)
        if int(index) in there and first.said[row] != second.said[there[int(index)]]
    ]
    pairs.sort(key=lambda pair: -min(first.sure[pair[0]], second.sure[pair[1]]))
    entries = [
        (first, [*_entry(first, row), *_entry(second, other)[2:]]) for row, other in pairs[:_LISTED]
    ]
    models = (first.manifest.identity.model, second.manifest.identity.model)
    return _List("disagreements", setting, models, len(pairs), entries)


def _entry(cell: _Cell, row: int) -> list[Any]:
    """Return the picture's id, its class, the class that was said, and how surely."""
    label, said = int(cell.label[row]), int(cell.said[row])
    labelled = label >= 0
    return [
        str(cell.ids[int(cell.index[row])]),
        _class_name(cell, label) if labelled else None,
        _class_name(cell, said),
        float(cell.sure[row]),
    ]


def _class_name(cell: _Cell, number: int) -> str:
    keys = cell.images.classes
    if cell.images.labels is None or number >= len(keys):
        return f"class {number}"
    names: Mapping[str, tuple[str, ...]] = imagenet_names()
    key = str(keys[number])
    return names[key][0] if key in names else key
