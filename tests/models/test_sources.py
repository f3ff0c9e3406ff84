"""Every source of models against a plain loop with its own library, on the same pictures."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from shiftbed import models
from shiftbed.models._torchvision import import_torchvision

torchvision = import_torchvision()
import torch  # noqa: E402 - after the one place that makes torchvision importable

torch.set_num_threads(1)

#: What a case returns: the spec or callable, its overrides, and the library's own loop.
Case = tuple[Any, dict[str, Any], Callable[[np.ndarray], np.ndarray]]


def torch_loop(network: torch.nn.Module, transform: Callable[[Image.Image], torch.Tensor]):
    network = network.eval()

    def loop(picture: np.ndarray) -> np.ndarray:
        with torch.inference_mode():
            return network(transform(Image.fromarray(picture))[None])[0].numpy()

    return loop


def hub_file(repository: str, name: str) -> Path:
    """A place in the hub's cache, laid out as the hub's own client lays it out."""
    from huggingface_hub import constants

    root = Path(constants.HF_HUB_CACHE) / f"models--{repository.replace('/', '--')}"
    (root / "refs").mkdir(parents=True)
    (root / "refs" / "main").write_text("0" * 40)
    file = root / "snapshots" / ("0" * 40) / name
    file.parent.mkdir(parents=True)
    return file


def settled(network: torch.nn.Module) -> torch.nn.Module:
    """Give batch normalisation real statistics, so that pictures reach the outputs."""
    network.train()
    with torch.no_grad():
        for _ in range(20):
            network(torch.randn(8, 3, 64, 64))
    return network.eval()


def timm_network(name: str, **options: Any) -> torch.nn.Module:
    import timm

    torch.manual_seed(1)
    return settled(timm.create_model(name, pretrained=False, **options))


def case_timm(tmp_path: Path) -> Case:
    import timm
    from safetensors.torch import save_file

    name = "mobilenetv3_small_050.lamb_in1k"
    network = timm_network(name)
    save_file(network.state_dict(), hub_file(f"timm/{name}", "model.safetensors"))
    config = timm.data.resolve_model_data_config(network)
    return f"timm:{name}", {}, torch_loop(network, timm.data.create_transform(**config))


def case_timm_module(tmp_path: Path) -> Case:
    import timm

    network = timm_network("resnet10t.c3_in1k")
    config = timm.data.resolve_model_data_config(network)
    return network, {}, torch_loop(network, timm.data.create_transform(**config))


def case_torchvision(tmp_path: Path) -> Case:
    weights = torchvision.models.SqueezeNet1_1_Weights.IMAGENET1K_V1
    torch.manual_seed(2)
    network = torchvision.models.squeezenet1_1()
    file = Path(torch.hub.get_dir()) / "checkpoints" / weights.url.rpartition("/")[2]
    file.parent.mkdir(parents=True)
    torch.save(network.state_dict(), file)
    return "torchvision:squeezenet1_1", {}, torch_loop(network, weights.transforms())


def case_torch_timm(tmp_path: Path) -> Case:
    import timm

    network = timm_network("resnet10t", num_classes=7)
    torch.save({"state_dict": network.state_dict()}, tmp_path / "mine.pt")
    config = timm.data.resolve_model_data_config(network)
    spec = f"torch:{tmp_path / 'mine.pt'},arch=timm:resnet10t"
    return spec, {}, torch_loop(network, timm.data.create_transform(**config))


def case_torch_torchvision(tmp_path: Path) -> Case:
    from safetensors.torch import save_file

    torch.manual_seed(3)
    network = settled(torchvision.models.shufflenet_v2_x0_5(num_classes=5))
    save_file(network.state_dict(), tmp_path / "mine.safetensors")
    weights = torchvision.models.ShuffleNet_V2_X0_5_Weights.DEFAULT
    spec = f"torch:{tmp_path / 'mine.safetensors'},arch=torchvision:shufflenet_v2_x0_5"
    return spec, {}, torch_loop(network, weights.transforms())


def case_torch_python(tmp_path: Path) -> Case:
    (tmp_path / "networks_of_mine.py").write_text(
        "import torch\n"
        "def small():\n"
        "    return torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3), torch.nn.ReLU(),\n"
        "        torch.nn.Flatten(), torch.nn.Linear(4 * 26 * 26, 10))\n"
    )
    sys.path.insert(0, str(tmp_path))
    network = importlib.import_module("networks_of_mine").small()
    sys.path.remove(str(tmp_path))
    state = {f"module.{key}": value for key, value in network.state_dict().items()}
    torch.save(state, tmp_path / "small.pth")
    spec = f"torch:{tmp_path / 'small.pth'},arch=python:networks_of_mine:small,size=28,channels=1"
    transform = torchvision.transforms.Compose(
        [
            torchvision.transforms.Grayscale(),
            torchvision.transforms.Resize(28),
            torchvision.transforms.CenterCrop(28),
            torchvision.transforms.ToTensor(),
        ]
    )
    return spec, {}, torch_loop(network, transform)


def case_callable_module(tmp_path: Path) -> Case:
    torch.manual_seed(4)
    network = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, stride=2), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten()
    )
    transform = torchvision.transforms.Compose(
        [
            torchvision.transforms.Resize(40),
            torchvision.transforms.CenterCrop(32),
            torchvision.transforms.ToTensor(),
            torchvision.transforms.Normalize((0.5,) * 3, (0.25,) * 3),
        ]
    )
    options = {"size": 32, "resize": 40, "mean": (0.5,) * 3, "std": (0.25,) * 3}
    return network, options, torch_loop(network, transform)


def case_function(tmp_path: Path) -> Case:
    def brightness(batch: np.ndarray) -> np.ndarray:
        mean = batch.astype(np.float32).mean((1, 2))
        return np.concatenate([mean, 255 - mean], axis=1)

    def loop(picture: np.ndarray) -> np.ndarray:
        image = Image.fromarray(picture).resize((32, 24), Image.Resampling.BILINEAR)
        return brightness(np.asarray(image)[None])[0]

    return brightness, {"size": (24, 32), "resize": (24, 32)}, loop


def case_python(tmp_path: Path) -> Case:
    (tmp_path / "functions_of_mine.py").write_text(
        "def build():\n    return lambda batch: batch.reshape(len(batch), -1)[:, :3] * 1.0\n"
    )
    sys.modules.pop("functions_of_mine", None)

    def loop(picture: np.ndarray) -> np.ndarray:
        image = Image.fromarray(picture).resize((8, 8), Image.Resampling.BILINEAR)
        return np.asarray(image, np.float32).reshape(-1)[:3]

    return "python:functions_of_mine:build,size=8x8,resize=8x8", {}, loop


def onnx_file(path: Path, *, layout: str, batch: int | str, size: int, channels: int = 3) -> Path:
    """A small convolutional network, written node by node."""
    onnx = pytest.importorskip("onnx")
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(5)
    kernel = rng.normal(0.05, 0.3, (6, channels, 3, 3)).astype(np.float32)
    matrix = rng.normal(0, 1, (6, 4)).astype(np.float32)
    shape = [batch, channels, size, size] if layout == "NCHW" else [batch, size, size, channels]
    nodes = [
        helper.make_node("Conv", ["x", "kernel"], ["a"], strides=[2, 2]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("GlobalAveragePool", ["b"], ["c"]),
        helper.make_node("Flatten", ["c"], ["d"]),
        helper.make_node("MatMul", ["d", "matrix"], ["logits"]),
    ]
    if layout == "NHWC":
        nodes.insert(0, helper.make_node("Transpose", ["pixels"], ["x"], perm=[0, 3, 1, 2]))
    graph = helper.make_graph(
        nodes,
        "small",
        [
            helper.make_tensor_value_info(
                "x" if layout == "NCHW" else "pixels", TensorProto.FLOAT, shape
            )
        ],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [batch, 4])],
        [numpy_helper.from_array(kernel, "kernel"), numpy_helper.from_array(matrix, "matrix")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, path)
    return path


def onnx_loop(path: Path, transform: Callable, layout: str):
    import onnxruntime

    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])

    def loop(picture: np.ndarray) -> np.ndarray:
        pixels = transform(Image.fromarray(picture)).numpy()[None]
        if layout == "NHWC":
            pixels = np.ascontiguousarray(pixels.transpose(0, 2, 3, 1))
        return session.run(None, {session.get_inputs()[0].name: pixels})[0][0]

    return loop


def case_onnx(tmp_path: Path) -> Case:
    file = onnx_file(tmp_path / "net.onnx", layout="NCHW", batch="N", size=224)
    transform = torchvision.models.ResNet18_Weights.IMAGENET1K_V1.transforms()
    return f"onnx:{file}", {}, onnx_loop(file, transform, "NCHW")


def case_onnx_channels_last_fixed_batch(tmp_path: Path) -> Case:
    file = onnx_file(tmp_path / "net.onnx", layout="NHWC", batch=1, size=64)
    transform = torchvision.transforms.Compose(
        [
            torchvision.transforms.Resize(64),
            torchvision.transforms.CenterCrop(64),
            torchvision.transforms.ToTensor(),
            torchvision.transforms.Normalize((0.1, 0.2, 0.3), (0.5, 0.6, 0.7)),
        ]
    )
    spec = f"onnx:{file},mean=0.1/0.2/0.3,std=0.5/0.6/0.7"
    return spec, {}, onnx_loop(file, transform, "NHWC")


def case_onnx_one_channel(tmp_path: Path) -> Case:
    file = onnx_file(tmp_path / "net.onnx", layout="NCHW", batch=3, size=28, channels=1)
    transform = torchvision.transforms.Compose(
        [
            torchvision.transforms.Grayscale(),
            torchvision.transforms.Resize(28),
            torchvision.transforms.CenterCrop(28),
            torchvision.transforms.ToTensor(),
        ]
    )
    single = onnx_file(tmp_path / "single.onnx", layout="NCHW", batch=1, size=28, channels=1)
    return f"onnx:{file}", {}, onnx_loop(single, transform, "NCHW")


def hf_loop(network: torch.nn.Module, processor: Any):
    def loop(picture: np.ndarray) -> np.ndarray:
        with torch.inference_mode():
            return network(**processor(picture, return_tensors="pt")).logits[0].numpy()

    return loop


def case_hf(tmp_path: Path) -> Case:
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(6)
    config = transformers.ViTConfig(
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        image_size=48,
        patch_size=16,
        num_labels=9,
    )
    network = transformers.ViTForImageClassification(config).eval()
    network.save_pretrained(tmp_path / "vit")
    processor = transformers.ViTImageProcessorPil(size={"height": 48, "width": 48})
    processor.save_pretrained(tmp_path / "vit")
    return f"hf:{tmp_path / 'vit'}", {}, hf_loop(network, processor)


def sklearn_rows(size: int) -> Callable[[np.ndarray], np.ndarray]:
    def row(picture: np.ndarray) -> np.ndarray:
        image = (
            Image.fromarray(picture).convert("L").resize((size, size), Image.Resampling.BILINEAR)
        )
        return (np.asarray(image, np.float32) / 255).reshape(1, -1)

    return row


def sklearn_case(estimator: Any, tmp_path: Path, method: str) -> Case:
    skops = pytest.importorskip("skops.io")
    rng = np.random.default_rng(7)
    estimator.fit(rng.random((60, 64), np.float32), np.arange(60) % 3)
    skops.dump(estimator, tmp_path / "mine.skops")
    row = sklearn_rows(8)

    def loop(picture: np.ndarray) -> np.ndarray:
        answer = getattr(estimator, method)(row(picture))[0]
        return np.log(answer) if method == "predict_proba" else answer

    return f"sklearn:{tmp_path / 'mine.skops'}", {}, loop


def case_sklearn_logistic(tmp_path: Path) -> Case:
    from sklearn.linear_model import LogisticRegression

    return sklearn_case(LogisticRegression(max_iter=500), tmp_path, "predict_proba")


def case_sklearn_svm(tmp_path: Path) -> Case:
    from sklearn.svm import LinearSVC

    return sklearn_case(LinearSVC(), tmp_path, "decision_function")


def case_sklearn_pipeline(tmp_path: Path) -> Case:
    from sklearn.naive_bayes import GaussianNB
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return sklearn_case(make_pipeline(StandardScaler(), GaussianNB()), tmp_path, "predict_proba")


CASES = {
    name.removeprefix("case_"): case for name, case in globals().items() if "case_" in name[:5]
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_logits_equal_a_plain_loop(
    case: Callable[[Path], Case],
    tmp_path: Path,
    pictures: list,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    spec, options, loop = case(tmp_path)
    model = models.load(spec, **options)
    shown = [picture for picture in pictures if min(picture.shape[:2]) > 1]
    batch = np.stack([model.geometry.apply(picture) for picture in shown])
    ours = model.logits(batch)
    theirs = np.stack([loop(picture) for picture in shown]).astype(np.float32)
    assert ours.dtype == np.float32
    assert ours.shape == (len(shown), model.outputs)
    np.testing.assert_allclose(ours, theirs, rtol=2e-4, atol=2e-5)
    assert ours.std(axis=0).max() > 1e-4, "the case tells pictures apart"


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_batches_and_loads_do_not_matter(
    case: Callable[[Path], Case],
    tmp_path: Path,
    pictures: list,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    spec, options, _ = case(tmp_path)
    model = models.load(spec, **options)
    batch = np.stack([model.geometry.apply(picture) for picture in pictures[:5]])
    whole = model.logits(batch)
    single = np.concatenate([model.logits(batch[i : i + 1]) for i in range(len(batch))])
    np.testing.assert_allclose(whole, single, rtol=1e-4, atol=1e-5)
    again = models.load(spec, **options)
    assert again.fingerprint() == model.fingerprint()
    if model.geometry.size is not None and not isinstance(spec, str):
        return
    changed = models.load(spec, **{**options, "interpolation": "nearest"})
    assert changed.fingerprint() != model.fingerprint()
