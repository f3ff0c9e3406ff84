"""``sklearn:FILE.skops``: scikit-learn estimators, which see a picture as a row of numbers."""

from __future__ import annotations

import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from shiftbed.data import found_path
from shiftbed.errors import InputError, MissingExtraError
from shiftbed.models.geometry import Geometry
from shiftbed.models.keys import class_keys
from shiftbed.models.model import Model
from shiftbed.models.options import Options
from shiftbed.models.probing import probe
from shiftbed.models.registry import source

__all__ = ["estimator_model"]


@source("sklearn", "sklearn:mine.skops", files=True)
def _load(path: str, options: Options) -> Model:
    if Path(path).suffix in {".pkl", ".pickle", ".joblib"}:
        raise InputError(
            f"{path} is a pickle, which can run any code when it is opened, so it is refused; "
            "save the estimator with skops.io.dump(estimator, 'mine.skops'), or write a function "
            "that loads it and give python:module:function"
        )
    file = found_path(path)
    if file is None or not file.is_file():
        raise InputError(f"there is no estimator {path}; expected a .skops file")
    try:
        from skops import io
        from skops.io.exceptions import UntrustedTypesFoundException
    except ImportError:
        raise MissingExtraError("sklearn:", "sklearn") from None
    try:
        estimator = io.load(file)
    except UntrustedTypesFoundException as problem:
        raise InputError(
            f"{path} holds types that skops does not trust ({str(problem)[:200]}); write a "
            "function that loads it and give python:module:function"
        ) from None
    except Exception as problem:  # skops raises whatever the damaged part makes it raise
        raise InputError(f"{path} is not a skops file ({problem})") from None
    return estimator_model(estimator, options, file.stem)


def estimator_model(estimator: Any, options: Options, name: str) -> Model:
    """Return a fitted estimator as a model.

    It is shown rows of pixels in [0, 1] (less ``mean``, over ``std``), in the order height,
    width, channel. Its logits are its decision function, or else the logarithms of its
    probabilities.
    """
    name = options.name or name
    if not hasattr(estimator, "classes_"):
        raise InputError(f"{name} is not a fitted classifier: it has no classes_")
    mean = np.array(options.mean or (0.0,), np.float32)
    std = np.array(options.std or (1.0,), np.float32)

    def predict(batch: npt.NDArray[np.uint8]) -> npt.ArrayLike:
        pixels = (batch.astype(np.float32) / 255 - mean) / std
        rows = pixels.reshape(len(batch), -1)
        if hasattr(estimator, "predict_proba"):
            probabilities = np.asarray(estimator.predict_proba(rows), np.float64)
            with np.errstate(divide="ignore"):
                return np.asarray(np.maximum(np.log(probabilities), -1e4))
        if hasattr(estimator, "decision_function"):
            scores = np.asarray(estimator.decision_function(rows))
            return np.stack([-scores, scores], axis=1) if scores.ndim == 1 else scores
        chosen = np.asarray(estimator.predict(rows))[:, None]
        return np.asarray(chosen == np.asarray(estimator.classes_)[None, :], np.float32)

    geometry = options.geometry(_square(estimator, options))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        outputs = probe(predict, geometry, name).shape[1]
        import joblib

        weights = f"{joblib.hash(estimator)} {mean.tolist()} {std.tolist()}"
    own = tuple(str(key) for key in estimator.classes_)
    return Model(
        name=name,
        spec=f"sklearn:{name}",
        geometry=geometry,
        outputs=outputs,
        predict=predict,
        weights=weights,
        class_keys=class_keys(options.classes, own, outputs, name),
        tags={"architecture": type(estimator).__name__},
    )


def _square(estimator: Any, options: Options) -> Geometry:
    """The square pictures whose pixels are as many as the estimator's features."""
    features = getattr(estimator, "n_features_in_", None)
    for channels in [options.channels] if options.channels else [1, 3]:
        side = math.isqrt((features or 0) // channels)
        if features and side * side * channels == features:
            return Geometry((side, side), (side, side), "squash", channels=channels)
    return Geometry()
