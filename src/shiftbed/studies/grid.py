"""Cells as a matrix: the models down, the settings across, gaps where nobody measured."""

from __future__ import annotations

import fnmatch
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from shiftbed.errors import InputError, unknown
from shiftbed.studies.shifts import stored

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Grid"]

FloatArray = npt.NDArray[np.float64]

#: What a share of pictures is. Other scores have no binomial error.
_PROPORTIONS = {"top1", "agreement", *(f"pm{k}" for k in range(100))}

_CATEGORY = "category:"


@dataclass(frozen=True, eq=False)
class Grid:
    """Accuracies of models on settings, with the numbers of pictures behind them.

    >>> grid = Grid.of(["a", "b"], ["clean", "fog"], [[0.9, 0.6], [0.8, np.nan]])
    >>> grid.column("fog")
    array([0.6, nan])
    >>> grid.mask(["a*"])
    array([ True, False])
    """

    models: tuple[str, ...]
    settings: tuple[str, ...]
    #: (models, settings), between 0 and 1; NaN for a gap.
    accuracy: FloatArray
    #: (models, settings); NaN for a gap and where nobody said.
    n: FloatArray
    categories: tuple[str | None, ...]
    #: What was in the cells but is not in the grid, and why: sentences.
    left_out: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        shape = (len(self.models), len(self.settings))
        if not self.accuracy.shape == self.n.shape == shape or len(self.categories) != shape[0]:
            raise InputError(
                f"a grid of {shape[0]} models and {shape[1]} settings needs accuracies and n of "
                f"shape {shape} and a category per model; got shapes {self.accuracy.shape} and "
                f"{self.n.shape} and {len(self.categories)} categories"
            )
        for kind, names in (("model", self.models), ("setting", self.settings)):
            twice = [name for name, count in Counter(names).items() if count > 1]
            if twice:
                raise InputError(f"{kind} {twice[0]!r} is in the grid twice")
        beyond = np.argwhere((self.accuracy < 0) | (self.accuracy > 1))
        if len(beyond):
            i, j = beyond[0]
            raise InputError(
                f"the accuracy of {self.models[i]!r} on {self.settings[j]!r} is "
                f"{self.accuracy[i, j]:g}; it must lie between 0 and 1"
            )

    @classmethod
    def of(
        cls,
        models: Sequence[str],
        settings: Sequence[str],
        accuracy: npt.ArrayLike,
        n: npt.ArrayLike | None = None,
        categories: Sequence[str | None] | None = None,
    ) -> Grid:
        """Build a grid from whatever holds numbers; ``n`` may be one for all or one per setting.

        >>> Grid.of(["a"], ["clean", "fog"], [[0.9, 0.6]], n=[5000, 750]).pictures("fog")
        array([750.])
        """
        shape = (len(models), len(settings))
        pictures = np.asarray(np.nan if n is None else n, float)
        try:
            pictures = np.broadcast_to(pictures, shape)
        except ValueError:
            raise InputError(
                f"n has shape {pictures.shape}; expected one n, {shape[1]} of them, or {shape}"
            ) from None
        return cls(
            tuple(models),
            tuple(settings),
            np.asarray(accuracy, float),
            pictures,
            tuple(categories) if categories is not None else (None,) * shape[0],
        )

    @classmethod
    def from_cells(cls, cells: pa.Table) -> Grid:
        """Build the grid of a table of cells, as ``Results.cells()`` gives it.

        Models are sorted, so that a bootstrap's draws do not depend on the order of cells.
        Incomplete cells are left out, and named in ``left_out``. The same cell from two
        sources must agree.

        >>> import pyarrow as pa
        >>> cells = pa.table({"model": ["a"], "setting": ["fog"], "accuracy": [0.5], "n": [80]})
        >>> Grid.from_cells(cells).pictures("fog")
        array([80.])
        """
        columns = cells.to_pydict()
        count = cells.num_rows
        for column in ("model", "setting", "accuracy"):
            if column not in columns:
                raise InputError(f"a table of cells needs the column {column!r}")
        absent = [None] * count
        models = {model: i for i, model in enumerate(sorted(set(columns["model"])))}
        settings = {setting: j for j, setting in enumerate(sorted(set(columns["setting"])))}
        accuracy = np.full((len(models), len(settings)), np.nan)
        n = np.full_like(accuracy, np.nan)
        sources: dict[tuple[int, int], str] = {}
        spaces: dict[str, str] = {}
        categories: dict[str, str] = {}
        left_out: list[str] = []
        for model, setting, value, pictures, category, metric, space, source, complete in zip(
            columns["model"],
            columns["setting"],
            columns["accuracy"],
            *(
                columns.get(name, absent)
                for name in ("n", "category", "metric", "class_space", "source", "complete")
            ),
            strict=True,
        ):
            if category is not None:
                categories.setdefault(model, category)
            if value is None:
                continue
            if complete is False:
                left_out.append(f"{model} on {setting} is incomplete, so it was left out")
                continue
            if space is not None and spaces.setdefault(setting, space) != space:
                raise InputError(
                    f"{setting} was read in two class spaces ({spaces[setting]}; {space}), whose "
                    "accuracies cannot be compared; evaluate it again or choose the models"
                )
            at = models[model], settings[setting]
            if at in sources and accuracy[at] != value:
                raise InputError(
                    f"there are two results of {model!r} on {setting!r}: "
                    f"{100 * accuracy[at]:.2f}% from {sources[at]} and {100 * value:.2f}% from "
                    f"{source}; delete one of the two"
                )
            sources[at] = str(source)
            accuracy[at] = value
            if pictures is not None and (metric is None or metric in _PROPORTIONS):
                n[at] = pictures
        return cls(
            tuple(models),
            tuple(settings),
            accuracy,
            n,
            tuple(categories.get(model) for model in models),
            tuple(left_out),
        )

    @cached_property
    def _settings(self) -> dict[str, int]:
        return {setting: j for j, setting in enumerate(self.settings)}

    @cached_property
    def _models(self) -> dict[str, int]:
        return {model: i for i, model in enumerate(self.models)}

    def __contains__(self, setting: object) -> bool:
        return setting in self._settings

    def at(self, setting: str) -> int:
        """Return the position of a setting."""
        if setting not in self._settings:
            raise unknown("setting", setting, self.settings)
        return self._settings[setting]

    def row(self, model: str) -> int:
        """Return the position of a model."""
        if model not in self._models:
            raise unknown("model", model, self.models)
        return self._models[model]

    def column(self, setting: str) -> FloatArray:
        """Return the accuracies of all models on one setting."""
        values: FloatArray = self.accuracy[:, self.at(setting)]
        return values

    def pictures(self, setting: str) -> FloatArray:
        """Return how many pictures of one setting each model was scored on."""
        values: FloatArray = self.n[:, self.at(setting)]
        return values

    def mask(self, chosen: Iterable[str] | None, *, lenient: bool = False) -> npt.NDArray[np.bool_]:
        """Return which models are chosen, by name, by pattern or as ``category:NAME``.

        A leading ``-`` takes away from what stands before it, also where it takes nothing;
        None chooses all. A choice of nobody is refused unless ``lenient``.
        """
        if chosen is None:
            return np.ones(len(self.models), bool)
        mask = np.zeros(len(self.models), bool)
        for pattern in [chosen] if isinstance(chosen, str) else chosen:
            if pattern.startswith("-"):
                mask &= ~self._matching(pattern[1:])
                continue
            found = self._matching(pattern)
            if not found.any() and not lenient:
                raise self._nothing(pattern)
            mask |= found
        return mask

    def _matching(self, pattern: str) -> npt.NDArray[np.bool_]:
        # A plain name may hold brackets: it is looked up before it is a pattern.
        if pattern in self._models:
            found = [model == pattern for model in self.models]
        elif pattern.startswith(_CATEGORY):
            found = [category == pattern.removeprefix(_CATEGORY) for category in self.categories]
        else:
            found = [fnmatch.fnmatchcase(model, pattern) for model in self.models]
        return np.array(found, bool)

    def _nothing(self, pattern: str) -> InputError:
        if not pattern.startswith(_CATEGORY):
            return unknown("model", pattern, self.models)
        known = {category for category in self.categories if category}
        wanted = pattern.removeprefix(_CATEGORY)
        if known:
            return unknown("category", wanted, known)
        return InputError(
            f"no model is in category {wanted!r}, since none has a category; choose models by "
            "name or pattern, tag them, or import them with a models.csv"
        )

    def matching_settings(self, patterns: Sequence[str]) -> list[str]:
        """Return the settings that match any of some patterns, in the grid's order."""
        found: dict[str, None] = {}
        for pattern in patterns:
            matches = [s for s in self.settings if fnmatch.fnmatchcase(s, pattern)]
            if not matches:
                raise unknown("setting", pattern, self.settings)
            found.update(dict.fromkeys(matches))
        return [setting for setting in self.settings if setting in found]

    def with_setting(self, name: str) -> Grid:
        """Return the grid with a setting that nobody measured, unless it has it."""
        if name in self:
            return self
        gap = np.full(len(self.models), np.nan)
        return replace(
            self,
            settings=(*self.settings, name),
            accuracy=np.column_stack([self.accuracy, gap]),
            n=np.column_stack([self.n, gap]),
        )

    def with_average(self, name: str, settings: Sequence[str]) -> Grid:
        """Return the grid with one more setting: the mean accuracy over several.

        A model that lacks one of them has a gap, since a mean over fewer is another number.
        The settings show the same pictures over and over, so n is that of one of them.

        >>> grid = Grid.of(["a"], ["fog.1", "fog.2"], [[0.8, 0.6]])
        >>> grid.with_average("fog", ["fog.1", "fog.2"]).column("fog").round(3)
        array([0.7])
        """
        if not settings:
            raise InputError(f"the average {name!r} is over no settings; name at least one")
        if len({stored(setting) for setting in settings} - {None}) > 1:
            raise InputError(
                f"the average {name!r} mixes stored corruptions (imagenet-c.*) with corruptions "
                "made in memory (+), which are different settings; average one kind"
            )
        at = [self.at(setting) for setting in settings]
        return replace(
            self,
            settings=(*self.settings, name),
            accuracy=np.column_stack([self.accuracy, self.accuracy[:, at].mean(axis=1)]),
            n=np.column_stack([self.n, self.n[:, at].min(axis=1)]),
        )
