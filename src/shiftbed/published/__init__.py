"""The papers' own figures and class lists, as data files with their sources.

>>> table("many-faces-table-9").rows[0]
{'model': 'ResNet-50', 'method': None, 'imagenet_a_accuracy': 2.2}
>>> len(class_list("imagenet-r"))
200
"""

from __future__ import annotations

import csv
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from itertools import compress

from shiftbed.errors import InputError, unknown

__all__ = [
    "Table",
    "Value",
    "alexnet_clean_error",
    "alexnet_errors",
    "baseline_fits",
    "class_list",
    "class_lists",
    "class_names",
    "superclasses",
    "table",
    "tables",
]

#: One field of a row: a number where it reads as one, None where it is empty.
Value = str | float | None


@dataclass(frozen=True, slots=True)
class Table:
    """A printed table: its rows as printed, and where they were printed.

    >>> print(table("imagenet-c-table-1").source)
    Hendrycks and Dietterich, Benchmarking ... (arXiv 1807.01697), Table 1
    """

    name: str
    title: str
    source: str
    unit: str
    columns: tuple[str, ...]
    rows: tuple[dict[str, Value], ...]

    def column(self, name: str) -> tuple[Value, ...]:
        """Return one column from top to bottom.

        >>> table("mnist-c-figure-2").column("model")[:2]
        ('Conv1', 'Conv2 (PGD)')
        """
        if name not in self.columns:
            raise unknown("column", name, self.columns)
        return tuple(row[name] for row in self.rows)

    def numbers(self, name: str) -> tuple[float, ...]:
        """Return one column that holds nothing but numbers.

        >>> table("mnist-c-figure-2").numbers("relative_mce")[:2]
        (100.0, 449.09)
        """
        column = self.column(name)
        numbers = tuple(value for value in column if isinstance(value, float))
        if len(numbers) < len(column):
            raise InputError(f"the column {name!r} of {self.name} has fields without a number")
        return numbers

    def row(self, key: str) -> dict[str, Value]:
        """Return the row whose first column is ``key``.

        >>> table("imagenet-c-table-1").row("ResNet-50")["mce"]
        76.7
        """
        by_key = {str(row[self.columns[0]]): row for row in self.rows}
        if key not in by_key:
            raise unknown("row", key, by_key)
        return by_key[key]


def tables() -> tuple[str, ...]:
    """Return the names of all printed tables.

    >>> "mnist-c-figure-3" in tables()
    True
    """
    return tuple(_sources()["tables"])


def table(name: str) -> Table:
    """Return a printed table by its name.

    >>> table("imagenet-c-table-9")
    Traceback (most recent call last):
    shiftbed.errors.InputError: there is no published table 'imagenet-c-table-9'; did you mean ...
    """
    described = _sources()["tables"]
    if name not in described:
        raise unknown("published table", name, described)
    about = described[name]
    columns, rows = _read(f"tables/{name}.csv")
    source = f"{_sources()['papers'][about['paper']]}, {about['where']}"
    return Table(name, about["title"], source, about["unit"], columns, rows)


def class_lists() -> tuple[str, ...]:
    """Return the names of all class lists.

    >>> class_lists()
    ('imagenet-a', 'imagenet-o', 'imagenet-r', 'imagenet-22k-superclasses', 'icons-50', ...)
    """
    return tuple(_sources()["classes"])


def class_list(name: str) -> tuple[str, ...]:
    """Return the ids of a list's classes: WordNet ids, but names for Icons-50.

    >>> class_list("imagenet-a")[:2]
    ('n01498041', 'n01531178')
    """
    return tuple(class_names(name))


def class_names(name: str) -> dict[str, str]:
    """Return the readable name of every class id of a list.

    >>> class_names("imagenet-o")["n07753592"]
    'banana'
    """
    if name not in class_lists():
        raise unknown("class list", name, class_lists())
    _, rows = _read(f"classes/{name}.csv")
    return {str(row["id"]): str(row["name"]) for row in rows}


def superclasses(name: str) -> dict[str, tuple[str, ...]]:
    """Return each superclass of a list that has them, with its classes.

    >>> superclasses("cifar-100")["trees"][:2]
    ('maple_tree', 'oak_tree')
    """
    class_names(name)  # refuses an unknown list
    columns, rows = _read(f"classes/{name}.csv")
    if "superclass" not in columns:
        raise InputError(f"the classes of {name} have no superclasses")
    found: dict[str, tuple[str, ...]] = {}
    for row in rows:
        group = str(row["superclass"])
        found[group] = (*found.get(group, ()), str(row["id"]))
    return dict(sorted(found.items()))


def alexnet_errors(*, extra: bool = False) -> dict[str, float]:
    """Return AlexNet's error for each corruption of ImageNet-C, as a fraction.

    It is averaged over the five severities. With ``extra``, the four corruptions that
    ImageNet-C keeps apart for validation come too; they were printed to three digits.

    >>> alexnet_errors()["fog"]
    0.819324
    >>> len(alexnet_errors()), len(alexnet_errors(extra=True))
    (15, 19)
    """
    return _alexnet("benchmark", *(["extra"] if extra else []))


def alexnet_clean_error() -> float:
    """Return AlexNet's error on clean ImageNet pictures, as a fraction.

    >>> alexnet_clean_error()
    0.435
    """
    return _alexnet("clean")["clean"]


def baseline_fits() -> tuple[dict[str, Value], ...]:
    """Return the baseline fits that ship with the package, one row for each shifted setting.

    A row gives the shifted and its clean setting, the scale of both axes, the curve's
    parameters in that scale with their covariances, and what it was fitted to.
    """
    try:
        return _read("baseline-fits.csv")[1]
    except FileNotFoundError as error:
        raise InputError("this installation has no baseline fits; fit one from a grid") from error


def _alexnet(*roles: str) -> dict[str, float]:
    alexnet = table("imagenet-c-alexnet")
    errors = zip(alexnet.column("corruption"), alexnet.numbers("error"), strict=True)
    wanted = (role in roles for role in alexnet.column("role"))
    return {str(name): round(error / 100, 6) for name, error in compress(errors, wanted)}


@cache
def _sources() -> dict[str, dict[str, dict[str, str]]]:
    sources: dict[str, dict[str, dict[str, str]]] = tomllib.loads(_text("sources.toml"))
    return sources


def _text(path: str) -> str:
    return (resources.files(__name__) / "data").joinpath(path).read_text(encoding="utf-8")


def _read(path: str) -> tuple[tuple[str, ...], tuple[dict[str, Value], ...]]:
    reader = csv.DictReader(_text(path).splitlines())
    rows = tuple({key: _value(text) for key, text in row.items()} for row in reader)
    return tuple(reader.fieldnames or ()), rows


def _value(text: str) -> Value:
    if not text:
        return None
    try:
        return float(text)
    except ValueError:
        return text
