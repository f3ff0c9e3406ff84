"""Suites: named lists of settings, each with the variant and the score of its benchmark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from shiftbed import _plugins
from shiftbed.data import list_sets
from shiftbed.errors import unknown

__all__ = ["Score", "Suite", "add_suite", "list_suites", "suite"]

#: ``mce``: mean corruption error against a baseline model; ``accuracy``: the plain mean.
Score = Literal["mce", "accuracy"]


@dataclass(frozen=True)
class Suite:
    """The settings ``SET+SHIFT`` for a list of patterns of shifts.

    >>> suite("mnist-c").images, suite("mnist-c").score
    ('mnist-test', 'mce')
    """

    name: str
    about: str
    #: Patterns of shifts, in the benchmark's order; ``clean`` among them.
    shifts: tuple[str, ...]
    #: The variant of the corruptions; None: the image set's own.
    variant: str | None
    score: Score
    #: The image set's name; None: the user says it.
    images: str | None = None
    #: Instead: the sets that say they belong to it, and their clean counterparts.
    of_sets: bool = False

    def sets(self) -> list[str]:
        """Return the names of the settings of a suite of sets.

        >>> suite("mnist-c-stored").sets()[:2]
        ['mnist-test', 'mnist-c.brightness']
        """
        mine = [info.card for info in list_sets() if self.name in info.suites]
        cleans = [card.clean for card in mine if card.clean is not None]
        return list(dict.fromkeys([*cleans, *(card.name for card in mine)]))


_SUITES: dict[str, Suite] = {}


def add_suite(suite: Suite) -> Suite:
    """Make a suite known by its name."""
    _SUITES[suite.name] = suite
    return suite


def list_suites() -> list[Suite]:
    """Return every suite known by name."""
    _plugins.load()
    return list(_SUITES.values())


def suite(name: str) -> Suite:
    """Return a suite by its name."""
    known = {one.name: one for one in list_suites()}
    if name not in known:
        raise unknown("suite", name, known)
    return known[name]


add_suite(
    Suite(
        "imagenet-c",
        "ImageNet-C: 15 corruptions at 5 severities, in memory, on the set you name",
        ("clean", "*"),
        "imagenet-c",
        "mce",
    )
)
add_suite(
    Suite(
        "imagenet-c-extra",
        "ImageNet-C's 4 extra corruptions, held back for validation",
        ("clean", "extra"),
        "imagenet-c",
        "mce",
    )
)
add_suite(
    Suite(
        "imagenet-c-299",
        "ImageNet-C as defined for 299 px",
        ("clean", "*"),
        "imagenet-299",
        "mce",
    )
)
add_suite(
    Suite(
        "tiny-imagenet-c",
        "Tiny ImageNet-C: 15 corruptions at 5 severities for 64 px",
        ("clean", "*"),
        "tiny-imagenet-c",
        "mce",
    )
)
add_suite(
    Suite(
        "cifar-c",
        "CIFAR-10-C and CIFAR-100-C: 15 corruptions at 5 severities for 32 px",
        ("clean", "*"),
        "cifar-c",
        "mce",
    )
)
add_suite(
    Suite(
        "mnist-c",
        "MNIST-C: 15 corruptions of digits at the benchmark's one severity",
        ("clean", "*"),
        "mnist-c",
        "mce",
        images="mnist-test",
    )
)
add_suite(
    Suite(
        "pgd",
        "the testbed's four attacks, l-inf and l2, on each model that has gradients",
        ("clean", "pgd.*"),
        None,
        "accuracy",
    )
)
add_suite(
    Suite(
        "all",
        "every corruption of the set's own benchmark, the extra ones too",
        ("clean", "*", "extra"),
        None,
        "accuracy",
    )
)
add_suite(
    Suite(
        "natural",
        "the natural shifts of ImageNet, each with its matched clean setting",
        (),
        None,
        "accuracy",
        of_sets=True,
    )
)
for _family, _about in (
    ("imagenet-c", "ImageNet-C as published, in JPEG files"),
    ("tiny-imagenet-c", "Tiny ImageNet-C as published, in JPEG files"),
    ("cifar-10-c", "CIFAR-10-C as published, in arrays"),
    ("cifar-100-c", "CIFAR-100-C as published, in arrays"),
    ("mnist-c", "MNIST-C as published, in arrays"),
):
    add_suite(Suite(f"{_family}-stored", _about, (), None, "mce", of_sets=True))
for _icons in ("icons-50", "icons-50-rebuilt"):
    add_suite(
        Suite(
            _icons,
            "held-out styles and subtypes of icons, and a held-out version as their control",
            (),
            None,
            "accuracy",
            of_sets=True,
        )
    )
add_suite(
    Suite(
        "deepfashion-remixed",
        "DeepFashion Remixed: one attribute at a time, mean average precision",
        (),
        None,
        "accuracy",
        of_sets=True,
    )
)
