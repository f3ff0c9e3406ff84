"""What an attack is, and the names that attacks go by."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal, get_args

from shiftbed.errors import InputError, unknown

__all__ = ["Attack", "Kind", "Norm", "attack_kinds", "attacks_named", "is_attack", "published"]

Kind = Literal["pgd", "fgsm", "uniform"]
Norm = Literal["linf", "l2"]

#: Raised when the same attack would give other pixels.
VERSION = 1
#: The side of the pictures for which the testbed stated its l2 radii.
SIDE = 224
#: Steps of projected gradient descent in the testbed's runs, and their length in parts of the
#: radius: together 3 radii in l-inf, and 10 in l2.
STEPS = 100
STEP: dict[str, float] = {"linf": 0.03, "l2": 0.1}

_NAME = re.compile(
    r"(?P<kind>[a-z]+)\.(?P<norm>[a-z0-9]+)\.(?P<eps>\d+(\.\d+)?)"
    r"(\.(?P<steps>\d+)steps)?(?P<random>\.random)?"
)


@dataclass(frozen=True)
class Attack:
    """A search, within a small ball around a picture, for a picture that the model gets wrong.

    ``pgd`` takes many short steps up the slope of the loss, ``fgsm`` a single one as long as
    the radius, and ``uniform`` none: it draws one picture from the ball.

    >>> str(Attack("pgd", "linf", 0.5)), str(Attack("pgd", "l2", 0.1, steps=10, random_start=True))
    ('pgd.linf.0.5', 'pgd.l2.0.1.10steps.random')
    """

    kind: Kind
    norm: Norm
    #: The radius: of 255 grey levels in l-inf; in l2, where white is 1, for 224 px.
    eps: float
    #: None: 100 for PGD; the others have no choice.
    steps: int | None = None
    #: Whether PGD and FGSM set out from a point of the ball rather than from its centre.
    random_start: bool = False

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise unknown("attack", self.kind, get_args(Kind))
        if self.norm not in get_args(Norm):
            raise unknown("norm for attacks", self.norm, get_args(Norm))
        # Names have whole radii and fractions, but no powers of ten.
        if not 1e-4 <= self.eps < 1e6:
            raise InputError(
                f"the radius of {self.kind} is {self.eps}; expected a number above 0, from 0.0001 "
                "to a million"
            )
        if self.steps is not None and (self.kind != "pgd" or not 1 <= self.steps <= 10_000):
            raise InputError(
                f"{self.steps} steps were asked of {self.kind}; only pgd has a number of steps, "
                "from 1 to 10,000"
            )

    def __str__(self) -> str:
        steps = "" if self.steps in (None, STEPS) else f".{self.steps}steps"
        start = ".random" if self.random_start and self.kind != "uniform" else ""
        return f"{self.kind}.{self.norm}.{self.eps:g}{steps}{start}"

    @property
    def random(self) -> bool:
        """Whether it draws at random, so that its pictures depend on the seed."""
        return self.random_start or self.kind == "uniform"

    @property
    def gradients(self) -> int:
        """How many times it asks for the loss's slope, if the model is never fooled."""
        return {"pgd": self.steps or STEPS, "fgsm": 1, "uniform": 0}[self.kind]

    @property
    def step(self) -> float:
        """The length of a step, in parts of the radius.

        Fewer steps than the published 100 are longer, so that they reach as far in all.
        """
        return STEP[self.norm] * STEPS / self.gradients if self.kind == "pgd" else 1.0

    def radius(self, height: int, width: int) -> float:
        """Return the ball's radius for pixels in [0, 1].

        An l2 distance grows with the side of the picture if every pixel changes alike.

        >>> Attack("pgd", "linf", 2).radius(64, 64) * 255, Attack("pgd", "l2", 0.5).radius(112, 112)
        (2.0, 0.25)
        """
        if self.norm == "linf":
            return self.eps / 255
        return self.eps * math.sqrt(height * width) / SIDE

    def described(self) -> dict[str, str | int | None]:
        """Return all that its pictures depend on beside the model, the labels and the seed."""
        return {
            "attack": self.kind,
            "norm": self.norm,
            "eps": repr(float(self.eps)),
            "steps": self.gradients,
            "step": repr(self.step),
            "start": "random" if self.random else "picture",
            "version": VERSION,
        }


def published() -> list[Attack]:
    """Return the ImageNet testbed's four attacks.

    >>> [str(one) for one in published()]
    ['pgd.linf.0.5', 'pgd.linf.2', 'pgd.l2.0.1', 'pgd.l2.0.5']
    """
    return [
        *(Attack("pgd", "linf", eps) for eps in (0.5, 2.0)),
        *(Attack("pgd", "l2", eps) for eps in (0.1, 0.5)),
    ]


def attack_kinds() -> tuple[str, ...]:
    """Return the first part of every attack's name."""
    return get_args(Kind)


def is_attack(pattern: str) -> bool:
    """Whether a shift's pattern is that of an attack, well formed or not.

    >>> is_attack("pgd.linf.2"), is_attack("fgsm"), is_attack("fog.2"), is_attack("*")
    (True, True, False, False)
    """
    return pattern.partition(".")[0] in attack_kinds()


def attacks_named(pattern: str) -> list[Attack]:
    """Return the attacks that a name means, or a wildcard among the published ones.

    >>> attacks_named("fgsm.linf.8.random")
    [Attack(kind='fgsm', norm='linf', eps=8.0, steps=None, random_start=True)]
    >>> [str(one) for one in attacks_named("pgd.l2.*")]
    ['pgd.l2.0.1', 'pgd.l2.0.5']
    """
    if any(char in pattern for char in "*?["):
        chosen = [one for one in published() if fnmatchcase(str(one), pattern)]
        if not chosen:
            names = ", ".join(map(str, published()))
            raise InputError(f"no published attack is called {pattern}; there are {names}")
        return chosen
    matched = _NAME.fullmatch(pattern)
    if matched is None:
        raise InputError(
            f"{pattern!r} is no attack; write KIND.NORM.RADIUS as in pgd.linf.2 (of 255), "
            "pgd.l2.0.5, fgsm.linf.8 or uniform.linf.8, and .40steps or .random after it"
        )
    kind, norm = matched["kind"], matched["norm"]
    if norm not in get_args(Norm):
        raise unknown("norm for attacks", norm, get_args(Norm))
    steps = matched["steps"]
    return [
        Attack(
            next(one for one in get_args(Kind) if one == kind),
            next(one for one in get_args(Norm) if one == norm),
            float(matched["eps"]),
            None if steps is None or int(steps) == STEPS else int(steps),
            matched["random"] is not None,
        )
    ]
