"""A cell's answers are those of the loop that anybody would write, picture by picture."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import shiftbed as sb
from shiftbed.corruptions import corrupt
from shiftbed.evaluation import Evaluation

Picture = np.ndarray
#: From a PIL picture to what the model sees, uint8; and from a batch of these to classes.
Loop = tuple[Callable[[Image.Image], Picture], Callable[[np.ndarray], np.ndarray]]

CLASSES = ["ant", "bee", "cat", "dog", "elk"]
SETTINGS = "+{clean,gaussian_noise.2,contrast.3}"


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """25 JPEG and PNG photographs of several sizes in five classes."""
    rng = np.random.default_rng(0)
    root = tmp_path_factory.mktemp("data") / "photos"
    for number in range(25):
        height, width = [(300, 400), (260, 260), (333, 250)][number % 3]
        y, x = np.mgrid[:height, :width]
        waves = [np.sin(x / rng.uniform(5, 60) + y / rng.uniform(5, 60)) for _ in range(3)]
        picture = 127 + 90 * np.stack(waves, 2) + rng.normal(0, 10, (height, width, 3))
        folder = root / CLASSES[number % 5]
        folder.mkdir(parents=True, exist_ok=True)
        suffix = "png" if number % 4 == 0 else "jpg"
        Image.fromarray(np.clip(picture, 0, 255).astype(np.uint8)).save(
            folder / f"{number:02}.{suffix}"
        )
    return root


def agrees(run: Evaluation, model: str, photos: Path, loop: Loop) -> None:
    geometry, classify = loop
    files = sorted(photos.rglob("*.*"))
    labels = np.array([CLASSES.index(file.parent.name) for file in files])
    seen = [geometry(Image.open(file).convert("RGB")) for file in files]
    for shift in (None, ("gaussian_noise", 2), ("contrast", 3)):
        shown = seen
        if shift is not None:
            keys = [file.relative_to(photos).as_posix() for file in files]
            shown = [corrupt(p, *shift, key=key) for p, key in zip(seen, keys, strict=True)]
        # As a loader would: in batches of eight, the last one smaller.
        answers = [
            classify(np.stack(shown[start : start + 8])) for start in range(0, len(shown), 8)
        ]
        expected = np.concatenate(answers)
        setting = "photos" if shift is None else f"photos+{shift[0]}.{shift[1]}"
        rows = run.predictions(model, setting)
        assert rows["picture"].to_pylist() == [f.relative_to(photos).as_posix() for f in files]
        np.testing.assert_array_equal(rows["class1"].to_numpy(), expected)
        [cell] = [row for row in run.cells().to_pylist() if row["setting"] == setting]
        assert cell["correct"] == (expected == labels).sum()
        # A model that always says the same would prove little.
        assert shift is not None or len(set(expected)) > 1


def torch_loop(network: object, transform: Callable[[Image.Image], object]) -> Loop:
    """The network behind a library's own transform, which ends in a normalised tensor."""
    import torch

    *geometry, to_tensor, normalise = transform.transforms

    def shape(picture: Image.Image) -> Picture:
        for step in geometry:
            picture = step(picture)
        return np.asarray(picture)

    def classify(batch: np.ndarray) -> np.ndarray:
        tensors = [normalise(to_tensor(Image.fromarray(picture))) for picture in batch]
        with torch.no_grad():
            return network(torch.stack(tensors)).argmax(1).numpy()

    return shape, classify


def spread(network: object) -> object:
    """Make an untrained network's answers differ between pictures."""
    import torch

    torch.manual_seed(0)
    for name, parameter in network.named_parameters():
        if parameter.ndim > 1:
            torch.nn.init.kaiming_normal_(parameter)
        elif name.endswith("bias"):
            torch.nn.init.zeros_(parameter)
    return network.eval()


def test_torch(photos: Path, tmp_path: Path) -> None:
    import torch

    from shiftbed.models._torchvision import import_torchvision

    torchvision = import_torchvision()
    network = spread(torchvision.models.squeezenet1_1(num_classes=5))
    torch.save(network.state_dict(), tmp_path / "mine.pt")
    (tmp_path / "classes.txt").write_text("\n".join(CLASSES))
    run = sb.evaluate(
        f"torch:{tmp_path}/mine.pt,arch=torchvision:squeezenet1_1,outputs=5,name=mine",
        SETTINGS,
        photos,
        results=tmp_path / "results",
        classes=str(tmp_path / "classes.txt"),
        quiet=True,
    )
    from torchvision import transforms

    transform = transforms.Compose(
        [
            transforms.Resize(256),
            transforms.CenterCrop(224),
            transforms.ToTensor(),
            transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
        ]
    )
    agrees(run, "mine", photos, torch_loop(network, transform))


def test_timm(photos: Path, tmp_path: Path) -> None:
    from shiftbed.models._torchvision import import_torchvision

    import_torchvision()
    import timm
    import torch

    network = spread(timm.create_model("test_resnet.r160_in1k", pretrained=False, num_classes=5))
    config = timm.data.resolve_data_config(model=network)
    transform = timm.data.create_transform(**config)
    with torch.no_grad():  # an untrained residual network likes one class, whatever it sees
        files = sorted(photos.rglob("*.*"))
        seen = torch.stack([transform(Image.open(file).convert("RGB")) for file in files])
        network.get_classifier().bias -= network(seen).mean(0)
    run = sb.evaluate(
        {"mine": network}, SETTINGS, photos, results=tmp_path, classes=CLASSES, quiet=True
    )
    agrees(run, "mine", photos, torch_loop(network, transform))


