"""How other processes load an evaluation's models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from shiftbed.models import Model, ModelLike, ModelsLike, listed, load
from shiftbed.run import Plan, Recipe, on_backend

__all__ = ["model_recipes"]


@dataclass(frozen=True)
class _Again:
    """Loads a model that a spec names once more, where it is to compute."""

    spec: str
    name: str
    backend: str | None
    options: Mapping[str, Any]

    def __call__(self, gpu: bool) -> Model:
        device = {"device": "cuda"} if gpu and self.options.get("device") is None else {}
        model = load(self.spec, **{**self.options, **device})
        return replace(on_backend(model, self.backend), name=self.name)


def model_recipes(
    plan: Plan,
    models: ModelsLike,
    baseline: ModelLike | None,
    backend: str | None,
    options: Mapping[str, Any],
) -> dict[str, Recipe]:
    """Return how to load, by their names, the models that were given as specs."""
    given = {one for one, _ in listed(models) if isinstance(one, str)}
    given |= {baseline} if isinstance(baseline, str) else set()
    loaded = {cell.model.name: cell.model for cell in plan.cells}
    return {
        name: _Again(model.spec, name, backend, options)
        for name, model in loaded.items()
        if model.spec in given
    }
