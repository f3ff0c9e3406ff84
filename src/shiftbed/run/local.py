"""The engine for one machine: some threads for the pictures, others for the models."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from itertools import chain, groupby
from threading import Lock

import numpy as np
import numpy.typing as npt

from shiftbed.attacks import Attack, attacked_logits
from shiftbed.data import ImageSet, UnreadablePicture
from shiftbed.errors import InputError
from shiftbed.models import Geometry, Model
from shiftbed.results import Store, answers
from shiftbed.run import threads
from shiftbed.run.plan import Cell, Plan, Unit
from shiftbed.settings import Shift

__all__ = [
    "COMPUTE_BATCH",
    "Ledger",
    "Progress",
    "Watch",
    "begin",
    "decode",
    "execute",
    "logits_of",
    "look_of",
    "shifted",
    "write_part",
]

#: Pictures that a model sees at once. Fixed, because a library may round differently for
#: another number, and the bytes of a result must not depend on how it was computed.
COMPUTE_BATCH = 32

Pictures = npt.NDArray[np.uint8]
#: How a model sees a batch of pictures.
Look = Callable[[Model, Pictures], npt.NDArray[np.float32]]


@dataclass(frozen=True)
class Progress:
    """A part that is done: one slice of one cell."""

    cell: Cell
    pictures: int
    scored: int
    #: None for pictures without labels.
    correct: int | None
    #: Those that could not be shown: (id, reason).
    skipped: tuple[tuple[str, str], ...] = ()
    #: The machine that did it, where there are several.
    node: str = ""


Watch = Callable[[Progress], None]


def execute(
    plan: Plan,
    store: Store,
    *,
    workers: int | None = None,
    batch_size: int = COMPUTE_BATCH,
    watch: Watch = lambda progress: None,
) -> None:
    """Compute what is missing of a plan and write it to the store.

    ``workers`` threads decode and corrupt, ``batch_size`` pictures at a time, ahead of the
    models by a few batches and no more. Neither changes what is stored.
    """
    workers = threads.cores() if workers is None else workers
    if workers < 1 or batch_size < 1:
        raise InputError(
            f"workers is {workers} and batch size {batch_size}; both must be at least 1"
        )
    begin(plan, store)
    ledger = Ledger(plan, store, {"workers": workers, "batch_size": batch_size})
    models = {cell.model for cell in plan.cells}
    pool = ThreadPoolExecutor(workers, thread_name_prefix="shiftbed-pictures")
    with threads.torch_threads(len(models)), _Lanes(models) as computing, _Writer() as writer:
        try:
            ready = threads.ahead(pool, _tasks(plan.units, plan.seed, batch_size), 2 * workers + 2)
            for _, batches in groupby(ready, key=lambda batch: id(batch.unit)):
                scored = _score(batches, computing, plan.seed)
                writer.submit(partial(_write, scored, plan, store, ledger, watch))
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def begin(plan: Plan, store: Store) -> None:
    """Record what the cells of a plan are, before their first parts."""
    store.sweep()
    for cell in plan.cells:
        store.begin(cell.manifest)
        images = cell.setting.images
        frames = getattr(images, "frames", None)
        store.write_pictures(cell.manifest.identity.pictures, images.ids, frames, images.labels)


# Pictures: decoded once, each geometry once, each shift once.


@dataclass(frozen=True)
class Decoded:
    """Consecutive pictures that could be read, in every geometry, and those that could not."""

    index: npt.NDArray[np.int32]
    skipped: list[tuple[str, str]]
    pictures: dict[Geometry, list[Pictures]]


def decode(images: ImageSet, indices: Iterable[int], geometries: Sequence[Geometry]) -> Decoded:
    """Read pictures and bring each to every geometry."""
    pictures: dict[Geometry, list[Pictures]] = {geometry: [] for geometry in geometries}
    read: list[int] = []
    skipped: list[tuple[str, str]] = []
    for index in indices:
        try:
            picture = images.load(index)
        except UnreadablePicture as problem:
            skipped.append((images.ids[index], problem.reason))
            continue
        read.append(index)
        for geometry in geometries:
            pictures[geometry].append(geometry.apply(picture))
    return Decoded(np.array(read, np.int32), skipped, pictures)


def shifted(unit: Unit, pictures: list[Pictures], ids: Iterable[str], seed: int) -> list[Pictures]:
    """Return a unit's pictures as its models see them, but for attacks."""
    how = unit.shift
    if not isinstance(how, Shift):
        return pictures
    from shiftbed.corruptions import corrupt

    return [
        corrupt(picture, how.corruption, how.severity, variant=how.variant, seed=seed, key=name)
        for picture, name in zip(pictures, ids, strict=True)
    ]