def test_onnx(photos: Path, tmp_path: Path) -> None:
    import warnings

    import torch

    network = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 5, stride=4),
        torch.nn.ReLU(),
        torch.nn.AvgPool2d(9),
        torch.nn.Flatten(),
        torch.nn.Linear(128, 5),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            spread(network),
            (torch.zeros(1, 3, 160, 160),),
            str(tmp_path / "mine.onnx"),
            input_names=["pictures"],
            dynamic_axes={"pictures": {0: "n"}},
            dynamo=False,
        )
    run = sb.evaluate(
        f"onnx:{tmp_path}/mine.onnx",
        SETTINGS,
        photos,
        results=tmp_path / "results",
        classes=CLASSES,
        mean="0.5/0.5/0.5",
        std="0.25/0.25/0.25",
        quiet=True,
    )
    import onnxruntime

    session = onnxruntime.InferenceSession(str(tmp_path / "mine.onnx"))

    def shape(picture: Image.Image) -> Picture:
        side = 160 * 256 // 224
        ratio = side / min(picture.size)
        size = [
            side if length == min(picture.size) else int(length * ratio) for length in picture.size
        ]
        picture = picture.resize(size, Image.Resampling.BILINEAR)
        left, top = round((size[0] - 160) / 2), round((size[1] - 160) / 2)
        return np.asarray(picture.crop((left, top, left + 160, top + 160)))

    def classify(batch: np.ndarray) -> np.ndarray:
        pixels = (batch.astype(np.float32) / 255 - 0.5) / 0.25
        return session.run(None, {"pictures": pixels.transpose(0, 3, 1, 2)})[0].argmax(1)

    agrees(run, "mine", photos, (shape, classify))


def test_sklearn(photos: Path, tmp_path: Path) -> None:
    from sklearn.linear_model import LogisticRegression
    from skops import io

    def shape(picture: Image.Image) -> Picture:
        return np.asarray(picture.resize((32, 32), Image.Resampling.BILINEAR))

    files = sorted(photos.rglob("*.*"))
    rows = np.stack([shape(Image.open(file).convert("RGB")).ravel() / 255 for file in files])
    names = [file.parent.name for file in files]
    estimator = LogisticRegression(max_iter=200).fit(rows[::2], names[::2])
    io.dump(estimator, tmp_path / "mine.skops")
    run = sb.evaluate(
        f"sklearn:{tmp_path}/mine.skops", SETTINGS, photos, results=tmp_path / "results", quiet=True
    )

    def classify(batch: np.ndarray) -> np.ndarray:
        answers = estimator.predict(batch.reshape(len(batch), -1) / 255)
        return np.array([CLASSES.index(name) for name in answers])

    agrees(run, "mine", photos, (shape, classify))


@pytest.mark.parametrize("backend", ["onnxruntime", "openvino"])
def test_a_backend_gives_the_same_classes(photos: Path, tmp_path: Path, backend: str) -> None:
    pytest.importorskip(backend)
    from shiftbed.models._torchvision import import_torchvision

    network = spread(import_torchvision().models.squeezenet1_1(num_classes=5))
    options = {"size": 96, "classes": CLASSES, "quiet": True}
    runs = [
        sb.evaluate(
            {"mine": network}, SETTINGS, photos, results=tmp_path / name, backend=name, **options
        )
        for name in ("torch", backend)
    ]
    for setting in ("photos", "photos+contrast.3"):
        one, two = (run.predictions("mine", setting) for run in runs)
        assert one["class1"] == two["class1"]
        np.testing.assert_allclose(one["confidence"], two["confidence"], rtol=1e-3)
    with pytest.raises(sb.InputError, match="differs in the model's weights, precision or backend"):
        sb.evaluate(
            {"mine": network},
            SETTINGS,
            photos,
            results=tmp_path / "torch",
            backend=backend,
            **options,
        )


def test_openvino_computes_in_float32_whatever_the_cpu_can() -> None:
    pytest.importorskip("openvino")
    from shiftbed.models import load
    from shiftbed.models._torchvision import import_torchvision
    from shiftbed.run import on_backend

    network = spread(import_torchvision().models.squeezenet1_1(num_classes=5))
    model = load(network, size=64)
    batch = np.random.default_rng(0).integers(0, 256, (32, 64, 64, 3), np.uint8)
    expected = model.logits(batch)
    one = on_backend(model, "openvino", 1)
    # bfloat16 keeps 8 bits: it would be off by thousandths of the largest.
    assert np.abs(one.logits(batch) - expected).max() < 1e-5 * np.abs(expected).max()
    # Nor does the size of a batch, an earlier answer or the number of threads matter.
    first = one.logits(batch)
    np.testing.assert_array_equal(one.logits(batch[:5]), first[:5])
    np.testing.assert_array_equal(one.logits(batch), first)
    np.testing.assert_array_equal(on_backend(model, "openvino", 2).logits(batch), first)


@pytest.mark.parametrize(
    ("backend", "absent", "extra"),
    [
        ("openvino", "openvino", "openvino"),
        ("openvino", "onnx", "openvino"),
        ("onnxruntime", "onnxruntime", "onnx"),
        ("onnxruntime", "onnx", "onnx"),
    ],
)
def test_a_backend_that_is_not_installed_says_how_to_get_it(
    backend: str, absent: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    import torch

    from shiftbed.models import load
    from shiftbed.run import on_backend

    model = load(torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(12, 2)), size=2)
    monkeypatch.setitem(sys.modules, absent, None)
    with pytest.raises(sb.InputError, match=rf"shiftbed\[{extra}\]"):
        on_backend(model, backend)
