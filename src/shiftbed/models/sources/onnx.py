"""``onnx:FILE``: an ONNX network, run by ONNX Runtime; no custom operators."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from shiftbed.assets import sha256_of
from shiftbed.data import found_path
from shiftbed.errors import InputError, MissingExtraError
from shiftbed.models.geometry import Fit, Geometry
from shiftbed.models.keys import class_keys
from shiftbed.models.model import Model
from shiftbed.models.options import IMAGENET_MEAN, IMAGENET_STD, Options, read_options
from shiftbed.models.probing import are_probabilities, probe
from shiftbed.models.registry import source

__all__: list[str] = []

_DTYPES = {
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(double)": np.float64,
    "tensor(uint8)": np.uint8,
}


@source("onnx", "onnx:mine.onnx", files=True)
def _load(path: str, options: Options) -> Model:
    """Load a network; what its file does not say of its preparation is as torchvision's.

    That is: the shorter side to 256/224 of the input's, a centre crop, ImageNet's mean and
    standard deviation. Inputs below 128 px are shown the whole square, single-channel ones
    pixels in [0, 1], and uint8 ones the pixels themselves. The metadata ``mean``, ``std``,
    ``interpolation``, ``crop_pct`` and ``classes``, if the file has them, are believed.
    """
    try:
        import onnxruntime
    except ImportError:
        raise MissingExtraError("onnx:", "onnx") from None
    file = found_path(path)
    if file is None or not file.is_file():
        raise InputError(f"there is no ONNX file {path}")
    if options.dtype != "float32" or options.compile:
        raise InputError(f"onnx:{path} computes as its file says; dtype and compile are torch's")
    session = _session(onnxruntime, file, options.device)
    inputs = session.get_inputs()
    if len(inputs) != 1:
        raise InputError(f"{path} takes {len(inputs)} inputs; expected one, the pictures")
    shape, kind = inputs[0].shape, inputs[0].type
    if len(shape) != 4 or kind not in _DTYPES:
        raise InputError(
            f"{path} takes {kind} of shape {shape}; expected pictures (N, C, H, W) or (N, H, W, C)"
        )
    last = shape[3] in (1, 3) and shape[1] not in (1, 3)
    height, width, channels = (shape[1], shape[2], shape[3]) if last else (*shape[2:], shape[1])
    told = session.get_modelmeta().custom_metadata_map
    options = _believed(options, told)
    geometry = options.geometry(_geometry(height, width, channels))
    dtype = _DTYPES[kind]
    mean, std = _normalisation(options, geometry.channels or 3)

    # A graph that was exported for batches of one size is run in batches of that size.
    batch_size = shape[0] if isinstance(shape[0], int) else None

    def answers(batch: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
        pixels = batch if last else np.ascontiguousarray(batch.transpose(0, 3, 1, 2))
        if dtype != np.uint8:
            axes = (1, -1) if last else (1, -1, 1, 1)
            scaled = pixels.astype(np.float32) / np.float32(255)
            pixels = ((scaled - mean.reshape(axes)) / std.reshape(axes)).astype(dtype)
        return _run(session, pixels, batch_size)

    first = probe(answers, geometry, file.stem)
    outputs = first.shape[1]
    logarithms = are_probabilities(first)

    def predict(batch: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
        answer = answers(batch)
        return np.log(np.maximum(answer, 1e-30)) if logarithms else answer

    own = tuple(told["classes"].splitlines()) if "classes" in told else None
    return Model(
        name=options.name or file.stem,
        spec=f"onnx:{path}",
        geometry=geometry,
        outputs=outputs,
        predict=predict,
        weights=f"{sha256_of(file)} {mean.tolist()} {std.tolist()}",
        class_keys=class_keys(options.classes, own, outputs, file.stem),
    )


def _session(runtime: Any, file: Path, device: str) -> Any:
    options = runtime.SessionOptions()
    options.log_severity_level = 3
    threads = os.environ.get("OMP_NUM_THREADS", "")
    if threads.isdecimal():
        options.intra_op_num_threads = int(threads)
    kind, _, number = device.partition(":")
    wanted = "CPUExecutionProvider" if kind == "cpu" else "CUDAExecutionProvider"
    if wanted not in runtime.get_available_providers():
        raise InputError(f"this ONNX Runtime cannot use the device {device!r}; cpu always can")
    try:
        provider = (wanted, {"device_id": number or "0"}) if kind != "cpu" else wanted
        return runtime.InferenceSession(str(file), options, providers=[provider])
    except Exception as problem:  # ONNX Runtime's exceptions share no public base
        said = str(problem).strip().splitlines()[0]
        raise InputError(f"{file} cannot be run by ONNX Runtime ({said[:200]})") from None


def _believed(options: Options, told: dict[str, str]) -> Options:
    """The user's options, and under them what the file's metadata says."""
    known = {"mean": "mean", "std": "std", "interpolation": "interpolation", "crop_pct": "crop"}
    found: dict[str, Any] = {}
    for key, option in known.items():
        if key in told and getattr(options, option) is None:
            # A list may be written as in Python or in JSON.
            found[option] = told[key].strip("()[] ").replace(" ", "").replace(",", "/")
    believed = read_options(found)
    return replace(options, **{option: getattr(believed, option) for option in found})


def _geometry(height: object, width: object, channels: object) -> Geometry:
    tall, wide = (side if isinstance(side, int) and side > 0 else 224 for side in (height, width))
    seen = 1 if channels == 1 else 3
    if min(tall, wide) < 128:
        return Geometry((tall, wide), (tall, wide), channels=seen)
    scaled = (tall * 256 // 224, wide * 256 // 224)
    fit: Fit = "shorter" if tall == wide else "cover"
    return Geometry((tall, wide), scaled, fit, channels=seen)


def _normalisation(
    options: Options, channels: int
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    own = (IMAGENET_MEAN, IMAGENET_STD) if channels == 3 else ((0.0,), (1.0,))
    mean, std = options.mean or own[0], options.std or own[1]
    return np.array(mean, np.float32), np.array(std, np.float32)


def _run(session: Any, pixels: npt.NDArray[Any], batch_size: int | None) -> npt.NDArray[np.float32]:
    step = batch_size or max(len(pixels), 1)
    answers = []
    for start in range(0, len(pixels), step):
        part = pixels[start : start + step]
        short = step - len(part)
        filled = np.concatenate([part, np.repeat(part[-1:], short, axis=0)]) if short else part
        answer = session.run(None, {session.get_inputs()[0].name: filled})[0]
        answers.append(np.asarray(answer, np.float32)[: len(part)])
    return np.concatenate(answers)