class _Chunk:
    """Consecutive pictures of an image set, decoded when first needed, in every geometry."""

    def __init__(self, images: ImageSet, indices: range, geometries: Sequence[Geometry]) -> None:
        self._images = images
        self._indices = indices
        self._geometries = geometries
        self._lock = Lock()
        self._decoded: Decoded | None = None

    def decoded(self) -> Decoded:
        """Return those that can be read."""
        with self._lock:
            if self._decoded is None:
                self._decoded = decode(self._images, self._indices, self._geometries)
            return self._decoded

    def ids(self) -> list[str]:
        """The ids of those that can be read."""
        ids = self._images.ids
        return [ids[int(index)] for index in self.decoded().index]


@dataclass(frozen=True, eq=False)
class _Batch:
    """Shifted pictures on their way to the models of a unit."""

    unit: Unit
    chunk: _Chunk
    pictures: list[Pictures]
    seconds: float


def _tasks(units: Iterable[Unit], seed: int, batch_size: int) -> Iterator[Callable[[], _Batch]]:
    """Yield the work that makes each batch, slice by slice, in the order of the units."""
    for _, group in groupby(units, key=lambda unit: (id(unit.images), unit.slice)):
        same_slice = list(group)
        first = same_slice[0]
        geometries = list(dict.fromkeys(unit.geometry for unit in same_slice))
        chunks = [
            _Chunk(first.images, first.indices[start : start + batch_size], geometries)
            for start in range(0, len(first.indices), batch_size)
        ]
        for unit in same_slice:
            for chunk in chunks:
                yield _Task(unit, chunk, seed)


@dataclass(frozen=True, eq=False)
class _Task:
    unit: Unit
    chunk: _Chunk
    seed: int

    def __call__(self) -> _Batch:
        begun = time.perf_counter()
        pictures = self.chunk.decoded().pictures[self.unit.geometry]
        pictures = shifted(self.unit, pictures, self.chunk.ids(), self.seed)
        return _Batch(self.unit, self.chunk, pictures, time.perf_counter() - begun)


# Models


class _Lanes:
    """Models beside each other, each in one thread at a time: it need not be thread-safe."""

    def __init__(self, models: Collection[Model]) -> None:
        self._pool = ThreadPoolExecutor(
            threads.lanes(len(models)), thread_name_prefix="shiftbed-model"
        )
        self._turn = {model: Lock() for model in models}
        self._running: list[Future[npt.NDArray[np.float32]]] = []
        self.seconds = dict.fromkeys(models, 0.0)

    def __enter__(self) -> _Lanes:
        return self

    def __exit__(self, *problem: object) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)

    def show(
        self, models: Iterable[Model], pictures: Sequence[Pictures], look: Look = Model.logits
    ) -> list[Future[npt.NDArray[np.float32]]]:
        """Have models see a batch, once they are done with the one before the last."""
        started = [self._pool.submit(self._compute, model, pictures, look) for model in models]
        for earlier in self._running:
            earlier.result()
        self._running = started
        return started

    def _compute(
        self, model: Model, pictures: Sequence[Pictures], look: Look
    ) -> npt.NDArray[np.float32]:
        with self._turn[model]:
            begun = time.perf_counter()
            logits = logits_of(model, pictures, look)
            self.seconds[model] += time.perf_counter() - begun
            return logits


