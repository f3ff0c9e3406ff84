"""The calls that users make, the mistakes they make in them, and the sentences they get."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image

import shiftbed
from shiftbed.corruptions import (
    VARIANTS,
    CorruptedDataset,
    Corruption,
    corrupt,
    corruption_names,
    corruptions,
    severities,
    standard_severity,
    version,
)
from shiftbed.errors import InputError

Picture = npt.NDArray[np.uint8]

PICTURE: Picture = np.random.default_rng(0).integers(0, 256, (20, 24, 3), np.uint8)
DIGIT: Picture = PICTURE[..., 0].copy()

# ---------------------------------------------------------------- what there is


def test_the_lists_are_those_of_the_papers() -> None:
    for variant in VARIANTS:
        main, extra = (15, 16) if variant == "mnist-c" else (15, 4)
        names = corruption_names(variant, extra=True)
        assert len(corruption_names(variant)) == main
        assert len(set(names)) == len(names) == main + extra
        assert names[:main] == corruption_names(variant)
        found = [spec.name for spec in corruptions(variant)]
        assert found[: main + extra] == list(names)
        assert "greyscale" in found[main + extra :]


def test_every_corruption_of_the_colour_benchmarks_has_five_severities_and_no_standard_one() -> (
    None
):
    for variant in set(VARIANTS) - {"mnist-c"}:
        for name in corruption_names(variant, extra=True):
            assert severities(name, variant) == (1, 2, 3, 4, 5)
            assert standard_severity(name, variant) is None


#: The defaults of the functions in the authors' corruptions.py; None where it has no severity.
MNIST_STANDARD = {
    "shot_noise": 5,
    "impulse_noise": 4,
    "glass_blur": 1,
    "motion_blur": 1,
    "shear": 2,
    "scale": 3,
    "rotate": 2,
    "brightness": 5,
    "translate": 3,
    "stripe": None,
    "fog": 5,
    "spatter": 4,
    "dotted_line": None,
    "zigzag": None,
    "canny_edges": None,
    "gaussian_noise": 5,
    "speckle_noise": 5,
    "pessimal_noise": 1,
    "gaussian_blur": 2,
    "defocus_blur": 1,
    "zoom_blur": 5,
    "frost": 5,
    "snow": 5,
    "contrast": 4,
    "saturate": 5,
    "jpeg_compression": 5,
    "pixelate": 3,
    "elastic_transform": 1,
    "quantize": 5,
    "line": None,
    "inverse": None,
}


def test_the_standard_severities_of_mnist_c() -> None:
    names = corruption_names("mnist-c", extra=True)
    assert {name: standard_severity(name, "mnist-c") for name in names} == MNIST_STANDARD
    for name, standard in MNIST_STANDARD.items():
        assert bool(severities(name, "mnist-c")) == (standard is not None)
        if standard is not None and name != "pessimal_noise":
            assert severities(name, "mnist-c") == (1, 2, 3, 4, 5)


#: Read in make_imagenet_c_inception.py, of which there are no reference outputs.
AT_299 = {
    "gaussian_noise": (0.09, 0.13, 0.19, 0.27, 0.40),
    "shot_noise": (50, 20, 10, 5, 3),
    "impulse_noise": (0.04, 0.07, 0.10, 0.18, 0.28),
    "speckle_noise": (0.16, 0.21, 0.36, 0.46, 0.61),
    "gaussian_blur": (1.5, 2.5, 3.5, 4.5, 6.5),
    "glass_blur": ((0.8, 1, 3), (1, 3, 1), (1.1, 2, 4), (1.2, 4, 2), (1.6, 5, 2)),
    "defocus_blur": ((4, 0.1), (5, 0.5), (7, 0.5), (10, 0.5), (12, 0.5)),
    "motion_blur": ((12, 4), (17, 6), (17, 9), (17, 13), (22, 16)),
    "fog": ((1.5, 2, 512), (2, 2, 512), (2.5, 1.8, 512), (2.5, 1.6, 512), (3, 1.5, 512)),
    "jpeg_compression": (23, 16, 13, 8, 5),
    "pixelate": (0.5, 0.4, 0.3, 0.25, 0.2),
}


@pytest.mark.parametrize("name", AT_299)
def test_the_parameters_at_299_pixels(name: str) -> None:
    spec = next(spec for spec in corruptions("imagenet-299") if spec.name == name)
    rows = [row if isinstance(row, tuple) else (row,) for row in AT_299[name]]
    assert [spec.arguments(severity) for severity in spec.severities] == rows


def test_what_299_pixels_share_with_224() -> None:
    at_224, at_299 = ({s.name: s.levels for s in corruptions(v)} for v in list(VARIANTS)[:2])
    shared = {name for name in at_224 if at_224[name] == at_299[name]}
    same = {"zoom_blur", "snow", "frost", "brightness", "contrast", "saturate", "greyscale"}
    assert shared == same


def test_a_version_names_its_corruption() -> None:
    words = [version(s.name, variant) for variant in VARIANTS for s in corruptions(variant)]
    assert all(word.strip() for word in words)
    assert len(set(words)) == len({spec.name for v in VARIANTS for spec in corruptions(v)})


# ---------------------------------------------------------------- mistakes

#: With arguments of types that it does not take.
call: Any = corrupt

MISTAKES: list[tuple[str, Callable[[], object], str]] = [
    ("floats", lambda: call(PICTURE / 255, "fog", 3), "float64 was given; scale it to 0..255"),
    ("16 bits", lambda: call(PICTURE.astype("u2"), "fog", 3), "16-bit pictures are not supp"),
    ("big-endian", lambda: call(PICTURE.astype(">u2"), "fog", 3), "scale them to 8 bits"),
    ("bool", lambda: call(PICTURE > 9, "fog", 3), "bool was given; multiply by 255"),
    ("alpha", lambda: call(np.zeros((9, 9, 4), "u1"), "fog", 3), "alpha is not supported"),
    ("grey alpha", lambda: call(np.zeros((9, 9, 2), "u1"), "fog", 3), "convert the picture"),
    ("CHW", lambda: call(np.zeros((3, 20, 24), "u1"), "fog", 3), "channels come last"),
    ("NCHW", lambda: call(np.zeros((5, 3, 9, 8), "u1"), "fog", 3), "channels come last"),
    ("a line", lambda: call(np.zeros(9, "u1"), "fog", 3), "a picture has shape (H, W)"),
    ("video", lambda: call(np.zeros((2, 2, 9, 9, 3), "u1"), "fog", 3), "(2, 2, 9, 9, 3)"),
    ("empty", lambda: call(np.zeros((0, 5, 3), "u1"), "fog", 3), "(0, 5, 3) has no pixels"),
    ("empty batch", lambda: call(np.zeros((2, 5, 0, 3), "u1"), "fog", 3), "has no pixels"),
    ("a list", lambda: call([[1]], "fog", 3), "but a list was given"),
    ("a path", lambda: call("cat.jpg", "fog", 3), "but a str was given"),
    ("None", lambda: Corruption("fog", 3)(None), "NoneType was given"),
    ("no name", lambda: call(PICTURE, "fgo", 3), "no corruption 'fgo'; did you mean fog?"),
    ("spaces", lambda: call(PICTURE, "gaussian noise", 3), "did you mean gaussian_noise?"),
    ("capitals", lambda: call(PICTURE, "Fog", 3), "did you mean fog?"),
    ("no such word", lambda: call(PICTURE, "qqq", 3), "choose one of brightness, contrast"),
    ("elsewhere", lambda: call(PICTURE, "zigzag"), "zigzag is not in imagenet-c; choose a va"),
    ("variant", lambda: call(PICTURE, "fog", 3, variant="cifar10-c"), "did you mean cifar-c?"),
    ("0", lambda: call(PICTURE, "fog", 0), "severity 0 of fog does not exist"),
    ("6", lambda: call(PICTURE, "fog", 6), "imagenet-c has 1 to 5"),
    ("-1", lambda: call(PICTURE, "fog", -1), "severity -1 of fog"),
    ("2.5", lambda: call(PICTURE, "fog", 2.5), "severity 2.5 of fog"),
    ("True", lambda: call(PICTURE, "fog", True), "severity True of fog does not exist"),
    ("'3'", lambda: call(PICTURE, "fog", "3"), "severity '3' of fog"),
    ("no severity", lambda: call(PICTURE, "fog"), "fog needs a severity from 1 to 5"),
    ("too many", lambda: call(DIGIT, "line", 1, variant="mnist-c"), "line has no severities"),
    ("option", lambda: call(PICTURE, "fog", 3, thick=1), "fog has no option 'thick'; it takes"),
    ("near option", lambda: call(PICTURE, "frost", 3, texture="x"), "it takes textures"),
    ("seed", lambda: call(PICTURE, "fog", 3, seed="x"), "a seed is a whole number, but 'x'"),
    ("generator", lambda: call(PICTURE, "fog", 3, rng=5), "rng is a numpy.random.RandomState"),
    ("module", lambda: call(PICTURE, "shot_noise", 3, rng=np.random), "rng is a numpy.random."),
    ("keys for one", lambda: call(PICTURE, "fog", 3, key=["a"]), "one picture has one key"),
    ("one key", lambda: call(PICTURE[None], "fog", 3, key="a"), "needs a list of 1 keys"),
    ("few keys", lambda: call(PICTURE[None], "fog", 3, key=[]), "needs 1 keys, not 0"),
    ("key 5", lambda: call(PICTURE[None], "fog", 3, key=5), "but 5 was given"),
    ("transform", lambda: Corruption("fog"), "fog needs a severity"),
    ("transform name", lambda: Corruption("frgo", 3), "did you mean"),
    ("transform option", lambda: Corruption("fog", 3, options={"a": 1}), "has no option 'a'"),
    ("transform batch", lambda: Corruption("fog", 3)(PICTURE[None]), "takes one picture"),
    (
        "JPEG side",
        lambda: corrupt(np.zeros((1, 65_501), np.uint8), "jpeg_compression", 1),
        "at most 65,500 pixels a side, but the picture's shape is (1, 65501, 1)",
    ),
    ("transform pair", lambda: Corruption("fog", 3)((PICTURE, 1)), "but tuple was given"),
    ("RGBA", lambda: Corruption("fog", 3)(Image.new("RGBA", (9, 9))), "mode 'RGBA' was given"),
    ("P", lambda: Corruption("fog", 3)(Image.new("P", (9, 9))), "mode 'P' was given"),
    (
        "I;16",
        lambda: Corruption("fog", 3)(Image.new("I;16", (9, 9))),
        "mode 'I;16' was given; more than 8",
    ),
    ("CMYK", lambda: Corruption("fog", 3)(Image.new("CMYK", (9, 9))), ".convert('RGB')"),
]


@pytest.mark.parametrize(
    ("mistake", "sentence"), [row[1:] for row in MISTAKES], ids=[row[0] for row in MISTAKES]
)
def test_a_mistake_is_told_in_a_sentence(mistake: Callable[[], object], sentence: str) -> None:
    with pytest.raises(InputError) as told:
        mistake()
    said = str(told.value)
    assert sentence in said
    assert "\n" not in said
    assert len(said) < 220


def test_frost_without_its_photographs(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"frost needs frost1\.png in .*, but it cannot be read"):
        corrupt(PICTURE, "frost", 1, textures=tmp_path)
    for name in ("frost1.png", "frost2.png", "frost3.png", "frost4.jpg", "frost5.jpg"):
        (tmp_path / name).write_bytes(b"not a picture")
    with pytest.raises(InputError, match=r"frost1\.png is not a picture"):
        corrupt(PICTURE, "frost", 1, textures=tmp_path)


# ---------------------------------------------------------------- pictures of other libraries


@pytest.mark.parametrize("source", [PICTURE, DIGIT])
def test_a_pil_picture_stays_one(source: Picture) -> None:
    given = Image.fromarray(source)
    result = Corruption("gaussian_noise", 3, seed=4)(given)
    assert isinstance(result, Image.Image)
    assert result.mode == given.mode
    np.testing.assert_array_equal(np.asarray(given), source)
    expected = Corruption("gaussian_noise", 3, seed=4)(source)
    np.testing.assert_array_equal(np.asarray(result), expected)


def test_a_tensor_stays_one() -> None:
    torch = pytest.importorskip("torch")
    fog = Corruption("fog", 2, variant="cifar-c")
    for source in (PICTURE, DIGIT[..., None]):
        given = torch.from_numpy(source).permute(2, 0, 1)  # not contiguous: a view
        result = fog(given)
        assert type(result) is torch.Tensor
        assert result.dtype == torch.uint8
        assert result.device == given.device
        assert result.is_contiguous()
        expected = fog(source).reshape(source.shape).transpose(2, 0, 1)
        np.testing.assert_array_equal(result.numpy(), expected)
        np.testing.assert_array_equal(given.permute(1, 2, 0).numpy(), source)
    unfit = [
        (torch.zeros(3, 9, 9), "torch.float32 was given; scale it"),
        (torch.zeros(3, 9, 9, dtype=torch.bfloat16), "torch.bfloat16 was given"),
        (torch.zeros(3, 9, 9, requires_grad=True), "torch.float32 was given"),
        (torch.zeros(9, 9, 3, dtype=torch.uint8), "has shape (1 or 3, H, W), but (9, 9, 3)"),
        (torch.zeros(4, 9, 9, dtype=torch.uint8), "but (4, 9, 9) was given"),
        (torch.zeros(2, 3, 9, 9, dtype=torch.uint8), "but (2, 3, 9, 9) was given"),
        (torch.zeros(9, 9, dtype=torch.uint8), "but (9, 9) was given"),
        (torch.zeros(3, 0, 9, dtype=torch.uint8), "has no pixels"),
    ]
    for tensor, sentence in unfit:
        with pytest.raises(InputError) as told:
            fog(tensor)
        assert sentence in str(told.value)


def torchvision() -> Any:
    """Return torchvision, which may be built for another torch than the one beside it."""
    pytest.importorskip("torch")
    helper = pytest.importorskip("shiftbed.models._torchvision")
    try:
        return helper.import_torchvision()
    except InputError as problem:
        pytest.skip(str(problem))


def test_in_a_torchvision_pipeline_with_a_label() -> None:
    torchvision()
    import torch
    from torchvision import tv_tensors
    from torchvision.transforms import v2

    noise = Corruption("impulse_noise", 4, seed=9)
    given = tv_tensors.Image(torch.from_numpy(PICTURE).permute(2, 0, 1))
    alone = noise(given)
    assert type(alone) is tv_tensors.Image
    np.testing.assert_array_equal(alone.permute(1, 2, 0).numpy(), noise(PICTURE))

    pipeline = v2.Compose([v2.CenterCrop(16), noise, v2.ToDtype(torch.float32, scale=True)])
    picture, label = pipeline(given, 7)
    assert label == 7
    assert type(picture) is tv_tensors.Image
    expected = noise(np.ascontiguousarray(PICTURE[2:18, 4:20])).astype(np.float32) / 255
    np.testing.assert_allclose(picture.permute(1, 2, 0).numpy(), expected, rtol=1e-6)

    of_pil = v2.Compose([noise, v2.PILToTensor()])
    tensor = of_pil(Image.fromarray(PICTURE))
    np.testing.assert_array_equal(tensor.permute(1, 2, 0).numpy(), noise(PICTURE))


def test_a_transform_is_a_value() -> None:
    noise = Corruption("gaussian_noise", 2, "cifar-c", seed=5)
    copy = pickle.loads(pickle.dumps(noise))
    assert copy == noise
    np.testing.assert_array_equal(copy(PICTURE), noise(PICTURE))
    assert noise != Corruption("gaussian_noise", 3, "cifar-c", seed=5)
    with pytest.raises(AttributeError):
        setattr(noise, "severity", 3)  # noqa: B010
    assert not np.array_equal(Corruption("gaussian_noise", 2, "cifar-c")(PICTURE), noise(PICTURE))
    assert not np.array_equal(noise(PICTURE[::-1])[::-1], noise(PICTURE)), "keyed by content"


def test_options_reach_the_corruption(frost_folder: Path) -> None:
    frost = Corruption("frost", 3, options={"textures": frost_folder})
    expected = corrupt(PICTURE, "frost", 3, key="k", textures=str(frost_folder))
    np.testing.assert_array_equal(frost(PICTURE, key="k"), expected)


# ---------------------------------------------------------------- data sets


class Labelled:
    """A map-style data set of tensors, as a user's own would be."""

    def __init__(self, pictures: list[Any]) -> None:
        self.pictures = pictures

    def __len__(self) -> int:
        return len(self.pictures)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        return self.pictures[index], index % 10


