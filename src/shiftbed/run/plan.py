"""What is to be computed: cells, and the units of work that are still missing."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from shiftbed.attacks import Attack, check_attackable
from shiftbed.data import ClassSpace, ImageSet, digest
from shiftbed.errors import InputError
from shiftbed.models import Geometry, Model
from shiftbed.results import Identity, Manifest, Store
from shiftbed.run.versions import versions
from shiftbed.settings import Setting, Shift

__all__ = ["SLICE", "Cell", "Plan", "Unit", "make_plan"]

#: Pictures in a slice. A part holds one slice of one cell, so this is part of what is
#: stored: changing it means a new format.
SLICE = 512


@dataclass(frozen=True, eq=False)
class Cell:
    """A model on a setting, and how its outputs are read."""

    model: Model
    setting: Setting
    #: None for pictures without labels: the outputs are classes of their own.
    space: ClassSpace | None
    manifest: Manifest

    @property
    def slices(self) -> int:
        """How many parts the cell has."""
        return -(-len(self.setting.images) // SLICE)


@dataclass(frozen=True, eq=False)
class Unit:
    """A slice of pictures in one geometry under one shift, and the cells that wait for it.

    A corruption is applied once for all of the cells; an attack, for each model anew.

    It is idempotent: it writes one part for each of its cells, each named by the cell and the
    slice, and a part's bytes do not depend on which other cells were in the unit.
    """

    images: ImageSet
    slice: int
    geometry: Geometry
    shift: Shift | Attack | None
    cells: tuple[Cell, ...]

    @property
    def indices(self) -> range:
        """The places of its pictures in the image set."""
        start = self.slice * SLICE
        return range(start, min(start + SLICE, len(self.images)))


@dataclass(frozen=True, eq=False)
class Plan:
    """A grid cut into units, less what is already there."""

    cells: tuple[Cell, ...]
    units: tuple[Unit, ...]
    seed: int
    keep_logits: bool

    @cached_property
    def total(self) -> int:
        """How many predictions the whole grid has."""
        return sum(len(cell.setting.images) for cell in self.cells)

    @cached_property
    def predictions(self) -> int:
        """How many predictions are still to be made."""
        return sum(len(unit.indices) * len(unit.cells) for unit in self.units)

    @cached_property
    def decoded(self) -> int:
        """How many pictures have to be read and decoded for them."""
        slices = {(id(unit.images), unit.slice): len(unit.indices) for unit in self.units}
        return sum(slices.values())

    @cached_property
    def shifted(self) -> int:
        """How many pictures have to be corrupted for them."""
        return sum(len(unit.indices) for unit in self.units if isinstance(unit.shift, Shift))

    @cached_property
    def attacked(self) -> int:
        """How many pictures have to be attacked, each for each model."""
        units = [unit for unit in self.units if isinstance(unit.shift, Attack)]
        return sum(len(unit.indices) * len(unit.cells) for unit in units)


def make_plan(
    models: Sequence[Model],
    settings: Sequence[Setting],
    store: Store,
    *,
    seed: int = 0,
    keep_logits: bool = False,
) -> Plan:
    """Cut models times settings into units, and leave out what the store already has.

    Refuses, before any work is done, what could not be told apart later: two models or two
    settings of one name, and cells that the store holds under the same names but that depend
    on something else.
    """
    _distinct("model", [model.name for model in models])
    _distinct("setting", [setting.name for setting in settings])
    for setting in settings:
        if len(setting.images) == 0:
            raise InputError(f"{setting.images.name} holds no pictures")
    fingerprints = {id(setting.images): setting.images.fingerprint() for setting in settings}
    cells = [
        _cell(model, setting, fingerprints[id(setting.images)], seed)
        for setting in settings
        for model in models
    ]
    _refuse_mixtures(store, cells)
    units = tuple(_units(cells, store, keep_logits))
    return Plan(tuple(cells), units, seed, keep_logits)


def _distinct(kind: str, names: Sequence[str]) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        advice = (
            "name one of them otherwise, as in SPEC,name=other"
            if kind == "model"
            else ("leave one of them out")
        )
        raise InputError(f"two {kind}s are called {twice[0]}; {advice}")


def _cell(model: Model, setting: Setting, pictures: str, seed: int) -> Cell:
    read = setting.labels is not None or setting.usual is not None
    space = setting.class_space(model) if read else None
    shift = setting.shift
    if isinstance(shift, Attack):
        check_attackable(model, shift, setting.images.labels)
    identity = Identity(
        model=model.name,
        setting=setting.name,
        pictures=pictures,
        weights=model.fingerprint(),
        geometry=repr(model.geometry),
        class_space="outputs" if space is None else digest([repr(space)]),
        shift=None if shift is None else _described(shift),
        seed=seed if shift is not None and _is_random(shift) else None,
    )
    manifest = Manifest(
        identity=identity,
        spec={
            "model": model.spec,
            "geometry": str(model.geometry),
            "images": setting.images.name,
            "pictures": len(setting.images),
            "clean": setting.clean,
            **({} if setting.usual is None else {"usual": setting.usual.name}),
        },
        tags={name: model.tags[name] for name in sorted(model.tags)},
        versions=versions(),
        metric=setting.metric,
        class_space=None if space is None else space.name,
    )
    return Cell(model, setting, space, manifest)


def _described(shift: Shift | Attack) -> dict[str, str | int | None]:
    if isinstance(shift, Attack):
        return shift.described()
    from shiftbed.corruptions import version

    return {**dataclasses.asdict(shift), "version": version(shift.corruption, shift.variant)}


def _is_random(shift: Shift | Attack) -> bool:
    if isinstance(shift, Attack):
        return shift.random
    from shiftbed.corruptions import corruptions

    return next(c.random for c in corruptions(shift.variant) if c.name == shift.corruption)


def _refuse_mixtures(store: Store, cells: Iterable[Cell]) -> None:
    there = {(one.identity.model, one.identity.setting): one.identity for one in store.manifests()}
    for cell in cells:
        now = cell.manifest.identity
        before = there.get((now.model, now.setting), now)
        if before.key != now.key:
            raise InputError(
                f"{store.path} already holds {now.model} on {now.setting}, and it differs in "
                f"{before.difference(now)}; the two are never mixed: write to another folder, "
                "name the model otherwise (SPEC,name=other), or drop what is there with "
                f"'shiftbed results gc {store.path} --model {now.model}'"
            )


def _units(cells: Sequence[Cell], store: Store, keep_logits: bool) -> Iterable[Unit]:
    """Yield units slice by slice, so that each picture is decoded once."""
    waiting: defaultdict[tuple[int, int, int, int], list[Cell]] = defaultdict(list)
    sets: dict[int, int] = {}
    geometries: dict[Geometry, int] = {}
    shifts: dict[Shift | Attack | None, int] = {}
    for cell in cells:
        place = (
            sets.setdefault(id(cell.setting.images), len(sets)),
            geometries.setdefault(cell.model.geometry, len(geometries)),
            shifts.setdefault(cell.setting.shift, len(shifts)),
        )
        for number in store.missing(cell.manifest.key, cell.slices, keep_logits):
            waiting[place[0], number, place[1], place[2]].append(cell)
    for (_, number, _, _), group in sorted(waiting.items(), key=lambda item: item[0]):
        first = group[0]
        yield Unit(
            first.setting.images, number, first.model.geometry, first.setting.shift, tuple(group)
        )