@dataclass(frozen=True, eq=False)
class _Scored:
    """A unit's logits by model, for the pictures at ``places``."""

    unit: Unit
    places: npt.NDArray[np.int32]
    skipped: list[tuple[str, str]]
    logits: dict[Model, npt.NDArray[np.float32]]
    #: Of all threads together on the pictures, and of each model.
    preparing: float
    computing: dict[Model, float]


def _score(batches: Iterable[_Batch], lanes: _Lanes, seed: int) -> _Scored:
    """Show one unit's pictures to its models."""
    first, batches = _peek(batches)
    unit = first.unit
    models = list(dict.fromkeys(cell.model for cell in unit.cells))
    before = dict(lanes.seconds)
    shown: list[list[Future[npt.NDArray[np.float32]]]] = []
    index: list[npt.NDArray[np.int32]] = []
    skipped: list[tuple[str, str]] = []
    waiting: list[Pictures] = []
    preparing = 0.0

    def show(count: int) -> None:
        start = len(shown) * COMPUTE_BATCH
        places = np.concatenate(index)[start : start + count]
        shown.append(lanes.show(models, waiting[:count], look_of(unit, places, seed)))
        del waiting[:count]

    for batch in batches:
        index.append(batch.chunk.decoded().index)
        skipped += batch.chunk.decoded().skipped
        preparing += batch.seconds
        waiting += batch.pictures
        while len(waiting) >= COMPUTE_BATCH:
            show(COMPUTE_BATCH)
    if waiting:
        show(len(waiting))
    logits = {
        model: np.concatenate(
            [np.empty((0, model.outputs), np.float32), *(batch[i].result() for batch in shown)]
        )
        for i, model in enumerate(models)
    }
    seconds = {model: lanes.seconds[model] - before[model] for model in models}
    return _Scored(unit, np.concatenate(index), skipped, logits, preparing, seconds)


def _write(scored: _Scored, plan: Plan, store: Store, ledger: Ledger, watch: Watch) -> None:
    """Write a part for each of a unit's cells, and complete the cells that it was the last of."""
    for cell in scored.unit.cells:
        logits = scored.logits[cell.model]
        progress = write_part(
            store, cell, scored.unit, scored.places, scored.skipped, logits, plan.keep_logits
        )
        ledger.record(cell, scored.preparing, scored.computing[cell.model])
        watch(progress)


def write_part(
    store: Store,
    cell: Cell,
    unit: Unit,
    places: npt.NDArray[np.int32],
    skipped: Sequence[tuple[str, str]],
    logits: npt.NDArray[np.float32],
    keep_logits: bool,
) -> Progress:
    """Judge a model's logits for the pictures at ``places``, and write the cell's part."""
    labels = cell.setting.labels
    true = None if labels is None else labels[places]
    scores = logits if cell.space is None else cell.space.scores(logits)
    rows = answers(places, scores, true, whole=cell.setting.metric == "map")
    kept = logits if keep_logits else None
    store.write_part(cell.manifest.key, unit.slice, rows, skipped, kept)
    ranks = rows["rank_true"].drop_null().to_numpy()
    correct = None if true is None else int((ranks == 1).sum())
    return Progress(cell, len(unit.indices), len(rows), correct, tuple(skipped))


