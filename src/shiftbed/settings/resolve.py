"""From names and patterns to settings."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from shiftbed.attacks import Attack, attack_kinds, attacks_named, is_attack
from shiftbed.data import (
    ClassMap,
    Combine,
    Dataset,
    ImageSet,
    card_of,
    check_score,
    found_path,
    is_dataset,
    list_sets,
    open_set,
    read_class_map,
)
from shiftbed.errors import InputError, unknown
from shiftbed.settings.grammar import expand_braces, split_pattern
from shiftbed.settings.setting import Setting, Shift
from shiftbed.settings.suites import Suite, list_suites

__all__ = ["DataLike", "given_sets", "list_settings", "resolve", "states_of"]

ImagesLike = ImageSet | Dataset | str | Path
#: What ``data=`` takes: one image set, several, or several by the names they should have.
DataLike = ImagesLike | Sequence[ImagesLike] | Mapping[str, ImagesLike]


def resolve(
    patterns: str | Iterable[str],
    data: DataLike | None = None,
    *,
    class_map: ClassMap | str | Path | None = None,
    combine: Combine = "max",
) -> list[Setting]:
    """Return the settings that names, patterns and suites stand for, each once, in order.

    ``data`` are the user's own image sets: patterns that name no set (``+fog.3``) and suites
    apply to each of them. Without it, a suite applies to the set of its benchmark, if that is
    known by name.

    >>> import numpy as np
    >>> from shiftbed.data import ArraySet
    >>> mine = ArraySet("mine", np.zeros((2, 32, 32, 3), np.uint8), labels=[0, 1])
    >>> [setting.name for setting in resolve("+{clean,fog.{1..2},pixelate.5}", mine)]
    ['mine', 'mine+fog.1', 'mine+fog.2', 'mine+pixelate.5']
    """
    opener = _Opener(data)
    reading = read_class_map(class_map) if isinstance(class_map, (str, Path)) else class_map
    wanted = [patterns] if isinstance(patterns, str) else list(patterns)
    suites = {one.name: one for one in list_suites()}
    found: dict[str, Setting] = {}
    for pattern in wanted:
        if pattern in suites:
            pairs = _suite_pairs(suites[pattern], opener)
        else:
            pairs = [pair for name in expand_braces(pattern) for pair in _pairs(name, opener)]
        for images, name, shift in pairs:
            usual = _usual(images, opener, reading, combine)
            metric = check_score(images)
            if usual is not None:
                # What it is told apart from has to be evaluated, too.
                usual = found.setdefault(usual.name, usual)
            setting = Setting(name, images, shift, metric, reading, combine, usual)
            found.setdefault(name, setting)
    if not found or "" in wanted:
        raise InputError("the pattern names no setting; write SET, SET+SHIFT or a suite's name")
    return list(found.values())


def list_settings(patterns: str | Iterable[str] | None = None) -> list[str]:
    """Return names of settings, without fetching or opening any image set.

    Without patterns, all of the image sets that are known by name. A name that is not known
    is taken as that of a set which the user has.

    >>> list_settings("mnist-test+{clean,fog}")
    ['mnist-test', 'mnist-test+fog']
    """
    infos = list_sets()
    variants = {info.name: info.card.variant for info in infos}
    suites = {one.name: one for one in list_suites()}
    if patterns is None:  # what is corrupted already is not corrupted again
        patterns = [
            info.name if info.family else f"{info.name}+{{clean,*,extra}}" for info in infos
        ]
    names: list[str] = []
    for pattern in [patterns] if isinstance(patterns, str) else patterns:
        parts: list[tuple[str, str | None, str | None]]
        if pattern in suites and suites[pattern].of_sets:
            parts = [(name, None, None) for name in suites[pattern].sets()]
        elif pattern in suites:
            one = suites[pattern]
            parts = [(one.images or "SET", part, one.variant) for part in one.shifts]
        else:
            parts = [
                (name, part, None)
                for given, part in map(split_pattern, expand_braces(pattern))
                for name in (_known(given, variants) if _is_wild(given) else [given])
            ]
        for name, part, variant in parts:
            own = variants.get(name, variant or _DEFAULT)
            names.extend(_name(name, shift, own) for shift in _shifts(part, variant or own))
    return list(dict.fromkeys(names))


def states_of(names: Iterable[str]) -> dict[str, str]:
    """Return for each setting whether its pictures are ``ready``, or how they come here.

    Of a set that is not known by name it can only be said that it is ``yours``.
    """
    states = {info.name: info.state for info in list_sets()}
    return {name: states.get(split_pattern(name)[0], "yours") for name in names}


def given_sets(data: DataLike | None) -> list[ImageSet]:
    """Open the image sets that a user gives, each under the name that the user says.

    >>> given_sets(None)
    []
    """
    return _Opener(data).given


def _usual(
    images: ImageSet, opener: _Opener, reading: ClassMap | None, combine: Combine
) -> Setting | None:
    """Return the setting that an anomalous set is told apart from."""
    name = card_of(images).usual
    if name is None:
        return None
    pairs = _pairs(name, opener)
    if len(pairs) != 1 or card_of(pairs[0][0]).usual is not None:
        raise InputError(
            f"{images.name} is told apart from {name!r}, which should be one setting of usual "
            "pictures"
        )
    [(usual, usual_name, shift)] = pairs
    return Setting(usual_name, usual, shift, check_score(usual), reading, combine)


def _is_wild(text: str) -> bool:
    return any(char in text for char in "*?[")


def _known(given: str, names: Iterable[str]) -> list[str]:
    """Return the names of known image sets that a name or wildcard means."""
    found = [name for name in names if fnmatchcase(name, given)]
    if not found:
        raise unknown("image set or suite", given, [*names, *(one.name for one in list_suites())])
    return found


#: The variant for image sets that no benchmark has a variant for: the user's own.
_DEFAULT = "imagenet-c"

#: What the grammar of names gives a meaning to.
_RESERVED = "+@{},*?["

_Pairs = list[tuple[ImageSet, str, Shift | Attack | None]]


class _Opener:
    """Opens each image set once, under the name that the user gave it."""

    def __init__(self, data: DataLike | None) -> None:
        self._variants = {info.name: info.card.variant for info in list_sets()}
        self.given = [self._opened(name, one) for name, one in _named(data)]
        self._open = {images.name: images for images in self.given}
        if len(self._open) < len(self.given):
            names = [images.name for images in self.given]
            twice = next(name for name in names if names.count(name) > 1)
            raise InputError(
                f"two of the image sets given are called {twice!r}; name them, as in "
                f"one=PATH and two=PATH"
            )

    def _opened(self, name: str | None, given: ImagesLike) -> ImageSet:
        images = open_set(given, name=name)
        if name is not None and name != images.name:
            # A set that has a name of its own goes by the user's here, with its variant.
            self._variants[name] = self.variant(images)
            images = copy.copy(images)
            vars(images)["name"] = name
        if not images.name or any(char in images.name for char in _RESERVED):
            raise InputError(
                f"an image set cannot be called {images.name!r}, because names of settings are "
                f"made with {' '.join(_RESERVED)}; name it, as in NAME=PATH"
            )
        return images

    def find(self, name: str) -> list[ImageSet]:
        """Return the image sets that a pattern's first part means."""
        known = dict.fromkeys([*self._open, *self._variants])
        if not name:
            if not self.given:
                raise InputError(
                    "this needs an image set: name one with data (a folder with one folder per "
                    "class, an .npz file, or a set that `shiftbed list sets` shows)"
                )
            return self.given
        if name in self._open:
            return [self._open[name]]
        if _is_wild(name) and found_path(name) is None:
            return [images for one in _known(name, known) for images in self.find(one)]
        if "/" not in name and found_path(name) is None:
            _known(name, known)
        images = open_set(name)
        self._open[name] = self._open.setdefault(images.name, images)
        return [self._open[name]]

    def variant(self, images: ImageSet) -> str:
        """Return the variant of corruptions that an image set's own benchmark uses."""
        return self._variants.get(images.name, card_of(images).variant)


