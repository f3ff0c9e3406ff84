"""The published sets that a person or `shiftbed fetch` puts on the machine, one entry each.

An entry says what the set's card says, in which layout it is read, what was published of its
size, and where it is had. Each lies in the sets folder, under its own name or its family's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from shiftbed import published
from shiftbed.assets import Package, fetch_members
from shiftbed.corruptions import corruption_names
from shiftbed.data import layouts
from shiftbed.data.card import Card, card_of
from shiftbed.data.catalogue import Archive, Placed, find_set, placed_set, sets_dir
from shiftbed.data.fetched import place_cifar10
from shiftbed.data.imagenet import imagenet_classes
from shiftbed.data.sets import ImageSet, Picture
from shiftbed.data.spaces import match_classes
from shiftbed.data.subset import changed, grouped, of_classes
from shiftbed.data.subtypes import held_out

__all__: list[str] = []

_THOUSAND = imagenet_classes()
_A, _O, _R = (published.class_list(f"imagenet-{letter}") for letter in "aor")
_TESTBED = "Taori et al., Measuring Robustness to Natural Distribution Shifts, NeurIPS 2020"
_RESEARCH = "research and education only, as ImageNet"
_HENDRYCKS = "https://people.eecs.berkeley.edu/~hendrycks"
_ZENODO = "https://zenodo.org/records"

_IMAGENET = Card(
    "imagenet-val",
    "ImageNet's validation set",
    licence=_RESEARCH,
    citation="Russakovsky et al., ImageNet Large Scale Visual Recognition Challenge, IJCV 2015",
)
placed_set(
    _IMAGENET,
    Placed(
        layouts.ilsvrc,
        pictures=50_000,
        by_hand="register at image-net.org and download ILSVRC2012_img_val.tar and "
        "ILSVRC2012_devkit_t12.tar.gz (unpacked); or put there a folder per WordNet id",
    ),
    suites=("natural",),
)


def _view(
    card: Card, make: Callable[[ImageSet, Card], ImageSet], base: str = _IMAGENET.name
) -> None:
    """Register a set that is made from another one's pictures."""
    placed_set(card, Placed(lambda root, name: make(find_set(base), card), base=base))


def _part(label: str, classes: tuple[str, ...], about: str) -> None:
    card = replace(_IMAGENET, name=f"imagenet-val.{label}", about=about, clean=None)
    _view(card, lambda whole, card: of_classes(whole, classes, card.name, card))


_part("imagenet-a-classes", _A, "the validation set of ImageNet-A's 200 classes, 200-way")
_part("imagenet-o-classes", _O, "the validation set of ImageNet-O's 200 classes, 200-way")
_part("imagenet-r-classes", _R, "the validation set of ImageNet-R's 200 classes, 200-way")
_part(
    "class-1-of-8",
    published.class_list("imagenet-1-of-8"),
    "the validation set of the testbed's 125 sampled classes, 125-way",
)


def _grey(picture: Picture) -> Picture:
    """Return the luma of a picture in three equal channels."""
    from PIL import Image

    return np.asarray(Image.fromarray(picture).convert("L").convert("RGB"))


_view(
    replace(
        _IMAGENET,
        name="imagenet-val.greyscale",
        about="the validation set without its colours",
        clean="imagenet-val",
        citation=_TESTBED,
    ),
    lambda whole, card: changed(whole, "greyscale", _grey, card.name, card),
)

_TIMM = Package(
    "pip", "timm==1.0.31", "5bd50f7d0fe6d09bf9285ac2523234a1b7e6bf075c0be3e7aed09139fcb617c7"
)


def _real(whole: ImageSet, card: Card) -> ImageSet:
    file = "imagenet_real_labels.json"
    folder = fetch_members(_TIMM, {f"timm/data/_info/{file}": file}, sets_dir() / "imagenet-real")
    return layouts.with_real_labels(whole, folder / file, card.name)


_view(
    replace(
        _IMAGENET,
        name="imagenet-val.real",
        about="the validation set with ReaL's labels: any of a picture's is right",
        clean="imagenet-val",
        citation="Beyer et al., Are we done with ImageNet?, 2020",
    ),
    _real,
)


