"""Pure functions from predictions to numbers with intervals."""

from __future__ import annotations

from shiftbed.metrics.accuracy import (
    accuracy,
    balanced_accuracy,
    per_class_accuracy,
    top_k_accuracy,
)
from shiftbed.metrics.agreement import cohen_kappa
from shiftbed.metrics.anomaly import (
    ANOMALY_SCORES,
    Detection,
    aupr,
    auroc,
    detection,
    energy,
    entropy,
    fpr_at_recall,
    max_logit,
    max_softmax,
)
from shiftbed.metrics.calibration import (
    Reliability,
    TemperatureScaling,
    aurra,
    calibration_error,
    fit_temperature,
    held_out_half,
    most_likely,
    reliability,
    response_rate_accuracy,
    temperature_scaling,
)
from shiftbed.metrics.corruption_error import (
    CorruptionErrors,
    corruption_error,
    corruption_error_difference,
    corruption_error_of_pictures,
    relative_corruption_error,
)
from shiftbed.metrics.estimate import Estimate, clopper_pearson, proportion
from shiftbed.metrics.multilabel import MeanAveragePrecision, mean_average_precision
from shiftbed.metrics.paired import McNemar, holm, mcnemar, paired_difference, same_pictures
from shiftbed.metrics.video import flip_rate, pm_accuracy

__all__ = [
    "ANOMALY_SCORES",
    "CorruptionErrors",
    "Detection",
    "Estimate",
    "McNemar",
    "MeanAveragePrecision",
    "Reliability",
    "TemperatureScaling",
    "accuracy",
    "aupr",
    "auroc",
    "aurra",
    "balanced_accuracy",
    "calibration_error",
    "clopper_pearson",
    "cohen_kappa",
    "corruption_error",
    "corruption_error_difference",
    "corruption_error_of_pictures",
    "detection",
    "energy",
    "entropy",
    "fit_temperature",
    "flip_rate",
    "fpr_at_recall",
    "held_out_half",
    "holm",
    "max_logit",
    "max_softmax",
    "mcnemar",
    "mean_average_precision",
    "most_likely",
    "paired_difference",
    "per_class_accuracy",
    "pm_accuracy",
    "proportion",
    "relative_corruption_error",
    "reliability",
    "response_rate_accuracy",
    "same_pictures",
    "temperature_scaling",
    "top_k_accuracy",
]
