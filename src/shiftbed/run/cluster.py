"""The engine for many machines: the same units as the local one, on a Ray cluster.

A slice is decoded, and shifted for each unit, by tasks on the CPUs; models are actors, on GPUs
where there are any. What they hand to each other stays in the cluster; parts are written by the
models' actors straight to the store, which every machine must reach under the same path. Here,
only the account is kept: what is to do, what is done, and what failed how often.

Picture tasks claim most of a CPU, and models on CPUs next to nothing of one: an actor that
claimed CPUs could starve the tasks that it waits for, above all when machines are lost. Every
worker computes in one thread.
"""

from __future__ import annotations

import os
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from shiftbed.errors import InputError, MissingExtraError
from shiftbed.models import Model
from shiftbed.results import Store
from shiftbed.run.local import (
    COMPUTE_BATCH,
    Decoded,
    Ledger,
    Progress,
    Watch,
    begin,
    decode,
    logits_of,
    look_of,
    shifted,
    write_part,
)
from shiftbed.run.plan import Plan, Unit

__all__ = ["ATTEMPTS", "Recipe", "execute_on_ray"]

#: How often a unit may fail before it is given up.
ATTEMPTS = 3
#: Loads a model where it computes; told whether it has a GPU.
Recipe = Callable[[bool], Model]

_PICTURES = {"num_cpus": 0.9, "max_retries": 0, "scheduling_strategy": "SPREAD"}
_MODEL_CPUS = 0.001


def execute_on_ray(
    plan: Plan,
    store: Store,
    recipes: Mapping[str, Recipe],
    *,
    address: str | None = None,
    watch: Watch = lambda progress: None,
) -> None:
    """Compute what is missing of a plan on a Ray cluster, and write it to the store.

    ``recipes`` say by a model's name how to load it elsewhere; one without is sent as it is.
    Without an address, a cluster is started on this machine for as long as it takes. A unit
    that fails three times is given up and reported at the end; the others are done. What fails
    because a machine is lost does not count.
    """
    ray = _ray()
    started = not ray.is_initialized()
    if started:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        try:
            ray.init(
                address=address or "local",  # not one that happens to run here
                include_dashboard=False,
                log_to_driver=False,
                logging_level="ERROR",
                **({} if address else {"_node_ip_address": "127.0.0.1"}),
            )
        except (ConnectionError, RuntimeError, ValueError) as problem:
            raise InputError(
                f"cannot reach a Ray cluster at {address or 'this machine'} "
                f"({_first_line(problem)}); start one with 'ray start --head', or leave out "
                "--address"
            ) from None
    try:
        begin(plan, store)
        run = _Run(ray, plan, store, recipes, watch)
        try:
            run.complete()
        finally:
            run.stop()
            store.sweep()
    finally:
        if started:
            ray.shutdown()
    if run.given_up:
        raise InputError(run.report())


def _ray() -> Any:
    try:
        import ray
    except ImportError:
        raise MissingExtraError("--engine ray", "ray") from None
    return ray


# What the workers do


@dataclass(frozen=True, eq=False)
class _World:
    """All that the units depend on but the models' weights: sent once to every worker."""

    plan: Plan
    store: Store


#: In a worker: the world that it was sent last.
_WORLDS: dict[str, _World] = {}


@dataclass(frozen=True)
class _Home:
    """Where a worker finds what the driver has: its folder, its modules and its world."""

    folder: str
    modules: tuple[str, ...]
    #: In a tuple, so that Ray does not open it before the modules can be found.
    world: tuple[Any]

    def enter(self) -> _World:
        """Return the world, and compute in one thread from now on."""
        import cv2

        cv2.setNumThreads(1)
        if Path(self.folder).is_dir():
            os.chdir(self.folder)
        sys.path += [one for one in self.modules if one not in sys.path]
        name = self.world[0].hex()
        if name not in _WORLDS:
            _WORLDS.clear()
            _WORLDS[name] = _ray().get(self.world[0])
        return _WORLDS[name]


def _decoded(home: _Home, number: int) -> Decoded:
    """Decode the slice of a unit in every geometry that the plan wants it in."""
    plan = home.enter().plan
    unit = plan.units[number]
    same = [one for one in plan.units if one.images is unit.images and one.slice == unit.slice]
    return decode(unit.images, unit.indices, list(dict.fromkeys(one.geometry for one in same)))


