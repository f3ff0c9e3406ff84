from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from shiftbed import InputError
from shiftbed.models import Geometry, Interpolation, Options
from shiftbed.models._torchvision import import_torchvision
from shiftbed.models.sources.timm import geometry_of as timm_geometry
from shiftbed.models.sources.torchvision import geometry_of as torchvision_geometry

torchvision = import_torchvision()


def seen(tensor: object) -> np.ndarray:
    """A transform's tensor back as the pixels that it was made of."""
    values = np.asarray(tensor).transpose(1, 2, 0)
    return np.rint(values * 255).astype(np.uint8)


@pytest.mark.parametrize(
    "weights",
    [
        "ResNet18_Weights.IMAGENET1K_V1",
        "ResNet50_Weights.IMAGENET1K_V2",
        "Inception_V3_Weights.IMAGENET1K_V1",
        "EfficientNet_B3_Weights.IMAGENET1K_V1",
        "EfficientNet_V2_L_Weights.IMAGENET1K_V1",
        "Swin_T_Weights.IMAGENET1K_V1",
        "ViT_B_16_Weights.IMAGENET1K_SWAG_E2E_V1",
    ],
)
def test_pixels_equal_torchvisions_own_transform(weights: str, pictures: list) -> None:
    preset = torchvision.models.get_weight(weights).transforms()
    preset.mean, preset.std = [0.0] * 3, [1.0] * 3
    ours = torchvision_geometry(preset)
    for picture in pictures:
        theirs = seen(preset(Image.fromarray(picture)))
        assert np.array_equal(ours.apply(picture), theirs), picture.shape


@pytest.mark.parametrize(
    "config",
    [
        {"input_size": (3, 224, 224), "crop_pct": 0.875, "interpolation": "bilinear"},
        {"input_size": (3, 224, 224), "crop_pct": 0.95, "interpolation": "bicubic"},
        {"input_size": (3, 288, 288), "crop_pct": 1.0, "interpolation": "bicubic"},
        {"input_size": (3, 299, 299), "crop_pct": 0.8975, "interpolation": "bicubic"},
        {"input_size": (3, 192, 256), "crop_pct": 0.9, "interpolation": "bilinear"},
        {"input_size": (3, 448, 448), "crop_pct": 1.0, "crop_mode": "squash"},
        {"input_size": (3, 224, 224), "crop_pct": 0.9, "crop_mode": "squash"},
        {"input_size": (3, 224, 224), "crop_pct": 1.0, "crop_mode": "border"},
        {"input_size": (3, 224, 192), "crop_pct": 0.9, "crop_mode": "border"},
    ],
)
def test_pixels_equal_timms_own_transform(config: dict, pictures: list) -> None:
    from timm.data import create_transform

    config = {"interpolation": "bicubic", "crop_mode": "center", "mean": (0.5, 0.4, 0.3), **config}
    theirs = create_transform(**config, std=(1.0, 1.0, 1.0), is_training=False)
    ours = timm_geometry(config)
    for picture in pictures:
        tensor = theirs(Image.fromarray(picture)).numpy() + np.reshape(config["mean"], (3, 1, 1))
        assert np.array_equal(ours.apply(picture), seen(tensor)), picture.shape


def test_every_timm_model_has_a_geometry_that_can_be_applied() -> None:
    import timm
    from timm.data import resolve_data_config

    picture = np.full((40, 60, 3), 128, np.uint8)
    kinds = set()
    for name in timm.list_models(pretrained=True)[::7]:
        geometry = timm_geometry(
            resolve_data_config(pretrained_cfg=timm.get_pretrained_cfg(name).to_dict())
        )
        kinds.add((geometry.fit, geometry.interpolation))
        if geometry.size is not None and max(geometry.size) <= 256:
            assert geometry.apply(picture).shape[:2] == geometry.size
    assert len(kinds) >= 4


@settings(max_examples=60, deadline=None)
@given(
    height=st.integers(1, 90),
    width=st.integers(1, 90),
    size=st.integers(1, 64),
    resize=st.integers(1, 64),
    interpolation=st.sampled_from(["bilinear", "bicubic", "nearest"]),
)
def test_any_size_equals_torchvision(
    height: int, width: int, size: int, resize: int, interpolation: str
) -> None:
    transforms = torchvision.transforms
    theirs = transforms.Compose(
        [
            transforms.Resize(resize, transforms.InterpolationMode(interpolation)),
            transforms.CenterCrop(size),
        ]
    )
    picture = np.random.default_rng(height * 97 + width).integers(0, 256, (height, width, 3))
    picture = picture.astype(np.uint8)
    ours = Geometry((size, size), (resize, resize), "shorter", interpolation)
    assert np.array_equal(ours.apply(picture), np.asarray(theirs(Image.fromarray(picture))))


