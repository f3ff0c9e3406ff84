"""What an ONNX file says, and does not say, of how it wants its pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shiftbed import InputError, models
from shiftbed.models import Geometry

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

KINDS = {
    np.float32: TensorProto.FLOAT,
    np.float16: TensorProto.FLOAT16,
    np.uint8: TensorProto.UINT8,
}


def saved(
    path: Path,
    *,
    shape: tuple[int | str, ...] = ("n", 3, 32, 32),
    dtype: Any = np.float32,
    softmax: bool = False,
    inputs: int = 1,
    metadata: dict[str, str] | None = None,
) -> str:
    """The mean of each channel, as logits or as probabilities."""
    nodes = [
        helper.make_node("Cast", ["x0"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("GlobalAveragePool", ["f"], ["m"]),
        helper.make_node("Flatten", ["m"], ["flat"]),
        helper.make_node("Mul", ["flat", "scale"], ["scaled"]),
        helper.make_node("Softmax" if softmax else "Identity", ["scaled"], ["y"]),
    ]
    values = [
        helper.make_tensor_value_info(f"x{i}", KINDS[dtype], list(shape)) for i in range(inputs)
    ]
    answer = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    scale = numpy_helper.from_array(np.array(0.5, np.float32), "scale")
    graph = helper.make_graph(nodes, "means", values, [answer], [scale])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    for key, value in (metadata or {}).items():
        model.metadata_props.add(key=key, value=value)
    onnx.save(model, path)
    return f"onnx:{path}"


@pytest.fixture
def batch() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (3, 32, 32, 3)).astype(np.uint8)


def means(batch: np.ndarray, mean: float = 0.0, std: float = 1.0) -> np.ndarray:
    return 0.5 * ((batch / 255 - mean) / std).mean((1, 2))


def test_pixels_as_they_are_for_uint8(tmp_path: Path, batch: np.ndarray) -> None:
    model = models.load(saved(tmp_path / "a.onnx", dtype=np.uint8))
    np.testing.assert_allclose(model.logits(batch), 0.5 * batch.mean((1, 2)), rtol=1e-5)


def test_half_precision(tmp_path: Path, batch: np.ndarray) -> None:
    model = models.load(saved(tmp_path / "a.onnx", dtype=np.float16), mean=0, std=1)
    np.testing.assert_allclose(model.logits(batch), means(batch), rtol=2e-3)


def test_probabilities_become_logits(tmp_path: Path, batch: np.ndarray) -> None:
    model = models.load(saved(tmp_path / "a.onnx", softmax=True), mean=0, std=1)
    logits = model.logits(batch)
    np.testing.assert_allclose(np.exp(logits).sum(axis=1), 1, rtol=1e-5)
    expected = means(batch)
    centred = expected - expected.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(logits - logits.mean(axis=1, keepdims=True), centred, atol=1e-5)


def test_metadata_is_believed_and_the_user_more(tmp_path: Path, batch: np.ndarray) -> None:
    told = {
        "mean": "(0.25, 0.25, 0.25)",
        "std": "[0.5, 0.5, 0.5]",
        "interpolation": "bicubic",
        "crop_pct": "0.5",
        "classes": "cat\ndog\nbird",
    }
    spec = saved(tmp_path / "a.onnx", metadata=told)
    model = models.load(spec)
    assert model.class_keys == ("cat", "dog", "bird")
    assert model.geometry == Geometry((32, 32), (64, 64), "shorter", "bicubic", channels=3)
    np.testing.assert_allclose(model.logits(batch), means(batch, 0.25, 0.5), atol=1e-5)
    own = models.load(spec, mean=0, interpolation="bilinear")
    assert own.geometry.interpolation == "bilinear"
    np.testing.assert_allclose(own.logits(batch), means(batch, 0, 0.5), atol=1e-5)


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        (("n", 3, 224, 224), Geometry((224, 224), (256, 256), channels=3)),
        (("n", 3, "h", "w"), Geometry((224, 224), (256, 256), channels=3)),
        (("n", 3, 299, 299), Geometry((299, 299), (341, 341), channels=3)),
        (("n", 3, 192, 256), Geometry((192, 256), (219, 292), "cover", channels=3)),
        (("n", 3, 64, 64), Geometry((64, 64), (64, 64), channels=3)),
        (("n", 1, 28, 28), Geometry((28, 28), (28, 28), channels=1)),
    ],
)
def test_the_geometry_that_is_assumed(
    tmp_path: Path, shape: tuple[int | str, ...], expected: Geometry
) -> None:
    assert models.load(saved(tmp_path / "a.onnx", shape=shape)).geometry == expected


@pytest.mark.parametrize(
    ("how", "options", "sentence"),
    [
        ({"shape": ("n", 3)}, {}, r"takes tensor\(float\) of shape \['n', 3\]; expected pictures"),
        ({"inputs": 2}, {}, "takes 2 inputs; expected one"),
        ({}, {"dtype": "bfloat16"}, "dtype and compile are torch's"),
        ({}, {"device": "cuda"}, "cannot use the device 'cuda'; cpu always can"),
        ({}, {"size": 64}, "fails on a picture"),
        ({"metadata": {"mean": "grey"}}, {}, "mean is 'grey'; expected a number"),
    ],
)
def test_mistakes(
    tmp_path: Path, how: dict[str, Any], options: dict[str, Any], sentence: str
) -> None:
    spec = saved(tmp_path / "a.onnx", **how)
    with pytest.raises(InputError, match=sentence):
        models.load(spec, **options)
