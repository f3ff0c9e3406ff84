from __future__ import annotations

import contextlib
import dataclasses
import json
import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shiftbed import InputError, models
from shiftbed.data import imagenet_classes
from shiftbed.models._torchvision import import_torchvision
from shiftbed.models.keys import class_keys, wordnet_keys
from shiftbed.models.options import read_options

import_torchvision()
import torch  # noqa: E402


def shades(batch: np.ndarray) -> np.ndarray:
    mean = batch.mean((1, 2, 3), dtype=np.float64)
    return np.stack([mean, 255 - mean, 0 * mean], axis=1)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one of everything that a user may point at by mistake."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.txt").write_text("# nothing\n")
    (tmp_path / "two.txt").write_text("cat\ndog\n")
    (tmp_path / "twice.txt").write_text("cat\ncat\ndog\n")
    (tmp_path / "not.onnx").write_bytes(b"no network")
    (tmp_path / "not.pt").write_bytes(b"no checkpoint")
    (tmp_path / "not.skops").write_bytes(b"no estimator")
    (tmp_path / "not.safetensors").write_bytes(b"no tensors")
    (tmp_path / "mine.joblib").write_bytes(pickle.dumps({}))
    torch.save(torch.nn.Linear(2, 2), tmp_path / "whole.pt")
    torch.save({"weight": torch.zeros(3, 3)}, tmp_path / "other.pt")
    torch.save([1, 2, 3], tmp_path / "list.pt")
    (tmp_path / "tags.txt").write_text("model,category\n")
    (tmp_path / "mymodule.py").write_text(
        "def shades(): return lambda batch: batch.mean((1, 2, 3))[:, None] * [1.0, -1.0]\n"
        "def nothing(): return None\n"
        "def breaks(): raise KeyError('weights')\n"
        "def flat(): return lambda batch: batch.mean()\n"
        "def always_fails():\n"
        "    def model(batch): raise RuntimeError('it expects 4 channels')\n"
        "    return model\n"
        "number = 3\n"
    )
    (tmp_path / "brokenmodule.py").write_text("1 / 0\n")
    return tmp_path