def _subtypes(whole: ImageSet, card: Card, *, count: int, unseen: bool) -> ImageSet:
    broad = published.superclasses("cifar-100")
    out = held_out(broad, count)
    groups = {one: [x for x in some if (x in out) == unseen] for one, some in broad.items()}
    return grouped(whole, groups, card.name, card)


# Pictures of ImageNet's classes

for _name, _short, _tar in (
    ("matched-frequency", "matched-frequency", "imagenetv2-matched-frequency"),
    ("threshold-0.7", "threshold0.7", "imagenetv2-threshold0.7"),
    ("top-images", "top-images", "imagenetv2-top-images"),
):
    placed_set(
        Card(
            f"imagenet-v2-{_name}",
            "new pictures, collected as the validation set was",
            clean="imagenet-val",
            licence="MIT; the pictures are their photographers'",
            citation="Recht et al., Do ImageNet Classifiers Generalize to ImageNet?, ICML 2019",
        ),
        Placed(
            layouts.by_number(_THOUSAND, f"{_tar}-format-val", f"imagenetv2-{_short}-format-val"),
            pictures=10_000,
            archives=(
                Archive(
                    f"https://huggingface.co/datasets/vaishaal/ImageNetV2/resolve/main/{_tar}.tar.gz",
                    None,
                    1.3,
                ),
            ),
        ),
        suites=("natural",),
    )

_NATURAL = "Hendrycks et al., Natural Adversarial Examples, CVPR 2021"
_FACES = "Hendrycks et al., The Many Faces of Robustness, ICCV 2021"

placed_set(
    Card(
        "imagenet-a",
        "photographs that ResNet-50 fails on",
        clean="imagenet-val.imagenet-a-classes",
        licence="MIT; the pictures are their photographers'",
        citation=_NATURAL,
    ),
    Placed(
        layouts.by_class(_A, "imagenet-a"),
        pictures=7_500,
        archives=(
            Archive(f"{_HENDRYCKS}/imagenet-a.tar", "md5:c3e55429088dc681f30d81f4726b6595", 0.7),
        ),
    ),
    suites=("natural",),
)
placed_set(
    Card(
        "imagenet-o",
        "photographs of no ImageNet class, taken for one with confidence",
        score="aupr",
        usual="imagenet-val.imagenet-o-classes",
        licence="MIT; the pictures are their photographers'",
        citation=_NATURAL,
    ),
    Placed(
        layouts.unlabelled("imagenet-o"),
        pictures=2_000,
        archives=(
            Archive(f"{_HENDRYCKS}/imagenet-o.tar", "md5:86bd7a50c1c4074fb18fc5f219d6d50b", 0.2),
        ),
    ),
)
placed_set(
    Card(
        "imagenet-r",
        "renditions: art, cartoons, embroidery, toys, ...",
        clean="imagenet-val.imagenet-r-classes",
        licence="MIT; the pictures are their makers'",
        citation=_FACES,
    ),
    Placed(
        layouts.by_class(_R, "imagenet-r"),
        pictures=30_000,
        archives=(
            Archive(f"{_HENDRYCKS}/imagenet-r.tar", "md5:a61312130a589d0ca1a8fca1f2bd3337", 2.2),
        ),
    ),
    suites=("natural",),
)
placed_set(
    Card(
        "imagenet-sketch",
        "black and white sketches of ImageNet's classes",
        clean="imagenet-val",
        licence="MIT; the pictures are their makers'",
        citation="Wang et al., Learning Robust Global Representations, NeurIPS 2019",
    ),
    Placed(
        layouts.by_class(_THOUSAND, "sketch", "ImageNet-Sketch/sketch", "ImageNet-Sketch"),
        pictures=50_889,
        by_hand="download ImageNet-Sketch.zip, linked at github.com/HaohanWang/ImageNet-Sketch, "
        "and unpack it (sketch/n01440764/...)",
    ),
    suites=("natural",),
)
placed_set(
    Card(
        "stylized-imagenet",
        "the validation set in the styles of paintings",
        clean="imagenet-val",
        licence=_RESEARCH,
        citation="Geirhos et al., ImageNet-trained CNNs are biased towards texture, ICLR 2019",
    ),
    Placed(
        layouts.by_class(_THOUSAND, "val"),
        pictures=50_000,
        by_hand="make its val folder with the authors' code, github.com/rgeirhos/Stylized-ImageNet",
    ),
)


