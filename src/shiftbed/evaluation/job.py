"""Models and settings in; results, and the tables that are read first, out."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from shiftbed.data import ClassMap, Combine
from shiftbed.errors import InputError, unknown
from shiftbed.evaluation.recipes import model_recipes
from shiftbed.models import Model, ModelLike, ModelsLike, listed, load
from shiftbed.results import Manifest, Results, Store
from shiftbed.run import (
    COMPUTE_BATCH,
    Plan,
    Progress,
    check_models,
    execute,
    execute_on_ray,
    library_threads,
    limited,
    make_plan,
    on_backend,
    shown,
)
from shiftbed.settings import Setting, resolve

if TYPE_CHECKING:
    import pyarrow as pa

    from shiftbed.evaluation.summary import Score
    from shiftbed.settings.resolve import DataLike

__all__ = ["Evaluation", "evaluate", "prepare"]

#: What computes: threads of this process, or the workers of a Ray cluster.
ENGINES = ("local", "ray")


@dataclass(frozen=True, eq=False)
class Evaluation:
    """A grid of models and settings whose results are in a directory."""

    plan: Plan
    results: Results
    #: The name of the model that others are measured against.
    baseline: str | None = None

    @property
    def models(self) -> list[str]:
        """The names of the models, in the order in which they were given."""
        return list(dict.fromkeys(cell.model.name for cell in self.plan.cells))

    @property
    def settings(self) -> list[Setting]:
        """The settings, in order."""
        return list({cell.setting.name: cell.setting for cell in self.plan.cells}.values())

    def cells(self) -> pa.Table:
        """Return one row per cell of this grid."""
        import pyarrow as pa

        keys = pa.array([cell.manifest.key for cell in self.plan.cells])
        cells = self.results.cells()
        row_of = {key: row for row, key in enumerate(cells["source"].to_pylist())}
        return cells.take([row_of[key] for key in keys.to_pylist() if key in row_of])

    def table(self) -> pa.Table:
        """Return each cell's score by its own metric, with its 95% interval."""
        import pyarrow as pa

        numbers = [(name, pa.float64()) for name in ("accuracy", "low", "high")]
        texts = [(name, pa.string()) for name in ("model", "setting", "metric")]
        return pa.Table.from_pylist(
            with_intervals(self.results, self.cells().to_pylist()),
            schema=pa.schema([*texts, *numbers, ("n", pa.int64())]),
        )

    def scores(self) -> list[Score]:
        """Return each model's summary on each set of pictures: mCE and what it is made of."""
        from shiftbed.evaluation.summary import scores

        return scores(self.results.snapshot(), self.models, self.settings, self.baseline)

    def manifests(self) -> list[Manifest]:
        """Return what was recorded of each cell: hashes, versions, counts, skipped pictures."""
        recorded = {manifest.key: manifest for manifest in self.results.manifests()}
        return [recorded[cell.manifest.key] for cell in self.plan.cells]

    def predictions(self, model: str, setting: str) -> pa.Table:
        """Return one row per picture of a cell."""
        return self.results.predictions(model, setting)

    def sql(self, query: str) -> pa.Table:
        """Ask DuckDB a question of ``cells`` and ``predictions``: all that the results hold."""
        return self.results.sql(query)

    def doubts(self) -> list[str]:
        """Return what speaks against the clean cells, in sentences: guessing, odd orders."""
        from shiftbed.evaluation.preparation import doubts

        return doubts(self)

    def __str__(self) -> str:
        """The tables that the command line ends with."""
        from shiftbed.evaluation.tables import as_text

        return as_text(self)


