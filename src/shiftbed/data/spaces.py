"""Class spaces: how a model's outputs are read as an image set's classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from shiftbed.data.card import ClassMap, Combine
from shiftbed.data.files import parsed_csv, parsed_json, read_text
from shiftbed.data.imagenet import imagenet_names
from shiftbed.data.sets import digest
from shiftbed.errors import InputError, unknown

__all__ = ["ClassSpace", "KeyIndex", "match_classes", "read_class_map"]


@dataclass(frozen=True)
class ClassSpace:
    """For each class of an image set, the model outputs that mean it, and how they combine.

    >>> space = ClassSpace(("cat", "dog"), outputs=4, members=((0,), (1, 3)))
    >>> space.kind
    'superclass'
    >>> space.scores(np.array([[0.5, 0.1, 9.0, 0.7]]))
    array([[0.5, 0.7]], dtype=float32)
    """

    classes: tuple[str, ...]
    #: How many outputs the model has.
    outputs: int
    #: For each class, the outputs that mean it.
    members: tuple[tuple[int, ...], ...]
    #: Several outputs for a class: the maximum of their logits, or the logarithm of the
    #: mean or the sum of their exponentials, that is of their probabilities.
    combine: Combine = "max"
    #: A picture may have several of the classes: labels are truth values, and each class's
    #: score is judged by itself.
    multilabel: bool = False
    #: Nobody said what the outputs mean: they are taken in the order of the classes.
    assumed: bool = field(default=False, compare=False, repr=False)

    @cached_property
    def kind(self) -> str:
        """``full``, ``subset`` or ``superclass``."""
        if any(len(outputs) > 1 for outputs in self.members):
            return "superclass"
        return "full" if len(self.members) == self.outputs else "subset"

    @cached_property
    def name(self) -> str:
        """A short text that tells spaces apart in tables: what is read, and of how many.

        >>> ClassSpace(("cat",), 4, ((1,),)).name[:13]
        'subset 1 of 4'
        """
        how = f" {self.combine}" if self.kind == "superclass" else ""
        many = " multi-label" if self.multilabel else ""
        size = str(self.outputs)
        if self.kind != "full":
            size = f"{len(self.classes)} of {self.outputs}"
        identity = digest([*self.classes, repr(self.members)])[:6]
        return f"{self.kind}{how}{many} {size} #{identity}"

    def scores(self, logits: npt.ArrayLike) -> npt.NDArray[np.float32]:
        """Return (N, classes) scores: logits again, so their softmax is over these classes."""
        logits = np.asarray(logits, np.float32)
        if logits.ndim != 2 or logits.shape[1] != self.outputs:
            raise InputError(
                f"logits of shape {logits.shape} do not fit a class space that reads "
                f"{self.outputs} outputs per picture"
            )
        if self.kind != "superclass":
            first = [outputs[0] for outputs in self.members]
            return np.ascontiguousarray(logits[:, first])
        columns = [_combined(logits[:, list(outputs)], self.combine) for outputs in self.members]
        return np.stack(columns, axis=1).astype(np.float32)


def _combined(logits: npt.NDArray[np.float32], combine: Combine) -> npt.NDArray[np.float32]:
    top: npt.NDArray[np.float32] = logits.max(axis=1)
    if combine == "max" or logits.shape[1] == 1:
        return top
    total = np.exp(logits.astype(np.float64) - top[:, None]).sum(axis=1)
    if combine == "mean":
        total = total / logits.shape[1]
    return np.asarray(top + np.log(total), np.float32)


def match_classes(
    classes: Sequence[str],
    keys: Sequence[str] | None,
    outputs: int,
    *,
    class_map: ClassMap | None = None,
    combine: Combine = "max",
    multilabel: bool = False,
    model: str = "the model",
    images: str = "the image set",
) -> ClassSpace:
    """Return how ``outputs`` model outputs named ``keys`` are read as ``classes``.

    Classes are found among the keys by WordNet id or by name, or as ``class_map`` says.
    Outputs that nobody named are taken in order only if there are as many as classes.

    >>> match_classes(["goldfish", "tench"], ["n01440764", "n01443537"], 2).members
    ((1,), (0,))
    >>> match_classes(["fish"], None, 3, class_map={"fish": [0, 2]}).members
    ((0, 2),)
    """
    if keys is not None and len(keys) != outputs:
        raise InputError(
            f"{model} has {outputs} outputs, but {len(keys)} names were given for them; "
            "give one name per output, in order"
        )
    if combine not in ("max", "mean", "sum"):
        raise unknown("way to combine outputs", combine, ["max", "mean", "sum"])
    if class_map is not None:
        members = _mapped(classes, keys, outputs, class_map, model, images)
    elif keys is not None:
        members = _matched(classes, keys, model, images)
    elif len(classes) == outputs:
        members = tuple((index,) for index in range(outputs))
    else:
        raise InputError(
            f"{model} has {outputs:,} outputs and {images} has {len(classes):,} classes "
            f"({_listed(classes)}), and nothing says which output means which class; say what "
            "the outputs mean (classes=imagenet-1k, or a file with one class per line), "
            f"{_WAYS_OUT}"
        )
    numbered = list(classes) == [str(number) for number in range(outputs)]
    assumed = class_map is None and keys is None and not numbered
    return ClassSpace(tuple(classes), outputs, members, combine, multilabel, assumed)


_WAYS_OUT = (
    "give a class map (a CSV file with the columns class,output, and several lines for a class "
    "that several outputs mean), or take a model trained on these classes"
)


def read_class_map(path: str | Path) -> dict[str, list[str | int]]:
    """Read a class map: CSV with the columns ``class,output``, or a JSON object of lists.

    An output is its number (from 0), its WordNet id or its name.
    """
    path = Path(path)
    try:
        text = read_text(path)
    except OSError as problem:
        raise InputError(f"cannot read the class map {path}: {problem.strerror}") from None
    except UnicodeDecodeError:
        raise InputError(f"the class map {path} is not text; {_FORMS}") from None
    found: dict[str, list[str | int]] = {}
    if path.suffix.lower() == ".json":
        content = parsed_json(text, path, _FORMS)
        if not isinstance(content, dict):
            raise InputError(f"the class map {path} holds no object; {_FORMS}")
        for name, value in content.items():
            found[name] = [
                _output(item) for item in (value if isinstance(value, list) else [value])
            ]
    else:
        for row in parsed_csv(text, path, ["class", "output"], _FORMS):
            if row["class"] and row["output"]:
                found.setdefault(row["class"].strip(), []).append(_output(row["output"].strip()))
    if not found:
        raise InputError(f"the class map {path} is empty; {_FORMS}")
    return found


_FORMS = (
    "expected a CSV file with the columns class,output, or a JSON object from each class "
    "to a list of outputs"
)


def _output(value: object) -> str | int:
    text = str(value)
    return int(text) if text.isdecimal() and len(text) < 10 else text


def _mapped(
    classes: Sequence[str],
    keys: Sequence[str] | None,
    outputs: int,
    class_map: ClassMap,
    model: str,
    images: str,
) -> tuple[tuple[int, ...], ...]:
    index = KeyIndex(keys) if keys is not None else None
    members = []
    for name in classes:
        if name not in class_map:
            raise unknown(
                f"entry of the class map for the class of {images} named", name, class_map
            )
        chosen = []
        for output in class_map[name]:
            if isinstance(output, int):
                if not 0 <= output < outputs:
                    raise InputError(
                        f"the class map sends {name!r} to output {output}, but {model} has "
                        f"{outputs:,} outputs, numbered from 0"
                    )
                chosen.append(output)
            elif index is None:
                raise InputError(
                    f"the class map sends {name!r} to {output!r}, but nothing says what the "
                    f"outputs of {model} are called; use output numbers, or say what the "
                    "outputs mean (classes=imagenet-1k, or a file with one class per line)"
                )
            else:
                found = index.find(output)
                if len(found) != 1:
                    raise unknown(f"output of {model} named", output, index.names())
                chosen.append(found[0])
        if not chosen:
            raise InputError(f"the class map gives {name!r} no output; give at least one")
        members.append(tuple(dict.fromkeys(chosen)))
    return tuple(members)


def _matched(
    classes: Sequence[str], keys: Sequence[str], model: str, images: str
) -> tuple[tuple[int, ...], ...]:
    index = KeyIndex(keys)
    found = [index.find(name) for name in classes]
    several = [name for name, outputs in zip(classes, found, strict=True) if len(outputs) > 1]
    missing = [name for name, outputs in zip(classes, found, strict=True) if not outputs]
    if several:
        meant = ", ".join(keys[output] for output in index.find(several[0]))
        raise InputError(
            f"the class {several[0]!r} of {images} may mean several outputs of {model} ({meant}); "
            "name the class by its WordNet id, or give a class map"
        )
    if missing:
        near = str(unknown("class", missing[0], index.names())).partition("; ")[2]
        # Where most are missing, what is like one of them is like it by chance.
        likely = near.startswith("did you mean") and 2 * len(missing) <= len(classes)
        hint = f" ({near})" if likely else ""
        raise InputError(
            f"{len(missing)} of the {len(classes):,} classes of {images} ({_listed(missing)}) are "
            f"not among the {len(keys):,} classes that {model} knows{hint}; "
            f"name them as it does (WordNet ids and their words are understood), {_WAYS_OUT}"
        )
    members = tuple(tuple(outputs) for outputs in found)
    if len(set(members)) < len(members):
        twice = next(
            name for name, one in zip(classes, members, strict=True) if members.count(one) > 1
        )
        raise InputError(
            f"two classes of {images} mean the same output of {model}, {twice!r} among them; "
            "merge them, or give a class map"
        )
    return members


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")


class KeyIndex:
    """Finds outputs by key, else by whole name, else by one of the words for it.

    >>> KeyIndex(["n01443537", "cat"]).find("goldfish")
    [0]
    """

    def __init__(self, keys: Sequence[str]) -> None:
        self._tiers: list[dict[str, list[int]]] = [{}, {}, {}]
        for output, key in enumerate(keys):
            for tier, names in zip(self._tiers, _names(key), strict=True):
                for name in names:
                    tier.setdefault(name, []).append(output)

    def find(self, name: str) -> list[int]:
        """Return the output that a name means; several if it is not clear; none."""
        for tier, names in zip(self._tiers, _names(name), strict=True):
            found = [tier[one] for one in names if one in tier]
            if found:
                # Of several words for a class, one that only one output has decides.
                return min(found, key=len)
        return []

    def names(self) -> list[str]:
        """Return everything that is understood."""
        return [name for tier in self._tiers for name in tier]


def _names(key: str) -> tuple[list[str], list[str], list[str]]:
    """Return a key itself, its whole name, and the words that the name gives for it."""
    words = imagenet_names().get(key) or tuple(key.split(", "))
    plain = [word.casefold().replace("_", " ").replace("-", " ").strip() for word in words]
    return [key], [", ".join(plain)], list(dict.fromkeys(plain))
