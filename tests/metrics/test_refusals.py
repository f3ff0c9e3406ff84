"""Every wrong input is one clear sentence."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

from shiftbed import metrics
from shiftbed.errors import InputError

NAN = float("nan")
THIRD = [1 / 3] * 3

REFUSED: dict[str, tuple[Callable[[], object], str]] = {
    "empty": (lambda: metrics.accuracy([], []), "there are no pictures"),
    "lengths": (lambda: metrics.accuracy([1, 2], [1]), "given are 2 predictions, 1 labels"),
    "names for numbers": (lambda: metrics.accuracy(["cat"], [1]), "both be class numbers or both"),
    "NaN classes": (lambda: metrics.accuracy([1, NAN], [1, 2]), "1 of 2 are NaN or infinite"),
    "half a class": (lambda: metrics.accuracy([0.5], [1]), "whole class numbers or class names"),
    "logits as classes": (lambda: metrics.accuracy([[0.1, 0.9]], [1]), "of shape (1, 2)"),
    "objects": (lambda: metrics.accuracy([None], [1]), "the predictions must be"),
    "too few ranks": (
        lambda: metrics.top_k_accuracy([[1, 2]], [1], k=5),
        "top-5 accuracy needs 5 ranked classes per picture",
    ),
    "k of 0": (lambda: metrics.top_k_accuracy([[1, 2]], [1], k=0), "at least one"),
    "level in percent": (lambda: metrics.accuracy([1], [1], level=95), "like 0.95"),
    "more right than shown": (lambda: metrics.proportion(5, 4), "between 0 and n successes"),
    "negative": (lambda: metrics.proportion(-1, 4), "between 0 and n successes"),
    "no pictures": (lambda: metrics.proportion(0, 0), "at least one picture"),
    "NaN counts": (lambda: metrics.proportion(NAN, 4), "finite counts"),
    "not probabilities": (
        lambda: metrics.most_likely([THIRD, [2.0, 1.0, 0.5]]),
        "those of picture 1 sum to 3.5: are they logits?",
    ),
    "negative probabilities": (
        lambda: metrics.most_likely([[0.5, 0.5], [1.5, -0.5]]),
        "must be at least 0 and sum to 1; one of picture 1 is -0.5: are they logits?",
    ),
    "NaN probabilities": (lambda: metrics.most_likely([[NAN, 1.0]]), "NaN or infinite"),
    "no probabilities": (lambda: metrics.most_likely(np.empty((0, 3))), "there are no pictures"),
    "one class only": (
        lambda: metrics.auroc(usual=[1.0, 2.0], anomalous=[]),
        "at least two usual and two anomalous pictures; given are 2 and 0",
    ),
    "one anomaly": (
        lambda: metrics.detection(usual=[1.0, 2.0], anomalous=[3.0]),
        "given are 2 and 1",
    ),
    "NaN scores": (
        lambda: metrics.aupr(usual=[1.0, NAN], anomalous=[1.0, 2.0]),
        "the scores of usual pictures must be finite; 1 of 2 are NaN or infinite",
    ),
    "recall in percent": (
        lambda: metrics.fpr_at_recall(usual=[1.0, 2.0], anomalous=[1.0, 2.0], recall=95),
        "the recall is 95",
    ),
    "NaN logits": (lambda: metrics.energy([[NAN, 1.0]]), "the logits must be finite"),
    "flat logits": (lambda: metrics.entropy([1.0, 2.0]), "one row per picture"),
    "text": (lambda: metrics.max_logit([["a", "b"]]), "the logits must be numbers"),
    "confidence in percent": (
        lambda: metrics.calibration_error([55.0, 80.0], [1, 0]),
        "one is 80; divide percent by 100",
    ),
    "negative confidence": (
        lambda: metrics.aurra([-0.5, 0.5], [1, 0]),
        "must lie between 0 and 1; one is -0.5",
    ),
    "labels for results": (
        lambda: metrics.calibration_error([0.5, 0.5], [3, 7]),
        "must be true or false (1 or 0)",
    ),
    "confidences without results": (
        lambda: metrics.aurra([0.5, 0.5], [1]),
        "given are 2 confidences, 1 results",
    ),
    "unknown norm": (
        lambda: metrics.calibration_error([0.5], [1], "l3"),
        "there is no calibration norm 'l3'; choose one of l1, l2, max",
    ),
    "empty bins": (
        lambda: metrics.calibration_error([0.5], [1], bin_size=0),
        "the bin size must be at least 1; given is 0",
    ),
    "nothing left": (
        lambda: metrics.calibration_error([0.5] * 150, [1] * 150, as_published=True),
        "the published form leaves the last bin out",
    ),
    "labels beyond the logits": (
        lambda: metrics.fit_temperature([[0.0, 1.0]], [2]),
        "columns of the logits, 0 to 1",
    ),
    "all right": (
        lambda: metrics.fit_temperature([[0.0, 1.0], [5.0, 1.0]], [1, 0]),
        "every label already has the largest logit",
    ),
    "worse than chance": (
        lambda: metrics.fit_temperature([[0.0, 1.0], [5.0, 1.0]], [0, 1]),
        "the logits say nothing about the labels",
    ),
    "one half empty": (
        lambda: metrics.temperature_scaling([[0.0, 1.0]], [0], ["a.jpg"]),
        "pictures in both halves",
    ),
    "ids missing": (
        lambda: metrics.temperature_scaling([[0.0, 1.0]] * 2, [0, 1], ["a.jpg"]),
        "given are 2 logits, 2 labels, 1 ids",
    ),
    "absent label": (
        lambda: metrics.mean_average_precision([[0.1, 0.2], [0.3, 0.4]], [[1, 0], [0, 0]]),
        "needs a picture with each label; class 1 has none",
    ),
    "other classes": (
        lambda: metrics.mean_average_precision([[0.1, 0.2]] * 2, [[1], [0]]),
        "given are 2 and 1 columns",
    ),
    "no classes": (
        lambda: metrics.mean_average_precision(np.empty((2, 0)), np.empty((2, 0))),
        "there are no classes",
    ),
    "fewer labels": (
        lambda: metrics.mean_average_precision([[0.1], [0.2]], [[1]]),
        "given are 2 scores, 1 labels",
    ),
    "no anchor": (
        lambda: metrics.pm_accuracy([1, 1], ["a", "b"], [0, 3]),
        "exactly one anchor, the frame at offset 0; b has 0",
    ),
    "two anchors": (lambda: metrics.pm_accuracy([1, 1], ["a", "a"], [0, 0]), "a has 2"),
    "no resamples": (
        lambda: metrics.paired_difference([1], [0], resamples=0),
        "the number of resamples must be at least 1",
    ),
    "ragged rows": (lambda: metrics.accuracy([[1], [2, 3]], [1, 2]), "in rows of equal length"),
    "ragged logits": (lambda: metrics.energy([[1.0], [2.0, 3.0]]), "in rows of equal length"),
    "no logits": (lambda: metrics.max_logit(np.empty((3, 0))), "there are no logits"),
    "nothing": (lambda: metrics.accuracy(None, [1]), "given is an array of shape ()"),
    "flips to names": (lambda: metrics.flip_rate([1], ["a"]), "both be class numbers or both"),
    "negative k": (lambda: metrics.pm_accuracy([1], ["a"], [0], k=-1), "k of at least 0"),
    "frames missing": (
        lambda: metrics.pm_accuracy([1, 1], ["a"], [0]),
        "given are 2 results, 1 frame_sets, 1 offsets",
    ),
    "unlike settings": (lambda: metrics.flip_rate([1, 2], [1]), "2 predictions, 1 others"),
    "unpaired": (lambda: metrics.mcnemar([1, 0], [1]), "given are 2 first, 1 second"),
    "unpaired difference": (lambda: metrics.paired_difference([], []), "there are no pictures"),
    "p-values": (lambda: metrics.holm([0.5, 1.5]), "the p-values must lie between 0 and 1"),
    "other pictures": (
        lambda: metrics.same_pictures(["a", "b"], ["a", "c"]),
        "not of the same pictures: 2 are in only one of them, like b",
    ),
    "more pictures": (
        lambda: metrics.same_pictures(["a", "b"], ["a", "b", "c"]),
        "1 are in only one of them, like c",
    ),
    "repeated pictures": (
        lambda: metrics.same_pictures(["a", "b"], ["a", "a"]),
        "the second results have the picture a more than once",
    ),
    "no ids": (lambda: metrics.same_pictures([], []), "the first results are empty"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusal(name: str) -> None:
    call, sentence = REFUSED[name]
    with pytest.raises(InputError, match=re.escape(sentence)) as caught:
        call()
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 200
