"""The numbers of a run for experiment trackers."""

from __future__ import annotations

from typing import Any

from shiftbed.errors import MissingExtraError
from shiftbed.evaluation import Evaluation

__all__ = ["as_metrics", "log_to_mlflow", "log_to_wandb"]


def as_metrics(run: Evaluation, model: str) -> dict[str, float]:
    """Return a model's scores under names that sort well: ``accuracy/photos+fog.3``.

    Every cell's score with the ends of its interval, and the means of every benchmark.
    """
    found: dict[str, float] = {}
    for row in run.table().to_pylist():
        if row["model"] == model and row["accuracy"] is not None:
            name = f"{_NAMES.get(row['metric'], row['metric'])}/{row['setting']}"
            ends = {"": row["accuracy"], ".low": row["low"], ".high": row["high"]}
            found |= {name + end: value for end, value in ends.items() if value is not None}
    for score in run.scores():
        if score.model == model:
            on = f"{score.images}+{score.variant}"
            means = {
                "corrupted": score.shifted,
                "mce": score.mce,
                "relative-mce": score.relative_mce,
            }
            for name, mean in means.items():
                if mean is not None:
                    ends = {"": mean.value, ".low": mean.low, ".high": mean.high}
                    found |= {f"{name}/{on}{end}": value for end, value in ends.items()}
    return found


_NAMES = {"top1": "accuracy"}


def log_to_mlflow(run: Evaluation) -> None:
    """Log every model of a run to MLflow, as a child of the active run."""
    try:
        import mlflow
    except ImportError:
        raise MissingExtraError("logging to MLflow", "mlflow") from None
    for model in run.models:
        with mlflow.start_run(run_name=model, nested=True):
            mlflow.log_params({"model": model, "results": str(run.results.path)})
            # A name there may not have a plus sign.
            metrics = as_metrics(run, model).items()
            mlflow.log_metrics({name.replace("+", " "): value for name, value in metrics})


def log_to_wandb(run: Evaluation, **options: Any) -> None:
    """Log every model of a run to Weights & Biases, as a run of its own.

    ``options`` go to ``wandb.init``, such as ``project="robustness"``.
    """
    try:
        import wandb
    except ImportError:
        raise MissingExtraError("logging to Weights & Biases", "wandb") from None
    for model in run.models:
        known = {"model": model, "results": str(run.results.path)}
        with wandb.init(**{"name": model, "config": known, **options}) as logged:
            for name, value in as_metrics(run, model).items():
                logged.summary[name] = value