def _shown(home: _Home, number: int, decoded: Decoded) -> tuple[Decoded, float]:
    """Return a unit's pictures as its models see them, and the seconds that it took."""
    begun = time.perf_counter()
    plan = home.enter().plan
    unit = plan.units[number]
    ids = [unit.images.ids[place] for place in decoded.index]
    pictures = shifted(unit, decoded.pictures[unit.geometry], ids, plan.seed)
    shown = replace(decoded, pictures={unit.geometry: pictures})
    return shown, time.perf_counter() - begun


@dataclass(frozen=True)
class _Done:
    """What a model did with a unit: (scored, correct) for each of its cells, and where."""

    counts: list[tuple[int, int | None]]
    skipped: tuple[tuple[str, str], ...]
    preparing: float
    computing: float
    node: str


class _Judge:
    """A model in a process of its own."""

    def __init__(self, home: _Home) -> None:
        self._home = home

    def load(self, recipe: tuple[Any], weights: str, geometry: str) -> None:
        """Load the model; not when made, since what goes wrong there is not told well."""
        ray = _ray()
        self._home.enter()
        loaded: Recipe = ray.get(recipe[0])
        self._model = loaded(bool(ray.get_gpu_ids()))
        torch = sys.modules.get("torch")
        if torch is not None:
            torch.set_num_threads(1)
        if self._model.weights != weights or repr(self._model.geometry) != geometry:
            raise InputError(
                f"model {self._model.name} is another one on {_node()}; its weights or the "
                "versions of its libraries differ there"
            )

    def judge(self, number: int, shown: tuple[Decoded, float]) -> _Done:
        """Show a unit's pictures to the model, and write the parts of its cells."""
        world, begun = self._home.enter(), time.perf_counter()
        unit = world.plan.units[number]
        cells = [
            replace(one, model=self._model)
            for one in unit.cells
            if one.model.name == self._model.name
        ]
        own = replace(unit, cells=tuple(cells))
        decoded, preparing = shown
        pictures = decoded.pictures[unit.geometry]
        found = [np.empty((0, self._model.outputs), np.float32)]
        for start in range(0, len(pictures), COMPUTE_BATCH):
            places = decoded.index[start : start + COMPUTE_BATCH]
            look = look_of(own, places, world.plan.seed)
            found.append(logits_of(self._model, pictures[start : start + COMPUTE_BATCH], look))
        logits: npt.NDArray[np.float32] = np.concatenate(found)
        computing = time.perf_counter() - begun
        written = [
            write_part(
                world.store,
                cell,
                own,
                decoded.index,
                decoded.skipped,
                logits,
                world.plan.keep_logits,
            )
            for cell in cells
        ]
        return _Done(
            [(one.scored, one.correct) for one in written],
            tuple(decoded.skipped),
            preparing,
            computing,
            _node(),
        )


def _node() -> str:
    context = _ray().get_runtime_context()
    return f"{_ray().util.get_node_ip_address()} {context.get_node_id()[:6]}"


def _nothing(batch: npt.NDArray[np.uint8]) -> npt.ArrayLike:
    raise InputError(f"this model is not loaded here; {len(batch)} pictures were shown to it")


# The account


@dataclass(eq=False)
class _Actor:
    model: str
    handle: Any
    ready: bool = False
    busy: int = 0


@dataclass(eq=False)
class _Job:
    """One model's share of a unit."""

    unit: int
    model: str
    failures: int = 0
    #: How many machines had been lost when it was last tried.
    lost: int = 0


@dataclass(eq=False)
class _Open:
    """A unit whose pictures are made, or being made."""

    shown: Any
    left: int