def test_a_data_set_is_corrupted_by_place() -> None:
    same = [PICTURE] * 4
    noisy = CorruptedDataset(Labelled(same), Corruption("gaussian_noise", 3, seed=2))
    assert len(noisy) == 4
    for index in range(4):
        picture, label = noisy[index]
        assert label == index
        expected = corrupt(PICTURE, "gaussian_noise", 3, seed=2, key=str(index))
        np.testing.assert_array_equal(picture, expected)
        drawn: Any = np.int64(index)  # as samplers draw it
        np.testing.assert_array_equal(noisy[drawn][0], expected)
    assert len({noisy[index][0].tobytes() for index in range(4)}) == 4
    np.testing.assert_array_equal(noisy[-1][0], noisy[3][0])
    for beyond in (4, -5):
        with pytest.raises(IndexError):
            noisy[beyond]
    assert [label for _, label in noisy] == [0, 1, 2, 3]
    unlabelled = CorruptedDataset(same, Corruption("gaussian_noise", 3, seed=2))
    np.testing.assert_array_equal(unlabelled[1], noisy[1][0])


def test_loaders_with_and_without_workers_give_the_same_pictures() -> None:
    torch = pytest.importorskip("torch")
    from torch.utils.data import DataLoader

    tensors = [torch.from_numpy(PICTURE).permute(2, 0, 1)] * 7
    noisy = CorruptedDataset(Labelled(tensors), Corruption("speckle_noise", 4, seed=1))

    def loaded(**how: Any) -> tuple[Any, Any]:
        batches = list(DataLoader(noisy, multiprocessing_context=None, **how))
        return tuple(torch.cat(parts) for parts in zip(*batches, strict=True))

    pictures, labels = loaded(batch_size=3, num_workers=0)
    assert pictures.shape == (7, 3, 20, 24)
    for how in ({"batch_size": 2, "num_workers": 2}, {"batch_size": 7, "num_workers": 0}):
        others, other_labels = loaded(**how)
        assert torch.equal(others, pictures)
        assert torch.equal(other_labels, labels)
    generator = torch.Generator().manual_seed(3)
    others, order = loaded(batch_size=2, shuffle=True, generator=generator)
    assert order.tolist() != labels.tolist()
    assert torch.equal(others, pictures[order])


# ---------------------------------------------------------------- the package's own names


def test_the_package_offers_the_calls() -> None:
    assert shiftbed.corrupt is corrupt
    assert shiftbed.Corruption is Corruption
    assert shiftbed.CorruptedDataset is CorruptedDataset
    assert shiftbed.InputError is InputError
    assert {"corrupt", "Corruption", "InputError"} <= set(dir(shiftbed))
    assert not hasattr(shiftbed, "corupt")
