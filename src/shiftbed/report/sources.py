"""What the page and the figures are made from: the cells of some results, and studies of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from shiftbed.errors import InputError
from shiftbed.results import Manifest, Results
from shiftbed.studies import (
    BaselineFit,
    Grid,
    baseline_for,
    clean_of,
    effective_robustness_table,
    score,
)
from shiftbed.studies.lines import Scale, from_scale, to_scale
from shiftbed.studies.scoring import Benchmark, benchmarks
from shiftbed.studies.shifts import NATURAL, synthetic

__all__ = ["Drawn", "Sources"]

#: Places at which a baseline's curve and band are drawn.
PLACES = 61


@dataclass(frozen=True, eq=False)
class Drawn:
    """A baseline and what is drawn of it: its curve and band at places along the clean axis."""

    fit: BaselineFit
    published: bool
    x: npt.NDArray[np.float64]
    y: npt.NDArray[np.float64]
    low: npt.NDArray[np.float64]
    high: npt.NDArray[np.float64]


class Sources:
    """The cells of a results directory with their intervals, their grid, and their baselines.

    >>> import tempfile
    >>> from shiftbed.results import Results
    >>> Sources(Results(tempfile.mkdtemp())).grid.models
    ()
    """

    def __init__(
        self,
        results: Results,
        *,
        baselines: Sequence[str] = (),
        scale: Scale = "logit",
        level: float = 0.95,
    ) -> None:
        self.results = results = results.snapshot()
        self.scale: Scale = scale
        self.level = level
        table = results.cells()
        self.grid = Grid.from_cells(table)
        for model in baselines:
            self.grid.row(model)
        self.baselines = tuple(baselines)
        self._effective: dict[str, list[dict[str, Any]]] = {}
        intervals = {
            (row["model"], row["on"]): (row["low"], row["high"])
            for row in score(results, ["accuracy"], level=level).to_pylist()
        }
        self.cells: list[dict[str, Any]] = []
        for cell in table.to_pylist():
            low, high = intervals.get((cell["model"], cell["setting"]), (None, None))
            self.cells.append({**cell, "low": low, "high": high})

    @cached_property
    def manifests(self) -> dict[tuple[str, str], Manifest]:
        """What was recorded of each cell that was measured, by model and setting."""
        return {(one.identity.model, one.identity.setting): one for one in self.results.manifests()}

    @cached_property
    def measured(self) -> list[str]:
        """The models that were measured here, not imported."""
        return list(dict.fromkeys(model for model, _ in sorted(self.manifests)))

    @cached_property
    def by_name(self) -> dict[tuple[str, str], dict[str, Any]]:
        """Each cell by its model and setting."""
        return {(cell["model"], cell["setting"]): cell for cell in self.cells}

    @cached_property
    def cleans(self) -> dict[str, str]:
        """The clean setting of each shifted one, where both are in the grid."""
        said = {cell["setting"]: cell["clean"] for cell in self.cells if cell["clean"]}
        found = {}
        for setting in self.grid.settings:
            try:
                clean = said.get(setting) or clean_of(setting, self.grid)
            except InputError:
                continue
            if clean != setting and clean in self.grid:
                found[setting] = clean
        return found

    @cached_property
    def metrics(self) -> dict[str, str]:
        """What the accuracies of each setting count."""
        return {cell["setting"]: cell["metric"] for cell in self.cells}

    @cached_property
    def usual(self) -> dict[str, str]:
        """The setting with usual pictures of each one with anomalous pictures."""
        return {
            setting: str(manifest.spec["usual"])
            for (_, setting), manifest in sorted(self.manifests.items())
            if "usual" in manifest.spec
        }

    @cached_property
    def natural(self) -> list[str]:
        """The shifts that nobody made, whose clean setting is there too; the known ones first."""
        known = [name for name in NATURAL if name in self.cleans]
        others = [
            name
            for name in self.cleans
            if name not in NATURAL
            and not synthetic(name)
            and self.metrics[name] not in ("aupr", "map")
        ]
        return known + others

    @cached_property
    def benchmarks(self) -> list[Benchmark]:
        """The corruption benchmarks among the settings."""
        return benchmarks(self.grid.settings)

    def baseline_of(self, benchmark: Benchmark) -> str | None:
        """Return the first of the chosen baselines that was measured on a benchmark."""
        settings = {name for steps in benchmark.settings.values() for name in steps}
        for model in self.baselines:
            if any((model, setting) in self.by_name for setting in settings):
                return model
        return None

    @cached_property
    def fits(self) -> dict[str, Drawn]:
        """The baseline of each shifted setting that has one: the results' own or the published."""
        return {
            shifted: drawn
            for shifted, clean in self.cleans.items()
            if (drawn := self.drawn(clean, shifted)) is not None
        }

    def drawn(self, clean: str, shifted: str) -> Drawn | None:
        """Return the baseline of one shift, or None where too few models make one."""
        try:
            fit, published = baseline_for(self.grid, shifted, clean=clean, scale=self.scale)
        except InputError:
            return None
        known = self.grid.column(clean)
        known = known[np.isfinite(known) & np.isfinite(self.grid.column(shifted))]
        ends = [min(fit.low, *known), max(fit.high, *known)] if len(known) else [fit.low, fit.high]
        # Evenly in the fit's scale, in which the curve is straight.
        low, high = to_scale(ends, fit.scale, 1000.0)
        x = from_scale(np.linspace(low, high, PLACES), fit.scale)
        return Drawn(fit, published, x, fit(x), *fit.band(x, self.level))

    def effective(self, shifted: str) -> list[dict[str, Any]]:
        """Return the effective robustness of all models on a shift that has a baseline."""
        if shifted not in self._effective:
            fit = self.fits[shifted].fit
            try:
                table = effective_robustness_table(self.grid, fit, level=self.level)
            except InputError:  # nobody was measured on both
                return []
            self._effective[shifted] = table.to_pylist()
        return self._effective[shifted]

    def answers(
        self, model: str, setting: str
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]] | None:
        """Return a labelled cell's confidences and which answers are right, if it is whole."""
        manifest = self.manifests.get((model, setting))
        if manifest is None or not manifest.complete or manifest.metric != "top1":
            return None
        rows = self.results.rows(manifest)
        labelled = rows.filter(rows["rank_true"].is_valid())
        if not len(labelled):
            return None
        sure = labelled["confidence"].to_numpy().astype(float)
        return sure, labelled["rank_true"].to_numpy() == 1

    def measured_settings(self, models: Sequence[str] = ()) -> Iterator[str]:
        """Yield the settings that were measured here, in order."""
        names = {setting for model, setting in self.manifests if not models or model in models}
        yield from (setting for setting in self.grid.settings if setting in names)
