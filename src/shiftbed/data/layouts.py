"""The layouts in which the published sets arrive, each read as an image set."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from shiftbed.data.arrays import ArraySet, plain_array
from shiftbed.data.card import Frames
from shiftbed.data.files import FileSet
from shiftbed.data.folder import image_folder
from shiftbed.data.imagenet import imagenet_classes
from shiftbed.data.sets import ImageSet
from shiftbed.data.tars import TarFiles
from shiftbed.errors import InputError

__all__ = [
    "Layout",
    "anchors",
    "as_named",
    "by_class",
    "by_number",
    "cifar_batch",
    "cifar_c",
    "deepfashion",
    "ilsvrc",
    "inside",
    "mnist_c",
    "objectnet",
    "read_json",
    "tiny_val",
    "unlabelled",
    "vid_robust",
    "ytbb_robust",
]

#: From the folder where a set was put, and its name, to the set.
Layout = Callable[[Path, str], ImageSet]

_PICTURES = {".jpg", ".jpeg", ".png"}


def inside(root: Path, *folders: str) -> Path:
    """Return the folder that an archive made inside ``root``, or ``root`` itself.

    >>> inside(Path("no/such"), "imagenet-a")
    PosixPath('no/such')
    """
    return next((root / one for one in folders if (root / one).is_dir()), root)


def by_class(classes: Sequence[str], *folders: str) -> Layout:
    """A folder per WordNet id, of these classes."""

    def read(root: Path, name: str) -> ImageSet:
        return image_folder(inside(root, *folders), name=name, classes=classes)

    return read


def as_named(*folders: str) -> Layout:
    """A folder per class, of whatever classes there are."""

    def read(root: Path, name: str) -> ImageSet:
        return image_folder(inside(root, *folders), name=name)

    return read


def by_number(classes: Sequence[str], *folders: str) -> Layout:
    """A folder per class number: 10 comes after 9, and means the eleventh class."""
    numbers = [str(number) for number in range(len(classes))]

    def read(root: Path, name: str) -> ImageSet:
        images = image_folder(inside(root, *folders), name=name, classes=numbers)
        images.classes = tuple(classes)
        return images

    return read


def unlabelled(*folders: str) -> Layout:
    """Folders of pictures whose names are not their labels."""

    def read(root: Path, name: str) -> ImageSet:
        images = image_folder(inside(root, *folders), name=name)
        images.labels, images.classes = None, ()
        return images

    return read


# ImageNet's validation set


def ilsvrc(root: Path, name: str) -> ImageSet:
    """The validation set: a folder per WordNet id, or flat, or the official tar.

    Flat pictures and the tar take their labels from the devkit: its ground truth is one
    number per picture, counted as in its ``meta.mat``, which is not the order of models.
    """
    tar = root / "ILSVRC2012_img_val.tar"
    if tar.is_file():
        files = TarFiles([tar])
        return _flat(root, files, sorted(files), name)
    root = inside(root, "val")
    flat = sorted(path.name for path in root.glob("ILSVRC2012_val_*.JPEG"))
    if flat:
        return _flat(root, root, flat, name)
    return image_folder(root, name=name, classes=imagenet_classes())


def _flat(root: Path, files: Path | TarFiles, names: Sequence[str], name: str) -> ImageSet:
    truth = _found(root, "ILSVRC2012_validation_ground_truth.txt")
    meta = _found(root, "meta.mat")
    try:
        numbers = [int(line) for line in truth.read_text("ascii").split()]
    except ValueError:
        raise InputError(f"{truth} should hold one whole number a line") from None
    ids = _devkit_ids(meta)
    indices = [_number(one) for one in names]
    if min(indices) < 1 or max(indices) > len(numbers):
        raise InputError(
            f"{truth} has {len(numbers):,} labels, but there is {names[int(np.argmax(indices))]}"
        )
    place = {wnid: index for index, wnid in enumerate(imagenet_classes())}
    labels = [place[ids[numbers[index - 1]]] for index in indices]
    return FileSet(name, files, names, np.array(labels, np.int64), imagenet_classes())


def _number(file: str) -> int:
    found = re.search(r"_val_(\d{8})\.JPEG$", file)
    if found is None:
        raise InputError(f"{file} is not called ILSVRC2012_val_ and eight digits")
    return int(found[1])


def _found(root: Path, file: str) -> Path:
    around = [root, root.parent]
    for base in around:
        found = sorted(base.glob(f"**/{file}")) if base is root else sorted(base.glob(file))
        found += sorted(base.glob(f"ILSVRC2012_devkit_t12/data/{file}"))
        if found:
            return found[0]
    raise InputError(
        f"{root} holds flat pictures, whose labels are in the devkit: put {file}, of "
        "ILSVRC2012_devkit_t12, beside them"
    )


def _devkit_ids(meta: Path) -> dict[int, str]:
    """Return the devkit's class number -> WordNet id, of the 1,000 leaves."""
    from scipy.io import loadmat
    from scipy.io.matlab import MatReadError

    try:
        synsets = loadmat(meta, squeeze_me=True)["synsets"]
        return {int(one["ILSVRC2012_ID"]): str(one["WNID"]) for one in synsets}
    except (MatReadError, KeyError, ValueError, OSError, TypeError) as problem:
        raise InputError(f"{meta} is not the devkit's ({problem})") from None