def with_intervals(results: Results, cells: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows of cells with the ends of their scores' 95% intervals, where n is known."""
    from shiftbed.metrics import clopper_pearson

    rows = []
    for cell in cells:
        low = high = None
        if cell["correct"] is not None and cell["n"]:
            low, high = (float(end) for end in clopper_pearson(cell["correct"], cell["n"]))
        elif cell["accuracy"] is not None and cell["origin"] == "measured":
            estimate = results.estimate(cell["model"], cell["setting"])
            if estimate is not None:
                low, high = estimate.low, estimate.high
        rows.append({**cell, "low": low, "high": high})
    return rows


def evaluate(
    models: ModelsLike,
    settings: str | Iterable[str] | None = None,
    data: DataLike | None = None,
    *,
    results: str | Path = "results",
    baseline: ModelLike | None = None,
    seed: int = 0,
    limit: int | None = None,
    workers: int | None = None,
    batch_size: int = COMPUTE_BATCH,
    keep: Collection[str] = (),
    class_map: ClassMap | str | Path | None = None,
    combine: Combine = "max",
    backend: str | None = None,
    engine: str = "local",
    address: str | None = None,
    strict: bool = False,
    quiet: bool = False,
    **options: Any,
) -> Evaluation:
    """Evaluate models on settings, keep every prediction, and return the run.

    ``models`` are specs (``timm:resnet18.a1_in1k``), wildcards, callables, or a mapping from
    names to these. ``settings`` are names, patterns or suites; ``data`` is the image set that
    those without one apply to; without settings, the pictures of ``data`` as they are.
    What is in ``results`` already is not computed again. ``keep=["logits"]`` keeps these too.
    ``backend="onnxruntime"`` or ``"openvino"`` computes torch networks faster on most CPUs. A
    picture that cannot be read is listed and not counted; with ``strict``, it ends the run.
    ``engine="ray"`` computes on a Ray cluster: the one at ``address``, or one that is started
    here and stopped again.
    ``options`` override what the models say of themselves, as ``size=224`` or
    ``device="cuda"``.

    >>> import tempfile
    >>> import numpy as np
    >>> from shiftbed.data import ArraySet
    >>> def darkness(batch):
    ...     light = batch.mean((1, 2, 3))
    ...     return np.stack([255 - light, light], 1)
    >>> pictures = np.stack([np.full((32, 32), 250 * (i % 2), np.uint8) for i in range(40)])
    >>> photos = ArraySet("photos", pictures, labels=np.arange(40) % 2, classes=["dark", "light"])
    >>> run = evaluate({"mine": darkness}, ["+{clean,contrast.5}"], photos, outputs=2,
    ...                channels=1, results=tempfile.mkdtemp(), quiet=True)
    >>> run.table().select(["setting", "accuracy", "n"]).to_pylist()[0]
    {'setting': 'photos', 'accuracy': 1.0, 'n': 40}
    """
    if engine not in ENGINES:
        raise unknown("engine", engine, ENGINES)
    if address is not None and engine != "ray":
        raise InputError("an address is that of a Ray cluster; choose the engine too: ray")
    plan, named = prepare(
        models,
        settings,
        data,
        results=results,
        baseline=baseline,
        seed=seed,
        limit=limit,
        keep=keep,
        class_map=class_map,
        combine=combine,
        backend=backend,
        **options,
    )
    check_models(plan)
    with shown(plan, quiet) as show:

        def watch(progress: Progress) -> None:
            show(progress)
            if strict:
                _refuse_skipped(progress.cell.setting.images.name, progress.skipped)

        store = Store(results)
        if engine == "ray":
            recipes = model_recipes(plan, models, baseline, backend, options)
            execute_on_ray(plan, store, recipes, address=address, watch=watch)
        else:
            execute(plan, store, workers=workers, batch_size=batch_size, watch=watch)
    run = Evaluation(plan, Results(results), named)
    if strict:  # what was there already
        for manifest in run.manifests():
            _refuse_skipped(str(manifest.spec.get("images")), manifest.skipped)
    return run


def _refuse_skipped(images: str, skipped: Sequence[tuple[str, str]]) -> None:
    if skipped:
        name, reason = skipped[0]
        more = f" and {len(skipped) - 1:,} more" if len(skipped) > 1 else ""
        raise InputError(
            f"{name!r}{more} of {images} cannot be read ({reason}), and a strict run leaves no "
            "picture out; mend it or take it away. What was finished is kept"
        )


def prepare(
    models: ModelsLike,
    settings: str | Iterable[str] | None = None,
    data: DataLike | None = None,
    *,
    results: str | Path = "results",
    baseline: ModelLike | None = None,
    seed: int = 0,
    limit: int | None = None,
    keep: Collection[str] = (),
    class_map: ClassMap | str | Path | None = None,
    combine: Combine = "max",
    backend: str | None = None,
    **options: Any,
) -> tuple[Plan, str | None]:
    """Return the plan of an evaluation, and the name of its baseline; compute nothing."""
    for kept in keep:
        if kept != "logits":
            raise unknown("thing to keep", kept, ["logits"])
    if combine not in get_args(Combine):
        raise unknown("way to combine outputs", combine, get_args(Combine))
    if not 0 <= seed < 2**32:
        raise InputError(f"the seed is {seed}; it must be a whole number from 0 to {2**32 - 1}")
    Results(results)  # refuses a file
    if settings is None:
        if data is None:
            raise InputError(
                "there is nothing to evaluate on: name a suite or settings, or give data"
            )
        settings = ["+clean"]
    wanted = resolve(settings, data, class_map=class_map, combine=combine)
    wanted = limited(wanted, limit, seed)
    given = listed(models)
    loaded = [load(one, **named, **options) for one, named in given]
    name = None
    if baseline is not None:
        reference = _among(baseline, [one for one, _ in given], loaded)
        if reference is None:
            reference = load(baseline, **options)
            loaded.insert(0, reference)
        name = reference.name
    threads = library_threads(len(loaded))
    loaded = [on_backend(model, backend, threads) for model in loaded]
    plan = make_plan(loaded, wanted, Store(results), seed=seed, keep_logits="logits" in keep)
    return plan, name


def _among(
    baseline: ModelLike, given: Sequence[ModelLike], loaded: Sequence[Model]
) -> Model | None:
    """Return the baseline if it is one of the models: itself, or by its name or its spec."""
    for one, model in zip(given, loaded, strict=True):
        if baseline is one or (isinstance(baseline, str) and baseline in (model.name, model.spec)):
            return model
    if isinstance(baseline, str) and ":" not in baseline:
        raise unknown("model for the baseline", baseline, [model.name for model in loaded])
    return None