class _Writer:
    """Writes beside the computing, in order, at most one unit behind."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="shiftbed-writer")
        self._last: Future[None] | None = None

    def submit(self, write: Callable[[], None]) -> None:
        """Write this when what came before it is written; raise what went wrong with that."""
        before, self._last = self._last, self._pool.submit(write)
        if before is not None:
            before.result()

    def __enter__(self) -> _Writer:
        return self

    def __exit__(self, kind: type[BaseException] | None, *problem: object) -> None:
        self._pool.shutdown(wait=True)
        if kind is None and self._last is not None:
            self._last.result()


def _peek(batches: Iterable[_Batch]) -> tuple[_Batch, Iterator[_Batch]]:
    iterator = iter(batches)
    first = next(iterator)
    return first, chain([first], iterator)


def look_of(unit: Unit, places: npt.NDArray[np.int32], seed: int) -> Look:
    """Return how a unit's models see the pictures at ``places``: as they are, or attacked."""
    attack = unit.shift
    if not isinstance(attack, Attack):
        return Model.logits
    images, spaces = unit.images, {cell.model: cell.space for cell in unit.cells}
    labels = None if images.labels is None else images.labels[places]
    keys = [images.ids[place] for place in places]

    def look(model: Model, batch: Pictures) -> npt.NDArray[np.float32]:
        return attacked_logits(
            model, batch, attack, labels, keys=keys, seed=seed, space=spaces[model]
        )

    return look


def logits_of(
    model: Model, pictures: Sequence[Pictures], look: Look = Model.logits
) -> npt.NDArray[np.float32]:
    """Return a model's logits, or say in a sentence why it has none."""
    shapes = sorted({picture.shape for picture in pictures})
    if len(shapes) > 1:
        raise InputError(
            f"model {model.name} takes pictures as they are, and they differ in size "
            f"({shapes[0]} and {shapes[-1]}); give it one, as in SPEC,size=224"
        )
    try:
        logits = look(model, np.stack(pictures))
    except InputError:
        raise
    except Exception as problem:  # whatever a model may raise
        raise InputError(
            f"model {model.name} failed on {len(pictures)} pictures of shape {shapes[0]} "
            f"({type(problem).__name__}: {_first_line(problem)}); what was finished is kept"
        ) from problem
    broken = int((~np.isfinite(logits)).any(axis=1).sum())
    if broken:
        raise InputError(
            f"model {model.name} gave logits that are not finite numbers for {broken} of "
            f"{len(pictures)} pictures; what was finished is kept: check its weights and "
            "precision, and run it again"
        )
    return logits


def _first_line(problem: Exception) -> str:
    return (str(problem).strip().splitlines() or ["no reason given"])[0][:200]


@dataclass
class Ledger:
    """Which parts of each cell are still missing, and the time that the others took."""

    plan: Plan
    store: Store
    setup: dict[str, int]
    missing: dict[str, int] = field(init=False)
    seconds: dict[str, list[float]] = field(init=False)

    def __post_init__(self) -> None:
        self.missing = {cell.manifest.key: 0 for cell in self.plan.cells}
        self.seconds = {cell.manifest.key: [0.0, 0.0] for cell in self.plan.cells}
        for unit in self.plan.units:
            for cell in unit.cells:
                self.missing[cell.manifest.key] += 1
        for cell in self.plan.cells:  # killed between the last part and the manifest
            there = self.store.manifest(cell.manifest.key)
            if not self.missing[cell.manifest.key] and not (there and there.complete):
                self.finish(cell)

    def record(self, cell: Cell, preparing: float, computing: float) -> None:
        """Count a part that is written; complete its cell if it was the last."""
        key = cell.manifest.key
        self.seconds[key][0] += preparing
        self.seconds[key][1] += computing
        self.missing[key] -= 1
        if not self.missing[key]:
            self.finish(cell)

    def finish(self, cell: Cell) -> None:
        """Complete a cell, all of whose parts are there."""
        preparing, computing = self.seconds[cell.manifest.key]
        self.store.finish(
            cell.manifest,
            cell.slices,
            labelled=cell.setting.labels is not None,
            keep_logits=self.plan.keep_logits,
            timing={
                "finished": datetime.now(UTC).isoformat(timespec="seconds"),
                # Of the last session. The pictures' share is common to all models.
                "seconds_for_pictures": round(preparing, 3),
                "seconds_for_model": round(computing, 3),
                **self.setup,
            },
        )