#: What a user typed -> what the one sentence must say.
MISTAKES: list[tuple[Any, dict[str, Any], str]] = [
    ("resnet18", {}, "is no model spec; write one of .*timm:resnet50"),
    ("mine.onnx", {}, "write onnx:mine.onnx"),
    ("mine.pt", {}, r"write torch:mine.pt,arch="),
    ("tim:resnet18", {}, "no source of models 'tim'; did you mean timm"),
    ("onx:mine.onnx", {}, "no source of models .onx.; did you mean onnx"),
    ("timm:", {}, "names nothing after its prefix"),
    ("timm:resnett18", {}, "did you mean resnet18"),
    ("timm:resnet18.a1_in2k", {}, "did you mean a1_in1k"),
    ("torchvision:resnet19", {}, "did you mean resnet1"),
    ("torchvision:resnet50.IMAGENET1K_V3", {}, "did you mean IMAGENET1K_V"),
    ("package:efficientnet_lite9", {}, "did you mean efficientnet_lite"),
    ("onnx:missing.onnx", {}, "there is no ONNX file missing.onnx"),
    ("onnx:not.onnx", {}, "cannot be run by ONNX Runtime"),
    ("torch:other.pt", {}, "needs an architecture to fill; add arch=timm"),
    ("torch:missing.pt,arch=timm:resnet18", {}, "there is no checkpoint missing.pt"),
    ("torch:not.pt,arch=timm:resnet10t", {}, "not a checkpoint of plain tensors"),
    ("torch:whole.pt,arch=timm:resnet10t", {}, "save the network's state_dict"),
    ("torch:list.pt,arch=timm:resnet10t", {}, "holds no state_dict"),
    ("torch:not.safetensors,arch=timm:resnet10t", {}, "not a safetensors file"),
    ("torch:other.pt,arch=timm:resnet10t", {}, "do not fit timm:resnet10t: .* missing"),
    ("torch:other.pt,arch=timm:resnet10tt", {}, "did you mean resnet10t"),
    ("torch:other.pt,arch=resnet18", {}, "is no architecture; write arch=timm"),
    ("torch:other.pt,arch=python:mymodule:shades", {}, "made a function; expected a torch module"),
    ("sklearn:missing.skops", {}, "there is no estimator missing.skops"),
    ("sklearn:not.skops", {}, "is not a skops file"),
    ("sklearn:mine.joblib", {}, "is a pickle, which can run any code"),
    ("python:mymodule", {}, "names no function; write python:package.module:factory"),
    ("python:mymodul:shades", {}, "cannot import mymodul"),
    ("python:brokenmodule:build", {}, "importing brokenmodule failed: ZeroDivisionError"),
    ("python:mymodule:shade", {}, "did you mean shades"),
    ("python:mymodule:number", {}, "is a int; expected a function"),
    ("python:mymodule:breaks", {}, "failed: KeyError"),
    ("python:mymodule:nothing", {}, "NoneType is none of them"),
    ("python:mymodule:flat", {}, r"answers two pictures with shape \(\)"),
    ("python:mymodule:always_fails", {}, "it expects 4 channels"),
    ("python:mymodule:shades", {"size": "big"}, "size is 'big'; expected a whole number"),
    ("python:mymodule:shades", {"size": "1x2x3"}, "one side or HEIGHTxWIDTH"),
    ("python:mymodule:shades", {"crop": 1.5}, "crop is 1.5; expected a part"),
    ("python:mymodule:shades", {"interpolation": "bicubc"}, "did you mean bicubic"),
    ("python:mymodule:shades", {"sizes": 3}, "no model option 'sizes'; did you mean size"),
    ("python:mymodule:shades,sizes=3", {}, "no model option 'sizes'; did you mean size"),
    ("python:mymodule:shades", {"std": "0/1/1"}, "expected numbers above 0"),
    ("python:mymodule:shades", {"mean": "1/2"}, "expected 1 or 3 numbers"),
    ("python:mymodule:shades", {"mean": "a"}, "expected a number"),
    ("python:mymodule:shades", {"mean": 0.5}, "do what mean would in it"),
    ("python:mymodule:shades", {"compile": "maybe"}, "expected yes or no"),
    ("python:mymodule:shades", {"classes": "missing.txt"}, "cannot read the classes from"),
    ("python:mymodule:shades", {"classes": "imagenet-1k"}, "has 2 outputs, but 1,000 classes"),
    ("python:mymodule:shades", {"tags": "tags.txt"}, "lacks the column name"),
    ("python:mymodule:shades", {"tags": "missing.csv"}, "cannot read the models' tags"),
    ("python:mymodule:shades", {"name": ""}, "name is ''; expected a text"),
    (shades, {"classes": "two.txt"}, "has 3 outputs, but 2 classes"),
    (shades, {"classes": "twice.txt"}, "name 'cat' twice"),
    (torch.nn.Linear(4, 2), {}, "say what it wants with size= and channels="),
    (torch.nn.Flatten(), {"device": "cuda:77"}, "cpu always can"),
    (torch.nn.Flatten(), {"device": "toaster"}, "the device 'toaster' cannot be used here"),
    (torch.nn.Flatten(), {"dtype": "float31"}, "choose one of float32, bfloat16, float16"),
    (3, {}, "int is none of them"),
    ("hf:some/where", {}, "the hub cannot be reached"),
    ("timm:resnet18.a1_in1k", {}, "torch:FILE,arch=timm:resnet18"),
    ("torchvision:resnet18", {}, "put http.* into .*checkpoints"),
]


def named(spec: Any, options: dict[str, Any], sentence: str) -> str:
    """The same id in every process: no addresses."""
    return f"{getattr(spec, '__name__', spec)}-{options}"[:60]


@pytest.mark.parametrize(
    ("spec", "options", "sentence"), MISTAKES, ids=[named(*mistake) for mistake in MISTAKES]
)
def test_every_mistake_is_one_sentence(
    here: Path, monkeypatch: pytest.MonkeyPatch, spec: Any, options: dict[str, Any], sentence: str
) -> None:
    unreachable(monkeypatch)
    with pytest.raises(InputError, match=sentence) as caught:
        models.load(spec, **options)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 700