@pytest.mark.parametrize("interpolation", ["bilinear", "bicubic"])
def test_without_antialiasing_it_is_torchs(interpolation: str, pictures: list) -> None:
    import torch

    geometry = Geometry((224, 224), (224, 224), "squash", interpolation, antialias=False)
    for picture in pictures[:4]:
        tensor = torch.from_numpy(picture).permute(2, 0, 1)[None].float()
        resized = torch.nn.functional.interpolate(
            tensor, (224, 224), mode=interpolation, align_corners=False
        )
        theirs = resized[0].permute(1, 2, 0).clamp(0, 255).numpy()
        ours = geometry.apply(picture)
        assert np.abs(ours - theirs).max() < 0.503, "no more than rounding"


def test_channels() -> None:
    grey = np.arange(16, dtype=np.uint8).reshape(4, 4)
    assert Geometry(channels=3).apply(grey).shape == (4, 4, 3)
    assert np.array_equal(Geometry(channels=1).apply(grey)[..., 0], grey)
    colour = np.random.default_rng(0).integers(0, 256, (4, 4, 3)).astype(np.uint8)
    assert np.array_equal(
        Geometry(channels=1).apply(colour)[..., 0], np.asarray(Image.fromarray(colour).convert("L"))
    )
    assert np.array_equal(Geometry().apply(colour), colour)
    with pytest.raises(InputError, match="4 channels"):
        Geometry(channels=3).apply(np.zeros((4, 4, 4), np.uint8))


def test_geometries_are_shared_when_equal() -> None:
    one = Geometry((224, 224), (256, 256))
    assert one == Geometry((224, 224), (256, 256))
    assert len({one, replace(one), replace(one, fill=(1, 2, 3))}) == 2


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, Geometry((224, 224), (256, 256))),
        ({"size": 112}, Geometry((112, 112), (128, 128))),
        ({"size": (112, 224)}, Geometry((112, 224), (128, 256))),
        ({"crop": 1.0}, Geometry((224, 224), (224, 224))),
        ({"resize": 232}, Geometry((224, 224), (232, 232))),
        ({"resize": (224, 224)}, Geometry((224, 224), (224, 224), "squash")),
        ({"size": 288, "crop": 0.9}, Geometry((288, 288), (320, 320))),
        ({"interpolation": "bicubic"}, Geometry((224, 224), (256, 256), "shorter", "bicubic")),
    ],
)
def test_overrides(options: dict, expected: Geometry) -> None:
    assert Options(**options).geometry(Geometry((224, 224), (256, 256))) == expected


@pytest.mark.parametrize("interpolation", ["bilinear", "bicubic"])
@pytest.mark.parametrize("shape", [(1, 999, 3), (3, 700, 3), (640, 4, 1), (2, 129, 3)])
def test_very_long_pictures_look_as_if_they_were_resized_whole(
    interpolation: Interpolation, shape: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shiftbed.models.geometry._MOST_PIXELS", 2**14)
    picture = np.random.default_rng(0).integers(0, 256, shape, np.uint8)
    geometry = Geometry((28, 28), (32, 32), interpolation=interpolation)
    height, width = (
        (32, int(32 * shape[1] / shape[0]))
        if shape[0] < shape[1]
        else (int(32 * shape[0] / shape[1]), 32)
    )
    how = Image.Resampling[interpolation.upper()]
    whole = Image.fromarray(picture.squeeze(2) if shape[2] == 1 else picture)
    resized = np.asarray(whole.resize((width, height), how)).reshape(height, width, shape[2])
    top, left = round((height - 28) / 2), round((width - 28) / 2)
    expected = resized[top : top + 28, left : left + 28].astype(int)
    # The longer side is rounded to whole pixels, so a long picture is stretched a little less.
    assert np.abs(geometry.apply(picture) - expected).max() <= (40 if shape[0] == 3 else 1)


def test_a_row_of_pixels_takes_little_memory() -> None:
    import tracemalloc

    tracemalloc.start()
    for shape in ((1, 100_000, 3), (100_000, 1, 3)):
        picture = np.full(shape, 7, np.uint8)
        seen = Geometry((224, 224), (256, 256), antialias=False).apply(picture)
        assert seen.shape == (224, 224, 3)
        assert (seen == 7).all()
    assert tracemalloc.get_traced_memory()[1] < 2e8
    tracemalloc.stop()
