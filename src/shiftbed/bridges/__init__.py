"""Ways to and from other people's tools, a few lines each.

None of them is imported until it is used, and none is needed for anything else.
"""

from __future__ import annotations

from shiftbed.bridges.huggingface import Metric, as_dataset, corrupted
from shiftbed.bridges.imagenet_x import write_imagenet_x
from shiftbed.bridges.trackers import as_metrics, log_to_mlflow, log_to_wandb

__all__ = [
    "Metric",
    "as_dataset",
    "as_metrics",
    "corrupted",
    "log_to_mlflow",
    "log_to_wandb",
    "write_imagenet_x",
]