def unreachable(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without a network, wherever the tests run."""
    import socket
    import urllib.request

    from shiftbed.models import hub

    def refuse(*_: object, **__: object) -> None:
        raise OSError("no network")

    hub.reachable.cache_clear()
    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(urllib.request, "urlopen", refuse)
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


def test_expand(here: Path) -> None:
    (here / "list.txt").write_text("# mine\npython:mymodule:shades  # one\n\npackage:*lite[01]\n")
    assert models.expand("@list.txt") == [
        "python:mymodule:shades",
        "package:efficientnet_lite0",
        "package:efficientnet_lite1",
    ]
    assert models.expand(["onnx:a.onnx,size=64", "onnx:a.onnx,size=64"]) == ["onnx:a.onnx,size=64"]
    (here / "a[1].onnx").write_bytes(b"")
    assert models.expand("onnx:*.onnx,size=64") == [
        "onnx:a[1].onnx,size=64",
        "onnx:not.onnx,size=64",
    ]
    assert models.expand("onnx:a[1].onnx") == ["onnx:a[1].onnx"]
    wild = models.expand("timm:resnet[13]*.a1_in1k,size=160")
    assert "timm:resnet18.a1_in1k,size=160" in wild
    assert "timm:resnet34.a1_in1k,size=160" in wild
    assert not any("resnet50" in spec for spec in wild)


@pytest.mark.parametrize(
    ("pattern", "sentence"),
    [
        ("timm:resnett*", "nothing of timm: matches 'resnett\\*'; see"),
        ("onnx:*.onx", "nothing of onnx: matches '\\*.onx'$"),
        ("hf:*", "has no list of models to match"),
        ("@missing.txt", "cannot read the list of models missing.txt"),
        ("@empty.txt", "is empty; expected one spec per line"),
        ("resnet18", "is no model spec"),
    ],
)
def test_expand_mistakes(here: Path, pattern: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        models.expand(pattern)


def test_list_models() -> None:
    assert "package:resnet50_keras" in models.list_models("package:*")
    listed = models.list_models("resnet18")
    assert "timm:resnet18.a1_in1k" in listed
    assert "torchvision:resnet18.IMAGENET1K_V1" in listed
    with pytest.raises(InputError, match="no model that can be listed matches 'resnett'"):
        models.list_models("resnett")


@given(st.text(max_size=40))
def test_any_text_is_expanded_or_refused(text: str) -> None:
    with contextlib.suppress(InputError):
        assert models.expand([text])


@given(
    key=st.sampled_from([field.name for field in dataclasses.fields(models.Options)]),
    value=st.one_of(
        st.text(max_size=12),
        st.floats(),
        st.integers(),
        st.lists(st.integers(-2, 300), max_size=4),
        st.text(alphabet="0123456789./x-e", max_size=8),
    ),
)
def test_any_option_is_understood_or_refused(key: str, value: Any) -> None:
    try:
        options = read_options({key: value})
    except InputError:
        return
    geometry = options.geometry(models.Geometry((224, 224), (256, 256)))
    assert geometry.size is not None
    assert min(geometry.size) > 0
    assert geometry.resize is not None
    assert min(geometry.resize) > 0


def test_names() -> None:
    assert models.load(shades).name == "shades"
    assert models.load(shades, name="mine").name == "mine"
    assert models.load(models.load(shades), name="again").name == "again"
    assert models.load(lambda batch: shades(batch), name="mine").outputs == 3


def test_a_spec_carries_its_own_overrides(here: Path) -> None:
    model = models.load("python:mymodule:shades,size=32x48,name=small,classes=two.txt", size=64)
    assert model.geometry.size == (32, 48)
    assert model.name == "small"
    assert model.class_keys == ("cat", "dog")
    assert model.spec == "python:mymodule:shades,size=32x48,name=small,classes=two.txt"


def test_a_factory_may_make_a_model_or_a_spec(here: Path) -> None:
    (here / "factories.py").write_text(
        "from shiftbed import models\n"
        "def model(): return models.load('python:mymodule:shades', name='inner')\n"
        "def spec(): return 'python:mymodule:shades,size=8'\n"
    )
    model = models.load("python:factories:model,size=16")
    assert model.geometry.size == (16, 16)
    assert (model.name, model.spec) == ("inner", "python:factories:model,size=16")
    assert models.load("python:factories:spec").geometry.size == (8, 8)
    with pytest.raises(InputError, match="made already; mean cannot be changed in it"):
        models.load("python:factories:model,mean=0.5")
    assert models.load(model, classes=("a", "b")).class_keys == ("a", "b")


def test_tags(here: Path) -> None:
    (here / "tags.csv").write_text(
        "name,category,parents\nshades,robust,a; b\n*,standard,\nother,more data,\n"
    )
    assert models.load(shades, tags="tags.csv").tags == {
        "category": "standard",
        "parents": ["a", "b"],
    }
    (here / "tags.json").write_text(json.dumps({"shades": {"category": "lp-adversarial"}}))
    assert models.load(shades, tags=here / "tags.json").tags == {"category": "lp-adversarial"}


def test_a_logit_shape_that_changes_is_refused() -> None:
    calls = []

    def fickle(batch: np.ndarray) -> np.ndarray:
        calls.append(1)
        return np.zeros((len(batch), 2 + (len(calls) > 1)))

    model = models.load(fickle)
    with pytest.raises(InputError, match=r"shape \(4, 3\) for 4 pictures; expected \(4, 2\)"):
        model.logits(np.zeros((4, 28, 28, 1), np.uint8))


def test_fingerprints_tell_models_apart() -> None:
    torch.manual_seed(0)
    first = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(784, 3))
    second = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(784, 3))
    loaded = models.load(first)
    prints = {
        loaded.fingerprint(),
        models.load(second).fingerprint(),
        models.load(first, mean=0.5).fingerprint(),
        models.load(first, dtype="bfloat16").fingerprint(),
        models.load(first, size=28).fingerprint(),
        models.load(shades).fingerprint(),
    }
    assert len(prints) == 6
    offset = np.arange(3.0)
    assert len({models.load(lambda b, o=o: shades(b) + o).fingerprint() for o in (1, 2)}) == 2
    shifted = models.load(lambda b: shades(b) + offset).fingerprint()
    offset = offset + 1
    assert models.load(lambda b: shades(b) + offset).fingerprint() != shifted
    closed = [torch.nn.Linear(1, 3), torch.nn.Linear(1, 3)]

    def over(network: torch.nn.Module) -> Any:
        return lambda b: network(torch.from_numpy(shades(b)[:, :1]).float())

    assert models.load(over(closed[0])).fingerprint() == models.load(over(closed[0])).fingerprint()
    assert models.load(over(closed[0])).fingerprint() != models.load(over(closed[1])).fingerprint()


def test_the_users_network_is_left_as_it_was() -> None:
    network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Dropout(), torch.nn.Linear(784, 3))
    network.train()
    models.load(network, dtype="bfloat16")
    assert network.training
    assert network[2].weight.dtype == torch.float32
    assert network[2].weight.requires_grad


def test_a_network_that_looks_at_strides_still_runs() -> None:
    class Viewing(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = torch.nn.Conv2d(3, 4, 3)
            self.fc = torch.nn.Linear(4 * 30 * 30, 5)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = self.conv(x)
            return self.fc(x.view(len(x), -1))

    network = Viewing().eval()
    batch = np.random.default_rng(0).integers(0, 256, (3, 32, 32, 3)).astype(np.uint8)
    ours = models.load(network, size=32, channels=3).logits(batch)
    pixels = torch.from_numpy(batch).permute(0, 3, 1, 2).float() / 255
    with torch.no_grad():
        np.testing.assert_allclose(ours, network(pixels.contiguous()).numpy(), atol=1e-5)


def test_gradients_reach_the_pixels() -> None:
    network = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3), torch.nn.Flatten(), torch.nn.Linear(144, 2)
    )
    model = models.load(network, size=8, channels=3, mean=0.5, std=0.25)
    assert model.module is not None
    pixels = torch.rand(2, 3, 8, 8, requires_grad=True)
    model.module(pixels)[:, 0].sum().backward()
    assert pixels.grad is not None
    assert float(pixels.grad.abs().sum()) > 0
    batch = (pixels.detach().permute(0, 2, 3, 1) * 255).round().byte().numpy()
    direct = model.module(torch.from_numpy(batch).permute(0, 3, 1, 2).float() / 255)
    np.testing.assert_allclose(model.logits(batch), direct.detach().numpy(), atol=1e-5)


def test_class_keys() -> None:
    assert class_keys("imagenet-1k", None, 1000, "m") == imagenet_classes()
    with_background = class_keys("imagenet-1k", None, 1001, "m")
    assert with_background is not None
    assert with_background[0] == "background"
    assert class_keys(None, ("a", "b"), 3, "m") is None
    from shiftbed.data import imagenet_names

    names = [", ".join(words) for words in imagenet_names().values()]
    assert wordnet_keys(names) == imagenet_classes()
    assert wordnet_keys(names[::-1]) == tuple(names[::-1])


@pytest.mark.parametrize(
    ("missing", "spec", "extra"),
    [
        ("timm", "timm:resnet18", "timm"),
        ("torchvision", "torchvision:resnet18", "torch"),
        ("onnxruntime", "onnx:a.onnx", "onnx"),
        ("transformers", "hf:some/where", "hf"),
        ("skops", "sklearn:not.skops", "sklearn"),
        ("h5py", "package:squeezenet1_1_keras", "hdf5"),
    ],
)
def test_a_missing_extra_is_named(
    here: Path, monkeypatch: pytest.MonkeyPatch, missing: str, spec: str, extra: str
) -> None:
    if missing == "torchvision":
        from shiftbed.models import _torchvision

        _torchvision.import_torchvision.cache_clear()
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(InputError, match=rf"pip install 'shiftbed\[{extra}\]'"):
        models.load(spec)


def test_models_without_their_library_are_left_out_of_lists(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "timm", None)
    listed = models.list_models("efficientnet*")
    assert "package:efficientnet_lite0" in listed
    assert not any(spec.startswith("timm:") for spec in listed)


def test_larger_imagenets_have_their_wordnet_ids() -> None:
    import timm

    from shiftbed.data import match_classes
    from shiftbed.models.sources.timm import as_pretrained

    class Twelve(torch.nn.Module):
        num_classes = 11821
        pretrained_cfg = timm.get_pretrained_cfg("resnet50.a1_in1k").to_dict() | {
            "num_classes": 11821
        }

    keys = as_pretrained(Twelve()).keys
    assert keys is not None
    assert len(keys) == 11821
    goldfish = match_classes(["goldfish"], keys, 11821).members
    assert keys[goldfish[0][0]] == "n01443537"