def with_real_labels(images: ImageSet, table: Path, name: str) -> FileSet:
    """Return the validation set with its ReaL labels: for each picture those that are right."""
    lists = read_json(table)
    if not isinstance(images, FileSet) or not isinstance(lists, list):
        raise InputError(f"{table} should be a list of lists of class numbers, one per picture")
    truth = np.zeros((len(images), len(images.classes)), np.bool_)
    for row, file in enumerate(images.ids):
        number = _number(file)
        if number > len(lists):
            raise InputError(f"{table} has {len(lists):,} entries, and none for {file}")
        truth[row, lists[number - 1]] = True
    return FileSet(name, images.root, images.ids, truth, images.classes)


# ObjectNet


def objectnet(root: Path, name: str) -> ImageSet:
    """The classes that ImageNet has too, with the outputs that mean each; borders cut.

    ``mappings`` gives each folder's label, and for each of the shared labels the names of
    one or several ImageNet classes, by the words of ``imagenet_to_label_2012_v2``, whose line
    ``pytorch_to_imagenet_2012_id.json`` gives for each output.
    """
    from dataclasses import replace

    from shiftbed.data.card import Card

    root = inside(root, "objectnet-1.0", "objectnet-1.0-beta")
    mappings = root / "mappings"
    labels = read_json(mappings / "folder_to_objectnet_label.json")
    shared = read_json(mappings / "objectnet_to_imagenet_1k.json")
    lines = read_json(mappings / "pytorch_to_imagenet_2012_id.json")
    output_of = {int(line): int(output) for output, line in lines.items()}
    try:
        words = (mappings / "imagenet_to_label_2012_v2").read_text("utf-8").splitlines()
        outputs = {word.strip(): output_of[line] for line, word in enumerate(words) if word.strip()}
        members = {
            folder: [imagenet_classes()[outputs[word]] for word in shared[label].split("; ")]
            for folder, label in sorted(labels.items())
            if label in shared
        }
    except (OSError, KeyError) as problem:
        raise InputError(f"the mappings of ObjectNet in {mappings} lack {problem}") from None
    whole = image_folder(root / "images", name=name, classes=sorted(labels))
    kept = list(members)
    mine = np.array([whole.classes[label] in members for label in np.asarray(whole.labels)])
    ids = [file for file, keep in zip(whole.ids, mine, strict=True) if keep]
    found = np.array([kept.index(file.partition("/")[0]) for file in ids], np.int64)
    images = FileSet(name, whole.root, ids, found, kept, border=2)
    images.card = replace(Card(name), members=members)
    return images


# Frame sets


def vid_robust(root: Path, name: str) -> ImageSet:
    """Frames near anchors of ImageNet-Vid: ``metadata`` has the sets and labels, ``misc`` the map.

    Labels are lists of class numbers, of the 30 of ``imagenet_vid_class_index.json``.
    """
    root = inside(root, "imagenet_vid_ytbb_robust/imagenet-vid-robust", "imagenet-vid-robust")
    sets = read_json(root / "metadata" / "pmsets.json")
    labels = read_json(root / "metadata" / "labels.json")
    index = read_json(root / "misc" / "imagenet_vid_class_index.json")
    wnids = read_json(root / "misc" / "rev_wnid_map.json")
    keys = [index[str(number)] for number in range(len(index))]
    members = {words: list(wnids[wnid]) for wnid, words in keys}
    frames = [
        (file, anchor, _frame(file) - _frame(anchor), labels.get(file, labels[anchor]))
        for anchor, near in sets.items()
        for file in (*near, anchor)
    ]
    return _frames(root, name, frames, members)


def _frame(file: str) -> int:
    """Return a frame's number in its film.

    >>> _frame("val/ILSVRC2015_val_00000000/000442.JPEG"), _frame("a_3000/frame-17.jpg")
    (442, 17)
    """
    found = re.search(r"(\d+)\.\w+$", file)
    if found is None:
        raise InputError(f"the frame {file} has no number")
    return int(found[1])


#: What annotators said of a pair of frames that is not alike, or of a bad anchor.
_PROBLEMS = {
    *("dissimilar", "problematic", "incorrect", "dont know", "deformation"),
    *("background-change", "occlusion-increased", "blur-increase", "bad-anchor"),
}


