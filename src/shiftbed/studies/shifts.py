"""What belongs together: for each shifted setting, the clean one that it is compared with."""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from dataclasses import dataclass

from shiftbed.errors import InputError

__all__ = [
    "NATURAL",
    "NaturalShift",
    "chosen_shifts",
    "classes_of",
    "clean_of",
    "natural_shifts",
    "same_classes",
    "severity_free",
    "stored",
    "synthetic",
]


@dataclass(frozen=True)
class NaturalShift:
    """A natural shift: the clean setting with the same classes, and the shape of its baseline."""

    clean: str
    #: ``dataset``, ``consistency``, or ``filtered`` for pictures chosen because a model failed.
    kind: str
    #: Filtered sets: the model that they were filtered against. It fails on them by
    #: construction, so it tells nothing about the trend.
    adversary: str | None = None


_V2 = ("matched-frequency", "threshold-0.7", "top-images")

#: The natural shifts that studies know. Others name their clean setting when asked about.
NATURAL: dict[str, NaturalShift] = {
    **{
        f"imagenet-v2-{version}{form}": NaturalShift("imagenet-val", "dataset")
        for version in _V2
        for form in ("", ".format-val")
    },
    "imagenet-v2-matched-frequency.format-val.class-1-of-8": NaturalShift(
        "imagenet-val.class-1-of-8", "dataset"
    ),
    "objectnet": NaturalShift("imagenet-val.objectnet-classes", "dataset"),
    "imagenet-sketch": NaturalShift("imagenet-val", "dataset"),
    "imagenet-r": NaturalShift("imagenet-val.imagenet-r-classes", "dataset"),
    "imagenet-vid-robust.anchors": NaturalShift(
        "imagenet-val.imagenet-vid-robust-classes", "dataset"
    ),
    "ytbb-robust.anchors": NaturalShift("imagenet-val.ytbb-robust-classes", "dataset"),
    "imagenet-vid-robust.pm10": NaturalShift("imagenet-vid-robust.anchors", "consistency"),
    "ytbb-robust.pm10": NaturalShift("ytbb-robust.anchors", "consistency"),
    "imagenet-a": NaturalShift("imagenet-val.imagenet-a-classes", "filtered", adversary="resnet50"),
}

_STORED = re.compile(r"(tiny-imagenet-c|imagenet-c|cifar-100?-c|mnist-c)\.(.+)")
_CLEAN_OF_STORED = {
    "imagenet-c": "imagenet-val",
    "tiny-imagenet-c": "tiny-imagenet-val",
    "cifar-10-c": "cifar10-test",
    "cifar-100-c": "cifar100-test",
    "mnist-c": "mnist-test",
}


def natural_shifts(settings: Container[str]) -> list[str]:
    """Return the known natural shifts among settings whose clean setting is there too.

    >>> natural_shifts(["imagenet-val", "imagenet-sketch", "imagenet-r"])
    ['imagenet-sketch']
    """
    return [name for name, shift in NATURAL.items() if name in settings and shift.clean in settings]


def chosen_shifts(named: Sequence[str] | None, settings: Container[str]) -> list[str]:
    """Return the shifts that somebody named, or else all known natural ones.

    >>> chosen_shifts(["photos+fog.3"], [])
    ['photos+fog.3']
    >>> chosen_shifts(None, ["imagenet-val", "imagenet-sketch"])
    ['imagenet-sketch']
    """
    chosen = list(named or natural_shifts(settings))
    if not chosen:
        raise InputError(
            "there is no known natural shift among the settings, with its clean setting; "
            "name a shifted setting, like photos+fog.3"
        )
    return chosen


def clean_of(setting: str, known: Container[str]) -> str:
    """Return the clean setting that a shifted one is compared with.

    >>> clean_of("photos+fog.3", ["photos", "photos+fog.3"])
    'photos'
    >>> clean_of("imagenet-r", [])
    'imagenet-val.imagenet-r-classes'
    """
    if setting in NATURAL:
        return NATURAL[setting].clean
    if "+" in setting:
        images = setting.split("+")[0]
        return f"{images}+clean" if images not in known and f"{images}+clean" in known else images
    if found := _STORED.fullmatch(setting):
        return _CLEAN_OF_STORED[found[1]]
    if setting == "stylized-imagenet":
        return "imagenet-val"
    raise InputError(
        f"{setting} does not say what its clean setting is; name it, like --clean imagenet-val"
    )


def same_classes(clean: str, shifted: str) -> bool:
    """Say whether two settings, as far as they are known, are scored over the same classes.

    >>> same_classes("imagenet-val", "imagenet-r")
    False
    >>> same_classes("photos", "photos+fog.1")
    True
    """
    return classes_of(clean) == classes_of(shifted) or None in (
        classes_of(clean),
        classes_of(shifted),
    )


def classes_of(setting: str) -> str | None:
    """Return the clean ImageNet setting whose classes a setting has; None: nobody knows.

    >>> classes_of("imagenet-c.fog.3"), classes_of("photos+fog.3")
    ('imagenet-val', None)
    """
    setting = setting.split("+")[0]
    while setting in NATURAL:
        setting = NATURAL[setting].clean
    if found := _STORED.fullmatch(setting):
        setting = _CLEAN_OF_STORED[found[1]]
    elif setting == "stylized-imagenet":
        setting = "imagenet-val"
    return setting if setting.startswith("imagenet-val") else None


def synthetic(setting: str) -> bool:
    """Say whether a setting is pictures changed on purpose.

    >>> [synthetic(s) for s in ("imagenet-c.fog.3", "photos+fog.3", "photos+clean", "objectnet")]
    [True, True, False, False]
    """
    if "+" in setting:
        return not setting.endswith("+clean")
    return bool(_STORED.fullmatch(setting)) or setting == "stylized-imagenet"


def stored(setting: str) -> bool | None:
    """Say whether corrupted pictures come from disk or are made in memory; None: not corrupted.

    >>> stored("imagenet-c.fog.3"), stored("imagenet-val+fog.3"), stored("imagenet-r")
    (True, False, None)
    """
    if not synthetic(setting):
        return None
    return bool(_STORED.fullmatch(setting))


def severity_free(setting: str) -> str:
    """Return the name that all severities of a shift share.

    >>> severity_free("imagenet-c.fog.3"), severity_free("imagenet-val+pgd.l2.0.1")
    ('imagenet-c.fog', 'imagenet-val+pgd.l2')
    >>> severity_free("mnist-test+zigzag")
    'mnist-test+zigzag'
    """
    return re.sub(r"\.\d+(\.\d+)?$", "", setting)
