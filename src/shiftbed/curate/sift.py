"""The pass over a heap: every candidate read, known again, and shown to the filter models."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path

from shiftbed.assets import sha256_of
from shiftbed.curate.ledger import Candidate, Ledger, Outcome
from shiftbed.data import ImageSet, Picture, UnreadablePicture
from shiftbed.data.pictures import read_picture
from shiftbed.data.prints import Print, print_of
from shiftbed.errors import InputError
from shiftbed.models import Geometry
from shiftbed.run.threads import ahead, cores, torch_threads

__all__ = ["SLICE", "Judge", "Look", "Watch", "sift"]

#: Candidates whose fates are written together. Fixed, because the batches that models see are
#: made within it, and a library may round differently for another number of pictures.
SLICE = 64


@dataclass(frozen=True, eq=False)
class Look:
    """A candidate that could be read: its hash, its print, and how each model sees it."""

    candidate: Candidate
    file: Path
    sha256: str
    printed: Print
    views: Mapping[Geometry, Picture]


#: From candidates, and what makes their further crops, to what becomes of them.
Judge = Callable[[Sequence[Look], ThreadPoolExecutor], list[Outcome]]
#: Called with how many are done, how many there are, and how many of them are left.
Watch = Callable[[int, int, int], None]


def sift(
    ledger: Ledger,
    root: Path,
    geometries: Collection[Geometry],
    judge: Judge,
    *,
    against: Sequence[ImageSet] = (),
    near: int,
    contradictions: bool,
    workers: int | None = None,
    watch: Watch = lambda done, total, left: None,
) -> None:
    """Find out the fate of every candidate that has none yet.

    With ``contradictions``, a picture that is there with two labels is left out under both.
    """
    workers = cores() if workers is None else workers
    if workers < 1:
        raise InputError(f"workers is {workers}; it must be at least 1")
    with ThreadPoolExecutor(workers, thread_name_prefix="shiftbed-pictures") as pool:
        try:
            names = _remember(ledger, against, near, pool, watch)
            total, done = ledger.counts()
            left = 0
            tasks = (partial(_look, one, root, geometries) for one in ledger.pending(SLICE))
            with torch_threads(1):
                for some in _slices(ahead(pool, tasks, SLICE)):
                    with ledger.slice():
                        settled: list[Outcome] = []
                        fresh = []
                        for one in some:
                            found = _known(ledger, one, names, near, contradictions)
                            settled += found
                            if isinstance(one, Look) and not found:
                                ledger.remember(one.candidate.n, one.printed, near)
                                fresh.append(one)
                        judged = judge(fresh, pool) if fresh else []
                        ledger.settle([*judged, *settled])  # which may unsettle one just judged
                    done += len(some)
                    left += sum(one.difficulty is not None for one in judged)
                    watch(done, total, left)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _slices(looks: Iterable[Look | Outcome]) -> Iterator[list[Look | Outcome]]:
    looks = iter(looks)
    while some := list(islice(looks, SLICE)):
        yield some


def _look(one: Candidate, root: Path, geometries: Collection[Geometry]) -> Look | Outcome:
    file = root / one.path
    try:
        picture = read_picture(file)
        sha256 = sha256_of(file)
    except UnreadablePicture as problem:
        return Outcome(one.n, "unreadable", problem.reason)
    except OSError as problem:
        return Outcome(one.n, "unreadable", problem.strerror)
    views = {geometry: geometry.apply(picture) for geometry in geometries}
    return Look(one, file, sha256, print_of(picture), views)


def _remember(
    ledger: Ledger,
    against: Sequence[ImageSet],
    near: int,
    pool: ThreadPoolExecutor,
    watch: Watch,
) -> Callable[[int], str]:
    """Keep the prints of reference sets, and return what names one of their pictures."""
    starts = [0]
    for images in against:
        starts.append(starts[-1] + len(images))

    def named(number: int) -> str:
        place = -number - 1
        which = next(i for i, start in enumerate(starts[1:]) if place < start)
        images = against[which]
        return f"{images.name}: {images.ids[place - starts[which]]}"

    def look(images: ImageSet, index: int) -> Print | None:
        try:
            return print_of(images.load(index))
        except UnreadablePicture:
            return None

    for images, start in zip(against, starts, strict=False):
        fact = f"remembered {start}"
        done = int(ledger.fact(fact) or 0)
        tasks = (partial(look, images, index) for index in range(done, len(images)))
        found = ahead(pool, tasks, SLICE)
        while some := list(islice(found, SLICE)):
            with ledger.slice():
                for index, printed in enumerate(some, start=done):
                    if printed is not None:
                        ledger.remember(-(start + index) - 1, printed, near)
                done += len(some)
                ledger.note(fact, str(done))
            watch(done, len(images), 0)
    return named


def _known(
    ledger: Ledger,
    one: Look | Outcome,
    named: Callable[[int], str],
    near: int,
    contradictions: bool,
) -> list[Outcome]:
    """Return what is clear without a model: that it cannot be read, or was there before."""
    if isinstance(one, Outcome):
        return [one]
    twin = ledger.twin(one.printed, near)
    if twin is None:
        return []
    n = one.candidate.n
    if twin < 0:
        return [Outcome(n, "in a reference set", named(twin), one.sha256)]
    other = ledger.candidate(twin)
    if contradictions and other.class_name != one.candidate.class_name:
        fate = "two labels"
        return [
            Outcome(n, fate, f"{other.path} is {other.class_name}", one.sha256),
            Outcome(twin, fate, f"{one.candidate.path} is {one.candidate.class_name}"),
        ]
    return [Outcome(n, "duplicate", other.path, one.sha256)]