def _blurry_clean(whole: ImageSet, card: Card) -> ImageSet:
    blurry = find_set("real-blurry-images")
    space = match_classes(blurry.classes, _THOUSAND, 1000, images=blurry.name)
    members = {
        one: [_THOUSAND[output] for output in outputs]
        for one, outputs in zip(blurry.classes, space.members, strict=True)
    }
    return grouped(whole, members, card.name, replace(card, members=members))


placed_set(
    Card(
        "real-blurry-images",
        "blurred photographs from Flickr, of 100 ImageNet classes",
        clean="imagenet-val.real-blurry-classes",
        licence="not said",
        citation=_FACES,
    ),
    Placed(
        layouts.as_named("blurry_images"),
        pictures=1_000,
        archives=(Archive(f"{_HENDRYCKS}/blurry_images.tar", None, 0.2),),
    ),
)
_view(
    replace(
        _IMAGENET,
        name="imagenet-val.real-blurry-classes",
        about="the validation set of the 100 classes of Real Blurry Images",
    ),
    _blurry_clean,
)

# ObjectNet and the frame sets bring their own class maps


def _ids_of(name: str) -> tuple[str, ...]:
    members = card_of(find_set(name)).members or {}
    return tuple(dict.fromkeys(str(one) for some in members.values() for one in some))


placed_set(
    Card(
        "objectnet",
        "objects in odd places and poses: the 113 classes that ImageNet has",
        clean="imagenet-val.objectnet-classes",
        licence="CC BY 4.0, for tests alone: nobody may train on it",
        citation="Barbu et al., ObjectNet, NeurIPS 2019",
    ),
    Placed(
        layouts.objectnet,
        pictures=18_574,
        by_hand="download objectnet-1.0.zip from objectnet.dev, agree to its licence, and unpack "
        "it with the password given there (images/ and mappings/)",
    ),
    suites=("natural",),
)
_view(
    replace(
        _IMAGENET,
        name="imagenet-val.objectnet-classes",
        about="the validation set of the ImageNet classes that ObjectNet has, each by itself",
    ),
    lambda whole, card: of_classes(whole, _ids_of("objectnet"), card.name, card),
)

for _name, _layout, _people, _where in (
    ("imagenet-vid-robust", layouts.vid_robust, "1,109 anchors", "imagenet-vid-robust"),
    ("ytbb-robust", layouts.ytbb_robust, "2,530 anchors", "ytbb-robust"),
):
    _video = Card(
        f"{_name}.pm10",
        f"video frames that people find alike, up to 10 from an anchor ({_people})",
        score="pm10",
        clean=f"{_name}.anchors",
        licence=_RESEARCH,
        citation="Shankar et al., Do Image Classifiers Generalize Across Time?, ICCV 2021",
    )
    _hand = (
        "download imagenet_vid_ytbb_robust.tar.gz, linked at "
        f"github.com/modestyachts/imagenet-testbed, and unpack its {_where} with its metadata"
    )
    placed_set(_video, Placed(_layout, home=_name, by_hand=_hand), suites=("natural",))
    placed_set(
        replace(
            _video,
            name=f"{_name}.anchors",
            about="its anchors alone (pm-0)",
            score=None,
            clean=f"imagenet-val.{_name}-classes",
        ),
        Placed(layouts.anchors(_layout), home=_name, by_hand=_hand),
        suites=("natural",),
    )

    def _grouped(whole: ImageSet, card: Card, *, video: str) -> ImageSet:
        members = card_of(find_set(video)).members or {}
        ids = {group: [str(one) for one in some] for group, some in members.items()}
        return grouped(whole, ids, card.name, replace(card, members=members))

    _view(
        replace(
            _IMAGENET,
            name=f"imagenet-val.{_name}-classes",
            about=f"the validation set by the superclasses of {_name}",
        ),
        partial(_grouped, video=f"{_name}.anchors"),
    )

# Stored corruptions