def ytbb_robust(root: Path, name: str) -> ImageSet:
    """Frames near anchors of YouTube-BB, from the annotations that say which are alike.

    An anchor has the label of YouTube-BB and those that annotators added; its neighbours,
    up to 10 frames away, are those marked as similar and without a problem.
    """
    root = inside(root, "imagenet_vid_ytbb_robust/ytbb-robust", "ytbb-robust")
    meta = inside(root, "ytbb-robust_metadata", "metadata")
    index = read_json(meta / "ytbb_class_index.json")
    outputs = read_json(meta / "rev_class_idx_map.json")
    classes = [index[str(number)] for number in range(len(index))]
    members = {
        one: [imagenet_classes()[output] for output in outputs[str(number)]]
        for number, one in enumerate(classes)
        if str(number) in outputs
    }
    first = _first_labels(meta / "ytbb_robustness_test_anchors_full.csv")
    pairs = _annotated(meta / "pmk_labels.json")
    bad = {_short(pair.split(",")[0]) for pair, said in pairs.items() if "bad-anchor" in said}
    alike: dict[str, list[str]] = {}
    for pair, said in pairs.items():
        if "similar" in said and not said & _PROBLEMS:
            anchor, near = map(_short, pair.split(","))
            alike.setdefault(anchor, []).append(near)
    frames = []
    for key, said in _annotated(meta / "anchor_labels.json").items():
        anchor = _short(key)
        if "good" not in said or said & {"bad", "unsure"} or anchor in bad:
            continue
        true = sorted(
            {first[anchor.split("/")[0]], *(classes.index(x) for x in said if x in index.values())}
        )
        at = _frame(anchor)
        close = [file for file in alike.get(anchor, []) if 0 < abs(_frame(file) - at) <= 10]
        frames += [(file, anchor, _frame(file) - at, true) for file in (*sorted(close), anchor)]
    return _frames(inside(root, "ytbb_videos"), name, frames, members, classes)


def _annotated(path: Path) -> dict[str, set[str]]:
    told = read_json(path)
    return {
        row["key"]: {told["labels"][number] for number in row["labels"]}
        for row in told["annotations"]
    }


def _short(path: str) -> str:
    return "/".join(path.split("/")[-2:])


def _first_labels(path: Path) -> dict[str, int]:
    """Return each anchor's label in YouTube-BB, whose 22 and 23 the class index has swapped."""
    swapped = {22: 23, 23: 22}
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return {
                f"{row['ytid']}_{row['time_ms']}": swapped.get(int(row["label"]), int(row["label"]))
                for row in csv.DictReader(file)
            }
    except (OSError, KeyError, ValueError) as problem:
        raise InputError(f"cannot read the anchors in {path}: {problem}") from None


def _frames(
    root: Path,
    name: str,
    frames: Sequence[tuple[str, str, int, Sequence[int]]],
    members: dict[str, list[str]],
    classes: Sequence[str] | None = None,
) -> ImageSet:
    """Return a frame set. A class that no ImageNet output means is left out."""
    from shiftbed.data.card import Card

    classes = list(members) if classes is None else classes
    kept = [number for number, one in enumerate(classes) if one in members]
    truth = np.zeros((len(frames), len(classes)), np.bool_)
    for row, (_, _, _, labels) in enumerate(frames):
        truth[row, list(labels)] = True
    files = [file for file, _, _, _ in frames]
    sets = tuple(anchor for _, anchor, _, _ in frames)
    offsets = np.array([offset for _, _, offset, _ in frames], np.int64)
    twice = len(set(files)) < len(files)
    ids = [f"{file}#{one}" if twice else file for file, one in zip(files, sets, strict=True)]
    images = FileSet(
        name,
        root,
        ids,
        truth[:, kept],
        [classes[number] for number in kept],
        files=files,
        frames=Frames(sets, offsets),
    )
    images.card = Card(name, members=members)
    return images


def anchors(layout: Layout) -> Layout:
    """The anchors of a frame set alone."""

    def read(root: Path, name: str) -> ImageSet:
        from shiftbed.data.subset import Subset

        whole = layout(root, name)
        frames: Frames = vars(whole)["frames"]
        at = np.flatnonzero(frames.offsets == 0)
        return Subset(whole, at, name, vars(whole)["card"])

    return read


# DeepFashion2

_CLOTHES = (
    *("short sleeve top", "long sleeve top", "short sleeve outwear", "long sleeve outwear"),
    *("vest", "sling", "shorts", "trousers", "skirt", "short sleeve dress"),
    *("long sleeve dress", "vest dress", "sling dress"),
)


