from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from shiftbed.models import Geometry, ten_crops
from shiftbed.models._torchvision import import_torchvision

torchvision = import_torchvision()

PICTURES = {
    shape: np.random.default_rng(0).integers(0, 256, shape, np.uint8)
    for shape in [(90, 60, 3), (60, 90, 3), (64, 64, 3)]
}


@pytest.mark.parametrize("shape", PICTURES)
def test_they_are_torchvisions_ten_crops_with_the_models_own_view_first(
    shape: tuple[int, int, int],
) -> None:
    geometry = Geometry((56, 56), (64, 64))
    resized = torchvision.transforms.Resize(64)(Image.fromarray(PICTURES[shape]))
    theirs = [np.asarray(crop) for crop in torchvision.transforms.TenCrop(56)(resized)]
    ours = ten_crops(geometry, PICTURES[shape])
    # It mirrors the picture before it crops, so its corners come in another order.
    theirs = [theirs[place] for place in (4, 0, 1, 2, 3, 9, 6, 5, 8, 7)]
    np.testing.assert_array_equal(ours, np.stack(theirs))


@pytest.mark.parametrize(
    "geometry",
    [
        Geometry(),
        Geometry((56, 56)),
        Geometry((56, 56), (56, 56), fit="squash"),
        Geometry((64, 64), (64, 64), fit="contain", fill=(9, 9, 9)),
        Geometry((99, 99), fill=(1, 2, 3)),
        Geometry((28, 28), (32, 32), channels=1),
        Geometry((48, 56), (56, 56), fit="squash", antialias=False),
    ],
    ids=str,
)
@pytest.mark.parametrize("shape", PICTURES)
def test_any_geometry_gives_ten_views_of_one_shape(
    geometry: Geometry, shape: tuple[int, int, int]
) -> None:
    crops = ten_crops(geometry, PICTURES[shape])
    own = geometry.apply(PICTURES[shape])
    assert crops.shape == (10, *own.shape)
    np.testing.assert_array_equal(crops[0], own)
    np.testing.assert_array_equal(crops[5:], crops[:5, :, ::-1])
    # Where the picture is padded to a square there is room in one direction alone.
    padded = geometry.fit == "contain" and shape[0] != shape[1]
    assert len({crop.tobytes() for crop in crops}) == (6 if padded else 10)


def test_a_row_of_pixels_takes_little_memory() -> None:
    crops = ten_crops(Geometry((224, 224), (256, 256)), np.zeros((2, 10_000, 3), np.uint8))
    assert crops.shape == (10, 224, 224, 3)
