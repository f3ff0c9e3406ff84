"""The two recipes: hard pictures of known classes, and anomalies that look usual."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from shiftbed import published
from shiftbed.curate.judges import JUDGED, Witness, judge_anomalies, judge_hard
from shiftbed.curate.ledger import Ledger
from shiftbed.curate.shortlist import Answer, Confusion, Entry, Filter, Recipe, Shortlist, Step
from shiftbed.curate.sift import Watch, sift
from shiftbed.data import (
    ClassMap,
    Combine,
    FileSet,
    ImageSet,
    KeyIndex,
    found_path,
    match_classes,
    open_set,
    read_class_map,
)
from shiftbed.data.card import named_classes
from shiftbed.data.heap import heap_root, list_heap
from shiftbed.data.prints import NEAR
from shiftbed.errors import InputError
from shiftbed.models import Model, ModelsLike, listed, load
from shiftbed.models.keys import read_classes
from shiftbed.run import library_threads, on_backend
from shiftbed.run.versions import versions
from shiftbed.settings import own_or, resolve

__all__ = ["anomalies", "hard"]

#: Examples of a class that a reviewer sees.
_EXAMPLES = 6

Sets = Sequence[ImageSet | str | Path]
#: The path below the heap's root, the class, and the fate and why, if they are clear already.
Listing = tuple[str, str, str | None, str | None]

#: The first steps of the funnel: what is left, and the fates of those that are not.
_FIRST = {
    "hard": (
        "labelled",
        "of one class of the class space",
        ("no label", "several labels", "outside the classes"),
    ),
    "anomalies": ("unknown", "of no class of the class space", ("in the class space",)),
}
_NEXT = (
    ("readable", "whole files", ("unreadable",)),
    ("new", "in no reference set", ("in a reference set",)),
    ("single", "once each, under one label", ("duplicate", "two labels")),
)


def hard(
    heap: str | Path,
    models: ModelsLike,
    output: str | Path,
    *,
    name: str | None = None,
    classes: str | Sequence[str] | None = None,
    class_map: ClassMap | str | Path | None = None,
    combine: Combine = "max",
    against: Sets = (),
    max_confidence: float = 0.15,
    crops: int = 10,
    per_confusion: int = 15,
    near: int = NEAR,
    backend: str | None = None,
    workers: int | None = None,
    watch: Watch = lambda done, total, left: None,
    **options: Any,
) -> Shortlist:
    """Find the pictures of a heap that every model has wrong: the recipe of ImageNet-A.

    A candidate that some model has right in any of ten crops is dropped, and so is one to
    whose class a model gives more than ``max_confidence``, averaged over the crops. Of each
    confusion (class, predicted class) the hardest ``per_confusion`` are kept.

    ``classes`` are those that are told apart, as a list, a file with one in a line, or the
    name of a published list; unless given, the labels of the heap. ``against`` are sets of
    which no picture may be in the heap. The same call goes on after an interruption; with
    other thresholds it ranks anew, without showing anything to a model again.

    >>> import tempfile
    >>> import numpy as np
    >>> from PIL import Image
    >>> heap, out = Path(tempfile.mkdtemp()), tempfile.mkdtemp()
    >>> rng = np.random.default_rng(0)
    >>> for number in range(6):
    ...     pixels = rng.integers(0, 256, (16, 16, 3)) // 2 + 120 * (number % 2)
    ...     kind = heap / ("light" if number in (1, 2, 3) else "dark")
    ...     kind.mkdir(exist_ok=True)
    ...     Image.fromarray(pixels.astype(np.uint8)).save(kind / f"{number}.png")
    >>> def darkness(batch):
    ...     light = batch.mean((1, 2, 3))
    ...     return np.stack([128 - light, light - 128], 1)
    >>> found = hard(heap, darkness, out, outputs=2, channels=3)
    >>> [(entry.path.name, entry.class_name, entry.predicted) for entry in found.entries]
    [('5.png', 'dark', 'light'), ('2.png', 'light', 'dark')]
    >>> [step.left for step in found.funnel]
    [6, 6, 6, 6, 2, 2, 2]
    """
    _check(max_confidence, "the largest confidence", per_confusion, near)
    if crops not in (1, 5, 10):
        raise InputError(f"crops is {crops}; it must be 1 (the middle), 5 (and corners) or 10")
    root, loaded = heap_root(heap), _loaded(models, backend, options)
    references = [open_set(one) for one in against]
    given = None if classes is None else _class_list(classes)
    mapping = _class_map(class_map)
    with Ledger(output) as ledger:
        ledger.claim(
            {
                "recipe": "hard",
                "candidates": str(found_path(heap) or heap),
                "classes": given,
                "near-duplicates": near,
                "reference sets": [one.fingerprint() for one in references],
            }
        )
        ledger.fill(_listed(list_heap(heap), _of_classes(given)))
        told = given if given is not None else _sorted(ledger.classes())
        if not told:
            raise InputError(
                f"no candidate in {heap} has a label; expected a folder per class, or a table "
                "with a column 'label'"
            )
        witnesses = [
            Witness(
                model,
                match_classes(
                    told,
                    model.class_keys,
                    model.outputs,
                    class_map=own_or(mapping, told, model),
                    combine=combine,
                    model=model.name,
                    images=str(heap),
                ),
            )
            for model in loaded
        ]
        ledger.claim({"models": _identities(witnesses), "crops": crops})
        sift(
            ledger,
            root,
            {one.model.geometry for one in witnesses},
            judge_hard(witnesses, {one: place for place, one in enumerate(told)}, crops),
            against=references,
            near=near,
            contradictions=True,
            workers=workers,
            watch=watch,
        )
        ledger.rank(JUDGED, 1 - max_confidence, per_confusion)
        examples: dict[str, tuple[str, ...]] = {}
        for one, path in ledger.best("right", _EXAMPLES):
            examples[one] = (*examples.get(one, ()), str(root / path))
        shortlist = Shortlist(
            Path(output),
            "hard",
            _name(name, heap, "hard"),
            str(root),
            tuple(told),
            _filters(witnesses),
            {
                "max_confidence": max_confidence,
                "crops": crops,
                "per_confusion": per_confusion,
                "near": near,
            },
            _funnel(
                ledger,
                "hard",
                bool(references),
                (
                    ("wrong", "every model has it wrong in every crop", ("right",)),
                    (
                        f"under {max_confidence:.0%}",
                        "the most that a model gives to its class",
                        (),
                    ),
                ),
                per_confusion,
            ),
            tuple(Confusion(*row) for row in ledger.confusions()),
            examples,
            against=tuple(one.name for one in references),
            members=mapping,
            combine=combine,
            versions=versions(),
        )
        shortlist.save(_entries(ledger, root, {one: place for place, one in enumerate(told)}))
    return shortlist


def anomalies(
    heap: str | Path,
    models: ModelsLike,
    output: str | Path,
    *,
    usual: ImageSet | str | Path,
    name: str | None = None,
    class_map: ClassMap | str | Path | None = None,
    combine: Combine = "max",
    exclude: str | Iterable[str] = (),
    against: Sets = (),
    min_confidence: float = 0.5,
    per_confusion: int = 15,
    near: int = NEAR,
    backend: str | None = None,
    workers: int | None = None,
    watch: Watch = lambda done, total, left: None,
    **options: Any,
) -> Shortlist:
    """Find the pictures of no known class that every model is sure of: the recipe of ImageNet-O.

    The known classes are those of the image set ``usual``. Candidates whose class is one of
    them, or means an output that one of them is read from, or is among ``exclude`` (classes,
    files with one in a line, names of published lists), are left out and reported. Of the
    others those are kept to which every model gives some class ``min_confidence`` or more,
    and of each (class, predicted class) the surest ``per_confusion``.
    """
    _check(min_confidence, "the smallest confidence", per_confusion, near)
    root, loaded = heap_root(heap), _loaded(models, backend, options)
    references = [open_set(one) for one in against]
    mapping = _class_map(class_map)
    images = open_set(usual)
    if images.labels is None:
        raise InputError(
            f"{images.name} is not labelled; the usual pictures say which classes are known"
        )
    [setting] = resolve("+clean", images, class_map=mapping, combine=combine)
    witnesses = [Witness(model, setting.class_space(model)) for model in loaded]
    known = [*images.classes, *(one for some in _asked(exclude) for one in some)]
    for one in witnesses:
        keys = one.model.class_keys or ()
        known += [keys[output] for some in one.space.members for output in some if keys]
    index = KeyIndex(list(dict.fromkeys(known)))
    overlap: dict[str, str] = {}

    @cache
    def inside(label: str) -> str | None:
        found = index.find(label)
        return None if not found else list(dict.fromkeys(known))[found[0]]

    def place(labels: tuple[str, ...]) -> tuple[str, str | None, str | None]:
        for label in labels:
            if inside(label) is not None:
                return label, "in the class space", inside(label)
        return (labels[0] if labels else "", None, None)

    with Ledger(output) as ledger:
        ledger.claim(
            {
                "recipe": "anomalies",
                "candidates": str(found_path(heap) or heap),
                "classes": sorted(set(known)),
                "near-duplicates": near,
                "reference sets": [one.fingerprint() for one in references],
                "models": _identities(witnesses),
            }
        )
        ledger.fill(_listed(list_heap(heap), place))
        for label in ledger.classes():
            matched = inside(label)
            if matched is not None:
                overlap[label] = matched
        sift(
            ledger,
            root,
            {one.model.geometry for one in witnesses},
            judge_anomalies(witnesses),
            against=references,
            near=near,
            contradictions=False,
            workers=workers,
            watch=watch,
        )
        ledger.rank(JUDGED, min_confidence, per_confusion)
        shortlist = Shortlist(
            Path(output),
            "anomalies",
            _name(name, heap, "anomalies"),
            str(root),
            tuple(images.classes),
            _filters(witnesses),
            {"min_confidence": min_confidence, "per_confusion": per_confusion, "near": near},
            _funnel(
                ledger,
                "anomalies",
                bool(references),
                (
                    (
                        f"over {min_confidence:.0%}",
                        "the least that a model gives to the class it takes it for",
                        (),
                    ),
                ),
                per_confusion,
            ),
            tuple(Confusion(*row) for row in ledger.confusions()),
            _examples(images),
            overlap,
            tuple(one.name for one in references),
            _usual_name(usual, images),
            mapping,
            combine,
            versions(),
        )
        shortlist.save(_entries(ledger, root, None))
    return shortlist


def _check(confidence: float, what: str, per_confusion: int, near: int) -> None:
    if not 0 <= confidence <= 1:
        raise InputError(f"{what} is {confidence}; it must lie between 0 and 1, like 0.15")
    if per_confusion < 1:
        raise InputError(f"{per_confusion} of each confusion are asked for; ask for at least 1")
    if not 0 <= near <= 64:
        raise InputError(
            f"near-duplicates may differ in {near} of 256 signs; give a number from 0 to 64"
        )


def _loaded(models: ModelsLike, backend: str | None, options: Mapping[str, Any]) -> list[Model]:
    found = [load(one, **named, **options) for one, named in listed(models)]
    names = [model.name for model in found]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"two models are called {twice!r}; name them, as in one=SPEC, two=SPEC")
    threads = library_threads(1)
    return [on_backend(model, backend, threads) for model in found]


def _class_map(given: ClassMap | str | Path | None) -> ClassMap | None:
    return read_class_map(given) if isinstance(given, (str, Path)) else given


def _class_list(given: str | Sequence[str]) -> list[str]:
    if not isinstance(given, str):
        found = list(given)
    elif given == "imagenet-1k" or given in published.class_lists():
        found = list(named_classes(given))
    else:
        found = list(read_classes(given))
    if len(set(found)) < len(found):
        twice = next(one for one in found if found.count(one) > 1)
        raise InputError(f"the classes name {twice!r} twice")
    return found


def _asked(exclude: str | Iterable[str]) -> Iterator[list[str]]:
    for one in [exclude] if isinstance(exclude, str) else exclude:
        known = one == "imagenet-1k" or one in published.class_lists()
        yield _class_list(one) if known or found_path(one) is not None else [one]


def _sorted(classes: Iterable[str]) -> list[str]:
    from shiftbed.data.folder import order

    return sorted((one for one in classes if one), key=order)


Place = Callable[[tuple[str, ...]], tuple[str, str | None, str | None]]


def _of_classes(classes: Sequence[str] | None) -> Place:
    """Return what says which class the labels of a candidate mean, or why they mean none."""
    index = None if classes is None else KeyIndex(classes)

    @cache
    def found(label: str) -> tuple[str, ...]:
        if classes is None or index is None:
            return (label,)
        return tuple(classes[place] for place in index.find(label))

    def place(labels: tuple[str, ...]) -> tuple[str, str | None, str | None]:
        if not labels:
            return "", "no label", None
        inside = dict.fromkeys(one for label in labels for one in found(label))
        if len(inside) == 1:
            return next(iter(inside)), None, None
        fate = "several labels" if inside else "outside the classes"
        return labels[0], fate, "; ".join(inside or labels)

    return place


def _listed(heap: Iterable[tuple[str, tuple[str, ...]]], place: Place) -> Iterator[Listing]:
    for path, labels in heap:
        try:
            "".join((path, *labels)).encode()
        except UnicodeEncodeError:
            text = path.encode("utf-8", "backslashreplace").decode()
            yield text, "", "unreadable", "its name is not UTF-8"
            continue
        name, fate, detail = place(labels)
        yield path, name, fate, detail


def _identities(witnesses: Sequence[Witness]) -> list[list[str]]:
    return [[one.model.name, one.model.fingerprint(), one.space.name] for one in witnesses]


def _filters(witnesses: Sequence[Witness]) -> tuple[Filter, ...]:
    return tuple(
        Filter(one.model.name, one.model.spec, one.space.name, one.model.fingerprint())
        for one in witnesses
    )


def _name(given: str | None, heap: str | Path, recipe: Recipe) -> str:
    from shiftbed.data.folder import plain_name

    return given if given is not None else plain_name(f"{Path(heap).resolve().stem}-{recipe}")


def _usual_name(given: ImageSet | str | Path, images: ImageSet) -> str:
    """Return what the usual set can be opened by again."""
    if isinstance(given, ImageSet):
        return images.name
    path = found_path(given)
    return str(path.resolve()) if path is not None and str(given) != images.name else str(given)


def _examples(images: ImageSet) -> dict[str, tuple[str, ...]]:
    """Return the first pictures of each class, if they are files."""
    if not isinstance(images, FileSet) or not isinstance(images.root, Path):
        return {}
    found: dict[str, tuple[str, ...]] = {}
    if images.labels is None or images.labels.ndim != 1:
        return {}
    for file, label in zip(images.files, images.labels.tolist(), strict=True):
        name = images.classes[label]
        if label >= 0 and len(found.get(name, ())) < _EXAMPLES:
            found[name] = (*found.get(name, ()), str((images.root / file).resolve()))
    return found


def _entries(ledger: Ledger, root: Path, label_of: Mapping[str, int] | None) -> Iterator[Entry]:
    for one in ledger.ranked():
        yield Entry(
            one.sha256[:16],
            one.sha256,
            root / one.path,
            None if label_of is None else label_of[one.class_name],
            one.class_name,
            one.predicted,
            tuple(Answer(**answer) for answer in one.answers),
            one.difficulty,
        )


def _funnel(
    ledger: Ledger,
    recipe: Recipe,
    with_references: bool,
    last: Sequence[tuple[str, str, Sequence[str]]],
    per_confusion: int,
) -> tuple[Step, ...]:
    left: dict[str, int] = {}
    lost: dict[str, dict[str, int]] = {}
    for fate, one, count in ledger.fates():
        left[one] = left.get(one, 0) + count
        lost.setdefault(fate, {})[one] = count
    steps = [_step("candidates", "all that was listed", left)]
    for title, about, fates in (_FIRST[recipe], *_NEXT, *last):
        if title == "new" and not with_references:
            continue
        for one in left:
            left[one] -= sum(lost.get(fate, {}).get(one, 0) for fate in fates)
        if fates:
            steps.append(_step(title, about, left))
    before, after = dict.fromkeys(left, 0), dict.fromkeys(left, 0)
    for one, _, some, kept in ledger.confusions():
        before[one] += some
        after[one] += kept
    steps.append(_step(*last[-1][:2], before))
    about = "of each confusion (class, predicted class)"
    steps.append(_step(f"at most {per_confusion}", about, after))
    return tuple(steps)


def _step(title: str, about: str, left: Mapping[str, int]) -> Step:
    return Step(title, about, sum(left.values()), dict(left))