def _named(data: DataLike | None) -> list[tuple[str | None, ImagesLike]]:
    if data is None:
        return []
    if isinstance(data, Mapping):
        return list(data.items())
    if is_dataset(data):
        return [(None, data)]
    several = [data] if isinstance(data, (str, Path, ImageSet)) else data
    named: list[tuple[str | None, ImagesLike]] = []
    for one in several:
        name, equals, path = one.partition("=") if isinstance(one, str) else ("", "", "")
        whole = isinstance(one, str) and found_path(one) is not None
        if equals and name and not set("/:") & set(name) and not whole:
            named.append((name, path))
        else:
            named.append((None, one))
    return named


def _suite_pairs(suite: Suite, opener: _Opener) -> _Pairs:
    if suite.of_sets:
        return _sets_of(suite, opener)
    sets = opener.given or opener.find(suite.images or "")
    return [
        pair
        for images in sets
        for part in suite.shifts
        for pair in _shifted(images, part, suite.variant, opener)
    ]


def _sets_of(suite: Suite, opener: _Opener) -> _Pairs:
    """Return the settings of a suite of sets, or say which of them are not at hand."""
    states = {info.name: info.state for info in list_sets()}
    wanted = suite.sets()
    absent = [name for name in wanted if states.get(name) != "ready"]
    if absent:
        ready = [name for name in wanted if name not in absent]
        rest = (
            f"those that are: --setting '{{{','.join(ready)}}}'"
            if 0 < len(ready) <= 20
            else "`shiftbed list sets` says which are"
        )
        raise InputError(
            f"the suite {suite.name} has {len(wanted)} sets, and {len(absent)} of them are not on "
            f"this machine ({', '.join(absent[:3])}{', ...' if len(absent) > 3 else ''}); {rest}"
        )
    return [pair for name in wanted for pair in _pairs(name, opener)]