_C = "Hendrycks and Dietterich, Benchmarking Neural Network Robustness, ICLR 2019"
_TARS = {
    "noise": "md5:e80562d7f6c3f8834afb1ecf27252745",
    "blur": "md5:2d8e81fdd8e07fef67b9334fa635e45c",
    "weather": "md5:33ffea4db4d93fe4a428c40a6ce0c25d",
    "digital": "md5:89157860d7b10d5797849337ca2e5c03",
    "extra": "md5:d492dfba5fc162d8ec2c3cd8ee672984",
}
_GIGABYTES = {"noise": 22.6, "blur": 7.1, "weather": 12.8, "digital": 7.8, "extra": 15.8}
_SEVERAL = [
    (name, severity)
    for name in corruption_names("imagenet-c", extra=True)
    for severity in range(1, 6)
]
_CIFAR = {
    "cifar-10": (
        ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"],
        f"{_ZENODO}/2535967/files/CIFAR-10-C.tar",
        "md5:56bf5dcef84df0e2308c6dcbcbbd8499",
    ),
    "cifar-100": (
        list(published.class_list("cifar-100")),
        f"{_ZENODO}/3555552/files/CIFAR-100-C.tar",
        "md5:11f0ed0f1191edbf9fa23466ae6021d3",
    ),
}

for _corruption, _severity in _SEVERAL:
    _step = f"{_corruption}.{_severity}"
    placed_set(
        Card(
            f"imagenet-c.{_step}",
            "ImageNet-C as published, in JPEG files",
            clean="imagenet-val",
            licence="CC BY 4.0; the pictures as ImageNet",
            citation=_C,
        ),
        Placed(
            layouts.by_class(
                _THOUSAND,
                f"{_corruption}/{_severity}",
                *(f"{part}/{_corruption}/{_severity}" for part in _TARS),
            ),
            pictures=50_000,
            home="imagenet-c",
            archives=tuple(
                Archive(f"{_ZENODO}/2235448/files/{part}.tar", md5, _GIGABYTES[part])
                for part, md5 in _TARS.items()
            ),
        ),
        family="imagenet-c",
        suites=("imagenet-c-stored",),
    )
    placed_set(
        Card(
            f"tiny-imagenet-c.{_step}",
            "Tiny ImageNet-C as published, in JPEG files of 64 px",
            clean="tiny-imagenet-val",
            variant="tiny-imagenet-c",
            licence="CC BY 4.0; the pictures as ImageNet",
            citation=_C,
        ),
        Placed(
            layouts.as_named(
                f"{_corruption}/{_severity}", f"Tiny-ImageNet-C/{_corruption}/{_severity}"
            ),
            pictures=10_000,
            home="tiny-imagenet-c",
            archives=(
                Archive(
                    f"{_ZENODO}/2536630/files/Tiny-ImageNet-C.tar",
                    "md5:f9c9a9dbdc11469f0b850190f7ad8be1",
                    1.8,
                ),
            ),
        ),
        family="tiny-imagenet-c",
        suites=("tiny-imagenet-c-stored",),
    )
    for _cifar, (_classes, _url, _md5) in _CIFAR.items():
        placed_set(
            Card(
                f"{_cifar}-c.{_step}",
                f"{_cifar.upper()}-C as published, in arrays",
                clean=f"{_cifar.replace('-', '')}-test",
                variant="cifar-c",
                licence="CC BY 4.0",
                citation=_C,
            ),
            Placed(
                layouts.cifar_c(_corruption, _severity, _classes, f"{_cifar.upper()}-C"),
                pictures=10_000,
                home=f"{_cifar}-c",
                archives=(Archive(_url, _md5, 2.9),),
            ),
            family=f"{_cifar}-c",
            suites=(f"{_cifar}-c-stored",),
        )

for _corruption in ("identity", *corruption_names("mnist-c")):
    placed_set(
        Card(
            f"mnist-c.{_corruption}",
            "MNIST-C as published, in arrays",
            clean="mnist-test",
            variant="mnist-c",
            licence="CC BY 4.0",
            citation="Mu and Gilmer, MNIST-C, 2019",
        ),
        Placed(
            layouts.mnist_c(_corruption, "mnist_c"),
            pictures=10_000,
            home="mnist-c",
            archives=(
                Archive(
                    f"{_ZENODO}/3239543/files/mnist_c.zip",
                    "md5:4b34b33045869ee6d424616cd3a65da3",
                    0.3,
                ),
            ),
        ),
        family="mnist-c",
        suites=("mnist-c-stored",),
    )

