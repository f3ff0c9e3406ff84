"""What a cell is, what its answer depends on, and how it went."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from shiftbed.errors import InputError

__all__ = ["FORMAT", "Counts", "Identity", "Manifest"]

#: No folder, and nothing hidden.
_FILE_NAME = re.compile(r"\w[\w.-]{0,99}", re.ASCII)
#: Raised when the meaning of a stored column changes.
FORMAT = 2


@dataclass(frozen=True)
class Identity:
    """All that a cell's bytes depend on. Two cells are the same if and only if this is."""

    model: str
    setting: str
    #: Fingerprints of the image set (pictures, order, labels) and of the model (weights,
    #: normalisation, precision, geometry).
    pictures: str
    weights: str
    geometry: str
    class_space: str
    #: Corruption, severity, variant and the version of its pixels; None: pictures as they are.
    shift: Mapping[str, str | int | None] | None = None
    #: Of the shift's randomness; None where there is none.
    seed: int | None = None
    format: int = FORMAT

    @cached_property
    def key(self) -> str:
        """The name of the cell's folder: a hash of everything above."""
        import hashlib

        text = json.dumps(dataclasses.asdict(self), sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()[:20]

    def difference(self, other: Identity) -> str:
        """Say what changed from ``self`` to ``other``, which bear the same names.

        >>> one = Identity("m", "s", "p", "w", "g", "c", seed=0)
        >>> one.difference(dataclasses.replace(one, weights="x", seed=1))
        "the model's weights, precision or backend (w there, x now) and the seed (0 there, 1 now)"
        """
        said = {
            "format": "the format of the results",
            "pictures": "the pictures or their labels",
            "weights": "the model's weights, precision or backend",
            "geometry": "the model's geometry",
            "class_space": "how its outputs are read as classes",
            "shift": "the shift",
            "seed": "the seed",
        }
        changes = []
        for name, words in said.items():
            before, now = getattr(self, name), getattr(other, name)
            if before == now or (name == "geometry" and self.weights != other.weights):
                continue
            if isinstance(before, Mapping) and isinstance(now, Mapping):
                before = {k: v for k, v in before.items() if now.get(k) != v}
                now = {k: now.get(k) for k in before}
            changes.append(f"{words} ({_short(before)} there, {_short(now)} now)")
        return " and ".join(changes)


@dataclass(frozen=True)
class Counts:
    """How many pictures a cell has, how many were scored, and how many of those are right."""

    pictures: int
    scored: int
    #: None where the pictures have no labels.
    correct: int | None = None
    top5: int | None = None


@dataclass(frozen=True)
class Manifest:
    """One cell's record. Written when the cell begins, and again when it is complete.

    It holds nothing that differs between two runs of the same thing: times and dates are
    in a file of their own beside it.
    """

    identity: Identity
    #: What was asked for: the model's spec, the picture set, the limit, ...
    spec: Mapping[str, Any] = field(default_factory=dict)
    #: What a study may ask about the model: category, architecture, parents, ...
    tags: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    metric: str = "top1"
    class_space: str | None = None
    #: None until the cell is complete.
    counts: Counts | None = None
    #: Pictures that could not be scored: (id, reason).
    skipped: tuple[tuple[str, str], ...] = ()
    #: SHA-256 of the cell's files, by name, once it is complete.
    files: Mapping[str, str] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """The name of the cell's folder."""
        return self.identity.key

    @property
    def complete(self) -> bool:
        """Whether every picture was scored, or listed with the reason why not."""
        return self.counts is not None

    def to_json(self) -> str:
        """Return the same text for the same cell, always."""
        return json.dumps(dataclasses.asdict(self), indent=1, sort_keys=True)

    @classmethod
    def from_json(cls, text: str, where: str = "the manifest") -> Manifest:
        """Read a manifest, or say that it is damaged.

        >>> cell = Manifest(Identity("m", "s", "p", "w", "g", "c"), counts=Counts(3, 2, 1, 2))
        >>> Manifest.from_json(cell.to_json()) == cell
        True
        """
        try:
            read = json.loads(text)
            if read["identity"]["format"] != FORMAT:
                raise InputError(
                    f"{where} was written in format {read['identity']['format']}, and this "
                    f"version of shiftbed reads format {FORMAT}; evaluate into a new folder"
                )
            counts = read.pop("counts")
            manifest = cls(
                identity=Identity(**read.pop("identity")),
                counts=None if counts is None else Counts(**counts),
                skipped=tuple((str(name), str(reason)) for name, reason in read.pop("skipped")),
                **read,
            )
            _check(manifest)
            return manifest
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as problem:
            if isinstance(problem, InputError):
                raise
            raise InputError(
                f"{where} is damaged ({problem}); remove its folder, and the same evaluation "
                "makes it again"
            ) from None


def _check(manifest: Manifest) -> None:
    """Raise ValueError unless everything is of its type, and every file one of the cell's own.

    Results may come from anybody: what their records name is joined to paths and shown.
    """
    identity, counts = manifest.identity, manifest.counts
    text, table = (str,), (Mapping,)
    kinds: dict[str, tuple[type, ...]] = dict.fromkeys(
        ("model", "setting", "pictures", "weights", "geometry", "class_space"), text
    )
    kinds |= {"shift": (Mapping, type(None)), "seed": (int, type(None))}
    wrong = [name for name, kind in kinds.items() if not isinstance(getattr(identity, name), kind)]
    kinds = {"metric": text, "class_space": (str, type(None))}
    kinds |= dict.fromkeys(("spec", "tags", "versions", "files"), table)
    wrong += [name for name, kind in kinds.items() if not isinstance(getattr(manifest, name), kind)]
    if counts is not None:
        numbers = counts.pictures, counts.scored, counts.correct or 0, counts.top5 or 0
        wrong += [] if all(type(one) is int and one >= 0 for one in numbers) else ["counts"]
    if wrong:
        raise ValueError(f"{wrong[0]} is of another type")
    for name in (identity.pictures, *manifest.files):
        if not _FILE_NAME.fullmatch(name):
            raise ValueError(f"{name[:60]!r} is no file of a cell")


def _short(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_short(item)}" for name, item in value.items())
    text = str(value)
    return f"{text[:10]}…" if len(text) > 24 and " " not in text else text
