"""Another library to compute a torch network with, for speed."""

from __future__ import annotations

import importlib
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from shiftbed.data import digest
from shiftbed.errors import InputError, MissingExtraError, unknown
from shiftbed.models import Model

__all__ = ["BACKENDS", "on_backend"]

Pixels = npt.NDArray[np.float32]
#: From pixels (N, C, H, W) in [0, 1] to logits.
Compute = Callable[[Pixels], npt.ArrayLike]

#: How far logits may be from torch's, in parts of the largest.
TOLERANCE = 1e-4


def _onnxruntime(network: bytes, threads: int) -> tuple[Compute, str]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(network, options, providers=["CPUExecutionProvider"])
    return lambda pixels: np.asarray(session.run(None, {"pixels": pixels})[0]), str(
        onnxruntime.__version__
    )


def _openvino(network: bytes, threads: int) -> tuple[Compute, str]:
    import openvino

    core = openvino.Core()
    how = {
        # Left to itself it computes in bfloat16 where the CPU can.
        "INFERENCE_PRECISION_HINT": "f32",
        "INFERENCE_NUM_THREADS": threads,
        "PERFORMANCE_HINT": "LATENCY",
    }
    request = core.compile_model(core.read_model(network), "CPU", how).create_infer_request()
    # Its answer is a view of what the next batch overwrites.
    return lambda pixels: np.array(request.infer([pixels])[0]), str(openvino.__version__)


@dataclass(frozen=True)
class _Backend:
    title: str
    extra: str
    #: From a network as ONNX, and how many threads it may use, to what computes it, and the
    #: library's version.
    start: Callable[[bytes, int], tuple[Compute, str]]


_OTHERS = {
    "onnxruntime": _Backend("ONNX Runtime", "onnx", _onnxruntime),
    "openvino": _Backend("OpenVINO", "openvino", _openvino),
}
#: ``torch`` leaves every model as it is. The others compute torch networks in the same precision,
#: and convolutional ones faster on CPUs.
BACKENDS = ("torch", *_OTHERS)


def on_backend(model: Model, backend: str | None, threads: int = 1) -> Model:
    """Return a model that computes with a backend; one that is no torch network, as it is.

    It is another model to the results: its last digits differ, so the two are never mixed.
    """
    if backend not in (None, *BACKENDS):
        raise unknown("backend", str(backend), BACKENDS)
    if backend is None or backend == "torch" or model.module is None:
        return model
    other = _OTHERS[backend]
    if any(one.device.type != "cpu" for one in model.module.parameters()):
        raise InputError(
            f"{other.title} computes model {model.name} on the CPU; "
            "leave out either --backend or --device"
        )
    height, width = model.geometry.size or (224, 224)
    shape = (2, height, width, model.geometry.channels or 3)
    sample = np.random.default_rng(0).integers(0, 256, shape, np.uint8)
    expected = model.logits(sample)
    try:
        compute, version = other.start(_exported(model, other, _as_pixels(sample)), threads)
    except ImportError:
        raise MissingExtraError(f"--backend {backend}", other.extra) from None

    def predict(batch: npt.NDArray[np.uint8]) -> npt.ArrayLike:
        return compute(_as_pixels(batch))

    found = np.asarray(predict(sample))
    if np.abs(expected - found).max() > TOLERANCE * max(1.0, float(np.abs(expected).max())):
        raise InputError(
            f"model {model.name} gives other logits in {other.title} than in torch; "
            "leave --backend out"
        )
    return replace(model, predict=predict, weights=digest([model.weights, backend, version]))


def _as_pixels(batch: npt.NDArray[np.uint8]) -> Pixels:
    """From uint8 (N, H, W, C) to float (N, C, H, W) in [0, 1]."""
    return np.ascontiguousarray(batch.transpose(0, 3, 1, 2), np.float32) / np.float32(255)


def _exported(model: Model, backend: _Backend, sample: Pixels) -> bytes:
    import torch

    importlib.import_module("onnx")  # torch writes with it
    if model.module is None:
        raise InputError(f"model {model.name} is no torch network")
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        file = Path(folder) / "network.onnx"
        try:
            torch.onnx.export(
                model.module,
                (torch.from_numpy(sample),),
                file,
                input_names=["pixels"],
                output_names=["logits"],
                dynamic_axes={"pixels": {0: "n"}, "logits": {0: "n"}},
                dynamo=False,
            )
        except Exception as problem:  # whatever an operator without an ONNX form may raise
            raise InputError(
                f"model {model.name} cannot be computed by {backend.title} "
                f"({type(problem).__name__}: {str(problem).strip()[:200]}); leave --backend out"
            ) from problem
        return file.read_bytes()