placed_set(
    Card(
        "tiny-imagenet-val",
        "Tiny ImageNet's validation set, 64 px",
        variant="tiny-imagenet-c",
        licence=_RESEARCH,
        citation="Stanford CS231n, Tiny ImageNet",
    ),
    Placed(
        layouts.tiny_val,
        pictures=10_000,
        archives=(
            Archive(
                "http://cs231n.stanford.edu/tiny-imagenet-200.zip",
                "md5:90528d7ca1a48142e341f4ef8d21d0de",
                0.25,
            ),
        ),
    ),
    suites=("tiny-imagenet-c-stored",),
)

_TORONTO = "https://www.cs.toronto.edu/~kriz"
_KRIZHEVSKY = "Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009"
for _name, _file, _labels, _words, _archive in (
    (
        "cifar10-test",
        "test_batch.bin",
        1,
        "batches.meta.txt",
        Archive(f"{_TORONTO}/cifar-10-binary.tar.gz", "md5:c32a1d4ab5d03f1284b67883e8d87530", 0.17),
    ),
    (
        "cifar100-test",
        "test.bin",
        2,
        "fine_label_names.txt",
        Archive(
            f"{_TORONTO}/cifar-100-binary.tar.gz", "md5:03b5dce01913d631647c71ecec9e9cb8", 0.17
        ),
    ),
):
    placed_set(
        Card(
            _name,
            "10,000 photographs of 32 px",
            variant="cifar-c",
            licence="not said",
            citation=_KRIZHEVSKY,
        ),
        Placed(
            layouts.cifar_batch(_file, _labels, _words, "cifar-10-batches-bin", "cifar-100-binary"),
            pictures=10_000,
            archives=(_archive,),
            otherwise=place_cifar10 if _name == "cifar10-test" else None,
        ),
        suites=(f"cifar-{_name.removeprefix('cifar').removesuffix('-test')}-c-stored",),
    )

for _k in range(1, 5):
    for _side in ("seen", "unseen"):
        _view(
            Card(
                f"cifar100-test.{_side}-{_k}",
                f"CIFAR-100's 20 superclasses, the {_side} subtypes where {_k} of 5 are held out",
                clean=f"cifar100-test.seen-{_k}" if _side == "unseen" else None,
                variant="cifar-c",
                licence="not said",
                citation=f"{_KRIZHEVSKY}; the protocol: {_C.replace('ICLR 2019', '2018')}, App. E",
            ),
            partial(_subtypes, count=_k, unseen=_side == "unseen"),
            base="cifar100-test",
        )

# DeepFashion Remixed

for _split, _said in {
    "train": "to train on: medium scale and occlusion, side or back view, no zoom",
    "iid": "as in training",
    "occlusion-1": "slight occlusion",
    "occlusion-3": "heavy occlusion",
    "scale-1": "small scale",
    "scale-3": "large scale",
    "viewpoint-1": "not worn",
    "viewpoint-2": "frontal view",
    "zoom_in-2": "medium zoom",
    "zoom_in-3": "large zoom",
}.items():
    placed_set(
        Card(
            f"deepfashion-remixed.{_split}",
            f"garments of 13 kinds, several to a picture: {_said}",
            score="map",
            clean=None if _split in ("train", "iid") else "deepfashion-remixed.iid",
            licence="DeepFashion2's: research without commerce, by agreement",
            citation=_FACES,
        ),
        Placed(
            layouts.deepfashion(_split),
            home="deepfashion2",
            by_hand="ask for DeepFashion2 at github.com/switchablenorms/DeepFashion2, and unpack "
            "train and validation there with the password that you are given",
        ),
        suites=() if _split == "train" else ("deepfashion-remixed",),
    )

# StreetView StoreFronts, which was not published: anyone's photographs of the same kind

for _split, _said in {
    "train": "to train on: North America, 2019, new cameras",
    "iid": "as in training; the other splits differ from it in one attribute",
}.items():
    placed_set(
        Card(
            f"streetview-storefronts.{_split}",
            f"businesses by their fronts, 20 kinds: {_said}",
            clean=None,
            licence="not public",
            citation=_FACES,
        ),
        Placed(
            layouts.as_named(),
            by_hand="nobody but its makers has its pictures; of a table of yours with the columns "
            "picture, label, country, year and camera, make its splits with `shiftbed data remix "
            "TABLE --like streetview-storefronts --name streetview-storefronts`",
        ),
    )
