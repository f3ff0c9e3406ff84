"""Another library to compute a torch network with, for speed."""

from __future__ import annotations

import tempfile
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from shiftbed.data import digest
from shiftbed.errors import InputError, MissingExtraError, unknown
from shiftbed.models import Model

__all__ = ["BACKENDS", "on_backend"]

#: ``torch`` leaves every model as it is. ``onnxruntime`` computes torch networks, in the same
#: precision, with ONNX Runtime, which is faster for convolutional networks on CPUs.
BACKENDS = ("torch", "onnxruntime")
#: How far logits may be from torch's, in parts of the largest.
TOLERANCE = 1e-4


def on_backend(model: Model, backend: str | None, threads: int = 1) -> Model:
    """Return a model that computes with a backend; one that is no torch network, as it is.

    It is another model to the results: its last digits differ, so the two are never mixed.
    """
    if backend not in (None, *BACKENDS):
        raise unknown("backend", str(backend), BACKENDS)
    if backend != "onnxruntime" or model.module is None:
        return model
    try:
        import onnxruntime
    except ImportError:
        raise MissingExtraError("--backend onnxruntime", "onnx") from None
    height, width = model.geometry.size or (224, 224)
    shape = (2, height, width, model.geometry.channels or 3)
    sample = np.random.default_rng(0).integers(0, 256, shape, np.uint8)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(
        _exported(model, _as_tensor(sample)), options, providers=["CPUExecutionProvider"]
    )

    def predict(batch: npt.NDArray[np.uint8]) -> npt.ArrayLike:
        [logits] = session.run(None, {"pixels": _as_tensor(batch)})
        return np.asarray(logits)

    expected, found = model.logits(sample), np.asarray(predict(sample))
    if np.abs(expected - found).max() > TOLERANCE * max(1.0, float(np.abs(expected).max())):
        raise InputError(
            f"model {model.name} gives other logits in ONNX Runtime than in torch; "
            "leave --backend out"
        )
    weights = digest([model.weights, "onnxruntime", onnxruntime.__version__])
    return replace(model, predict=predict, weights=weights)


def _as_tensor(batch: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
    """From uint8 (N, H, W, C) to float (N, C, H, W) in [0, 1]."""
    return np.ascontiguousarray(batch.transpose(0, 3, 1, 2), np.float32) / np.float32(255)


def _exported(model: Model, sample: npt.NDArray[np.float32]) -> bytes:
    import torch

    if model.module is None:
        raise InputError(f"model {model.name} is no torch network")
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        file = Path(folder) / "network.onnx"
        try:
            torch.onnx.export(
                model.module.cpu(),
                (torch.from_numpy(sample),),
                file,
                input_names=["pixels"],
                output_names=["logits"],
                dynamic_axes={"pixels": {0: "n"}, "logits": {0: "n"}},
                dynamo=False,
            )
        except Exception as problem:  # whatever an operator without an ONNX form may raise
            raise InputError(
                f"model {model.name} cannot be computed by ONNX Runtime "
                f"({type(problem).__name__}: {str(problem).strip()[:200]}); leave --backend out"
            ) from problem
        return file.read_bytes()