@dataclass(eq=False)
class _Run:
    ray: Any
    plan: Plan
    store: Store
    recipes: Mapping[str, Recipe]
    watch: Watch
    given_up: list[tuple[_Job, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        models = {cell.model.name: cell.model for cell in self.plan.cells}
        self._models = models
        bare = {name: replace(one, predict=_nothing, module=None) for name, one in models.items()}
        cells = {id(one): replace(one, model=bare[one.model.name]) for one in self.plan.cells}
        units = tuple(
            replace(unit, cells=tuple(cells[id(one)] for one in unit.cells))
            for unit in self.plan.units
        )
        plan = replace(self.plan, cells=tuple(cells.values()), units=units)
        store = Store(self.store.path.absolute())
        try:
            world = self.ray.put(_World(plan, store))
        except TypeError as problem:
            raise InputError(
                f"these image sets cannot be sent to other machines ({_first_line(problem)}); "
                "use the local engine"
            ) from None
        self._home = _Home(str(Path.cwd()), tuple(map(os.path.abspath, sys.path)), (world,))
        self._ledger = Ledger(self.plan, self.store, {"cpus": int(self._total("CPU"))})
        self._decode = self.ray.remote(**_PICTURES)(_decoded)
        self._show = self.ray.remote(**_PICTURES)(_shown)
        self._loading = {name: self._recipe(name) for name in models}
        self._jobs = {
            number: [_Job(number, name) for name in _models_of(unit)]
            for number, unit in enumerate(self.plan.units)
        }
        self._waiting = deque(range(len(self.plan.units)))
        self._open: dict[int, _Open] = {}
        self._slices: dict[tuple[int, int], Any] = {}
        self._actors: list[_Actor] = []
        self._running: dict[Any, tuple[_Actor, _Job | None]] = {}
        self._troubles: Counter[str] = Counter()

    def _recipe(self, name: str) -> Any:
        recipe = self.recipes.get(name)
        if recipe is None:
            model = self._models[name]
            recipe = _Sent(model)
        try:
            return self.ray.put(recipe)
        except (TypeError, AttributeError) as problem:
            raise InputError(
                f"model {name} cannot be sent to other processes ({_first_line(problem)}); name "
                "it by a spec, as python:module:factory"
            ) from None

    def complete(self) -> None:
        """Do everything that can be done."""
        todo = Counter(job.model for jobs in self._jobs.values() for job in jobs)
        for name in todo:
            for _ in range(self._replicas(todo[name])):
                self._start(name)
        while self._jobs:
            self._submit()
            if not self._running:
                raise InputError(
                    "the cluster has no machine left that computes; what was finished is kept"
                )
            done, _ = self.ray.wait(list(self._running), timeout=5)
            if not done and not self._total("CPU"):
                raise InputError(
                    "the cluster has no CPUs left; what was finished is kept, and the same "
                    "command does the rest"
                )
            for reference in done:
                self._take(reference)

    def stop(self) -> None:
        """Leave nothing behind in the cluster."""
        for reference in self._running:
            if self._running[reference][1] is not None:
                self.ray.cancel(reference, force=False)
        for actor in self._actors:
            self.ray.kill(actor.handle)
        self._actors.clear()

    def report(self) -> str:
        """Say what was given up, with its pictures."""
        job, reason = self.given_up[0]
        unit = self.plan.units[job.unit]
        ids, places = unit.images.ids, unit.indices
        shift = "" if unit.shift is None else f"+{unit.shift}"
        more = len(self.given_up) - 1
        others = f"; so did {more} more" if more else ""
        return (
            f"{job.model} failed {ATTEMPTS} times on {len(places)} pictures of "
            f"{unit.images.name}{shift}, {ids[places[0]]!r} to {ids[places[-1]]!r} "
            f"({reason}){others}. The other cells are whole, and the same command tries these again"
        )

    # Handing out

    def _submit(self) -> None:
        room = max(2, int(self._total("CPU")) + 1)
        while self._waiting and len(self._open) < room:
            self._show_unit(self._waiting.popleft())
        for number, unit in list(self._open.items()):
            busy = {job.model for _, job in self._running.values() if job and job.unit == number}
            for job in self._jobs.get(number, []):
                if job.model in busy:
                    continue
                free = [
                    one
                    for one in self._actors
                    if one.model == job.model and one.ready and one.busy < 2
                ]
                if free:
                    actor = min(free, key=lambda one: one.busy)
                    actor.busy += 1
                    job.lost = self._lost()
                    reference = actor.handle.judge.remote(number, unit.shown)
                    self._running[reference] = actor, job

    def _show_unit(self, number: int) -> None:
        unit = self.plan.units[number]
        place = id(unit.images), unit.slice
        if place not in self._slices:
            self._slices.clear()  # units come slice by slice
            self._slices[place] = self._decode.remote(self._home, number)
        shown = self._show.remote(self._home, number, self._slices[place])
        self._open[number] = _Open(shown, len(self._jobs[number]))

    def _start(self, name: str) -> None:
        model = self._models[name]
        gpus = self._total("GPU")
        claim: dict[str, Any] = {"num_cpus": _MODEL_CPUS}
        if gpus:
            claim["num_gpus"] = 1 / -(-len(self._models) // int(gpus)) if gpus >= 1 else gpus
        judge = self.ray.remote(scheduling_strategy="SPREAD", max_restarts=0, **claim)(_Judge)
        handle = judge.remote(self._home)
        actor = _Actor(name, handle)
        self._actors.append(actor)
        loading = handle.load.remote((self._loading[name],), model.weights, repr(model.geometry))
        self._running[loading] = actor, None

    def _replicas(self, jobs: int) -> int:
        slots = int(self._total("GPU")) or int(self._total("CPU")) // 2
        return max(1, min(jobs, slots // len(self._models)))

    # Taking in

    def _take(self, reference: Any) -> None:
        actor, job = self._running.pop(reference)
        try:
            answer = self.ray.get(reference)
        except self.ray.exceptions.RayError as problem:
            self._failed(actor, job, problem)
            return
        if job is None:
            actor.ready = True
            return
        actor.busy -= 1
        self._finished(job, answer)

    def _finished(self, job: _Job, done: _Done) -> None:
        unit = self.plan.units[job.unit]
        cells = [cell for cell in unit.cells if cell.model.name == job.model]
        for cell, (scored, correct) in zip(cells, done.counts, strict=True):
            self._ledger.record(cell, done.preparing, done.computing)
            self.watch(Progress(cell, len(unit.indices), scored, correct, done.skipped, done.node))
        self._close(job)

    def _close(self, job: _Job) -> None:
        left = self._jobs[job.unit]
        left.remove(job)
        if not left:
            del self._jobs[job.unit]
            self._open.pop(job.unit, None)
        if not any(one.model == job.model for jobs in self._jobs.values() for one in jobs):
            for actor in [one for one in self._actors if one.model == job.model]:
                self._actors.remove(actor)
                self.ray.kill(actor.handle)

    def _failed(self, actor: _Actor, job: _Job | None, problem: Exception) -> None:
        exceptions = self.ray.exceptions
        dead = isinstance(problem, exceptions.RayActorError) or job is None
        if dead and actor in self._actors:
            self._actors.remove(actor)
            self.ray.kill(actor.handle)
        elif job is not None:
            actor.busy -= 1
        if job is None:
            self._troubles[actor.model] += 1
            if self._troubles[actor.model] >= ATTEMPTS + self._lost():
                self._give_up_model(actor.model, problem)
                return
        else:
            if self._lost() == job.lost:
                job.failures += 1
            if job.failures >= ATTEMPTS:
                self.given_up.append((job, _reason(problem)))
                self._close(job)
            elif not dead and job.unit in self._open:  # its pictures may be what is lost
                unit = self.plan.units[job.unit]
                self._slices.pop((id(unit.images), unit.slice), None)
                self._show_unit(job.unit)
        left = any(one.model == actor.model for jobs in self._jobs.values() for one in jobs)
        if left and not any(one.model == actor.model for one in self._actors):
            self._start(actor.model)

    def _give_up_model(self, name: str, problem: Exception) -> None:
        for jobs in list(self._jobs.values()):
            for job in [one for one in jobs if one.model == name]:
                self.given_up.append((job, _reason(problem)))
                self._close(job)

    # The cluster

    def _total(self, resource: str) -> float:
        return float(self.ray.cluster_resources().get(resource, 0))

    def _lost(self) -> int:
        return sum(not node["Alive"] for node in self.ray.nodes())


@dataclass(frozen=True)
class _Sent:
    """A recipe for a model that no spec names: the model itself."""

    model: Model

    def __call__(self, gpu: bool) -> Model:
        return self.model


def _models_of(unit: Unit) -> list[str]:
    return list(dict.fromkeys(cell.model.name for cell in unit.cells))


def _reason(problem: Exception) -> str:
    """Return what went wrong in the worker, in a line."""
    cause = getattr(problem, "cause", None)
    return _first_line(cause if isinstance(cause, Exception) else problem)


def _first_line(problem: Exception) -> str:
    lines = [line.strip() for line in str(problem).strip().splitlines() if line.strip()]
    return f"{type(problem).__name__}: {lines[0][:200] if lines else 'no reason given'}"