def deepfashion(split: str) -> Layout:
    """Pictures with a garment that differs from training in one attribute, or in none.

    ``annos`` has a file per picture, with its garments as ``item1``, ``item2``, ... A garment
    with the wanted attributes brings its picture into the split, and is a label there;
    the picture's other garments are not. Training is from ``train``, tests from ``validation``.
    """

    def read(root: Path, name: str) -> ImageSet:
        from shiftbed.data.remix import PRESETS, Row

        base = PRESETS["deepfashion-remixed"]
        part = inside(root, "train" if split == "train" else "validation")
        rows = [
            Row(f"{file.stem}.jpg", str(item["category_id"]), {one: str(item[one]) for one in base})
            for file in sorted((part / "annos").glob("*.json"))
            for key, item in sorted(read_json(file).items())
            if key.startswith("item")
        ]
        if not rows:
            raise InputError(f"{part / 'annos'} holds no annotations of garments")
        wanted = dict(base)
        attribute, dash, value = split.partition("-")
        if dash:
            wanted[attribute] = (value,)
        chosen = [row for row in rows if all(row.attributes[a] in v for a, v in wanted.items())]
        files = list(dict.fromkeys(row.picture for row in chosen))
        truth = np.zeros((len(files), len(_CLOTHES)), np.bool_)
        place = {file: row for row, file in enumerate(files)}
        for row in chosen:
            truth[place[row.picture], int(row.label) - 1] = True
        return FileSet(name, part / "image", files, truth, _CLOTHES)

    return read


# Arrays and small pictures


def cifar_batch(file: str, label_bytes: int, names: str, *folders: str) -> Layout:
    """CIFAR's binary version: for each picture its labels and 3,072 bytes, planes by colour."""

    def read(root: Path, name: str) -> ImageSet:
        root = inside(root, *folders)
        try:
            content = np.fromfile(root / file, np.uint8)
            classes = [one for one in (root / names).read_text("ascii").split() if one]
        except OSError as problem:
            raise InputError(f"cannot read {root / file}: {problem.strerror}") from None
        row = label_bytes + 3072
        if content.size == 0 or content.size % row:
            raise InputError(f"{root / file} is cut short: {content.size:,} bytes")
        rows = content.reshape(-1, row)
        pictures = rows[:, label_bytes:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
        labels = rows[:, label_bytes - 1].astype(np.int64)
        return ArraySet(name, np.ascontiguousarray(pictures), labels, classes)

    return read


def cifar_c(corruption: str, severity: int, classes: Sequence[str], *folders: str) -> Layout:
    """A fifth of ``CORRUPTION.npy``: the whole test set at one severity after the other."""

    def read(root: Path, name: str) -> ImageSet:
        root = inside(root, *folders)
        pictures, labels = plain_array(root / f"{corruption}.npy"), plain_array(root / "labels.npy")
        if len(pictures) % 5 or len(pictures) != len(labels):
            raise InputError(
                f"{root / corruption}.npy has {len(pictures):,} pictures and labels.npy "
                f"{len(labels):,} labels; expected as many, at five severities"
            )
        count = len(pictures) // 5
        part = slice((severity - 1) * count, severity * count)
        return ArraySet(name, pictures[part], labels[part].astype(np.int64), classes)

    return read


def mnist_c(corruption: str, *folders: str) -> Layout:
    """``CORRUPTION/test_images.npy``, (N, 28, 28, 1), and its labels."""

    def read(root: Path, name: str) -> ImageSet:
        folder = inside(root, *folders) / corruption
        pictures, labels = (
            plain_array(folder / "test_images.npy"),
            plain_array(folder / "test_labels.npy"),
        )
        digits = [str(digit) for digit in range(10)]
        return ArraySet(name, pictures, labels.astype(np.int64), digits)

    return read


def tiny_val(root: Path, name: str) -> ImageSet:
    """Tiny ImageNet's validation set: flat, with a table of labels."""
    root = inside(root, "tiny-imagenet-200")
    table = root / "val" / "val_annotations.txt"
    try:
        rows = [line.split("\t")[:2] for line in table.read_text("ascii").splitlines() if line]
        classes = sorted((root / "wnids.txt").read_text("ascii").split())
        labels = np.array([classes.index(wnid) for _, wnid in rows], np.int64)
    except (OSError, ValueError) as problem:
        raise InputError(f"cannot read the labels of Tiny ImageNet: {problem}") from None
    files = [file for file, _ in rows]
    return FileSet(name, root / "val" / "images", files, labels, classes)


def read_json(path: Path) -> Any:
    """Read a JSON file, or say in a sentence why not."""
    try:
        return json.loads(path.read_text("utf-8"))
    except OSError as problem:
        raise InputError(f"cannot read {path}: {problem.strerror}") from None
    except (UnicodeDecodeError, json.JSONDecodeError) as problem:
        raise InputError(f"{path} is not JSON: {problem}") from None