def _pairs(name: str, opener: _Opener) -> _Pairs:
    part, shift = split_pattern(name)
    return [pair for images in opener.find(part) for pair in _shifted(images, shift, None, opener)]


def _shifted(images: ImageSet, part: str | None, variant: str | None, opener: _Opener) -> _Pairs:
    own = opener.variant(images)
    shifts = _shifts(part, variant or own)
    return [(images, _name(images.name, shift, own), shift) for shift in shifts]


def _name(images: str, shift: Shift | Attack | None, own: str) -> str:
    if shift is None:
        return images
    if isinstance(shift, Attack):
        return f"{images}+{shift}"
    elsewhere = "" if shift.variant == own else f"@{shift.variant}"
    return f"{images}+{shift}{elsewhere}"


def _shifts(pattern: str | None, variant: str) -> Sequence[Shift | Attack | None]:
    """Return the shifts that ``fog.*``, ``zigzag@mnist-c`` or ``pgd.linf.2`` means."""
    from shiftbed.corruptions import VARIANTS, corruptions

    pattern, at, chosen = (pattern or "clean").partition("@")
    if at:
        if chosen not in VARIANTS:
            raise unknown("variant of the corruptions", chosen, VARIANTS)
        variant = chosen
    if pattern == "clean":
        return [None]
    if is_attack(pattern):
        if at:
            raise InputError(f"{pattern} is an attack, which has no variants; leave @{chosen} out")
        return attacks_named(pattern)
    known = {spec.name: spec.standing for spec in corruptions(variant)}
    corruption, _, step = pattern.partition(".")
    if corruption == "extra":
        names = [name for name, standing in known.items() if standing == "extra"]
    elif _is_wild(corruption):
        # A wildcard is for the benchmark's own; the extra ones are asked for by name.
        names = [
            name
            for name, standing in known.items()
            if standing == "main" and fnmatchcase(name, corruption)
        ]
    else:
        names = [name for name in known if name == corruption]
    if not names:
        names = [*known, "clean", "extra", *attack_kinds()]
        raise unknown(f"corruption of {variant}", corruption, names)
    return [shift for name in names for shift in _steps(name, step, variant)]


def _steps(name: str, step: str, variant: str) -> list[Shift | None]:
    from shiftbed.corruptions import severities, standard_severity

    known = severities(name, variant)
    standard = standard_severity(name, variant)
    if not step:
        if standard is not None or not known:
            return [Shift(name, None, variant)]
        return [Shift(name, severity, variant) for severity in known]
    chosen = [severity for severity in known if fnmatchcase(str(severity), step)]
    if not chosen:
        has = f"has severities {known[0]} to {known[-1]}" if known else "has no severities"
        raise InputError(f"{name} of {variant} {has}; {step!r} is none of them")
    # The standard severity has one name, the one without a number.
    return [Shift(name, None if severity == standard else severity, variant) for severity in chosen]
