"""Icons-50: the stored set, and one made anew from the vendors' emoji in their npm packages.

Both come with the same hold-outs. A style is held out by training on the others; subtypes, by
leaving one of every class out; and versions, as the control: pictures of styles that training
has seen, in a version of the art that it has not.
"""

from __future__ import annotations

import hashlib
import io
import pickle
import re
import tarfile
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cache, partial
from importlib import resources
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import numpy.typing as npt

from shiftbed import published
from shiftbed.assets import Package, fetch, placed
from shiftbed.data.arrays import ArraySet
from shiftbed.data.card import Card
from shiftbed.data.catalogue import Placed, find_info, image_set, placed_set, sets_dir
from shiftbed.data.sets import ImageSet
from shiftbed.data.subset import Subset
from shiftbed.data.table import labelled_files, read_table
from shiftbed.errors import InputError

__all__ = ["classes_of_emoji", "hold_outs"]

_CLASSES = published.class_list("icons-50")
_SIDE = 64


@dataclass(frozen=True)
class _Art:
    """One version of one vendor's art."""

    style: str
    version: str
    package: Package
    folder: str


def _datasource(style: str, version: str, sha256: str) -> _Art:
    package = Package("npm", f"emoji-datasource-{style}@{version}", sha256)
    return _Art(style, version, package, f"package/img/{style}/64")


_EMOJI = Package(
    "npm",
    "emoji-datasource@16.0.0",
    "2006725061dc0098daa832d65f854a7bec0740af2eb47cb5b23d89f7e2c849f9",
)
_ART = (
    _datasource(
        "apple", "16.0.0", "b34d1665e136f163b0d4433318df151895b785186e8c729b2211b43017945075"
    ),
    _datasource(
        "apple", "3.0.0", "27fa37cbf0e40422536b4517a00165e296ea4abae2e6150bd977188480b4b0d3"
    ),
    _datasource(
        "google", "16.0.0", "fb5fd131b362aab7a55542d2a147a79708cce0a8b1c1bbacd470172708b5c438"
    ),
    _datasource(
        "google", "3.0.0", "3247dd55dee7954d6d1d3d84b05759e49daf71cab5cccb4566940209679af66f"
    ),
    _datasource(
        "twitter", "16.0.0", "f64a530c63bca463bd8317fdc4615ce63a53a0c65018e4ce2d848aaba7a28877"
    ),
    _datasource(
        "facebook", "16.0.0", "017038cf5a4e7fcf03dd9133cbed43d4c281c4b3ce7b927c7160261b92b8821e"
    ),
    _datasource(
        "facebook", "4.0.3", "40db673f3bfd906f0044a947a939d7ebeaa056ec7f6bc7fd24efb434458db10e"
    ),
    _datasource(
        "messenger", "4.1.0", "0111dafee8f9a63a51820a1391887eaef7e4dfafc4307a76d2972ac1e810ef8b"
    ),
    _datasource(
        "emojione", "4.0.4", "ee489d577dcfc39ba0a25ed9ee359650c8777cbc75e4cab330ab3eaf2575eed5"
    ),
    _Art(
        "microsoft",
        "1.1.0",
        Package(
            "npm",
            "@lobehub/fluent-emoji-3d@1.1.0",
            "c1bb7eee7de090205a232518a9ab4adb3df458bfbe8a1f78232991194c8b2e58",
        ),
        "package/assets",
    ),
    # The control comes last, so that what it shares with another version is not in it.
    _datasource(
        "google", "5.0.1", "70a6c37383eb24f77461f984645735702d50f2559569be3e4e9ba9328c9312b2"
    ),
)
_STYLES = tuple(dict.fromkeys(art.style for art in _ART))
_CONTROL = ("google", "5.0.1")


# Which emoji are in which class


@cache
def _rules() -> dict[str, list[str]]:
    text = (resources.files("shiftbed.data") / "icons_50.toml").read_text("utf-8")
    return dict(tomllib.loads(text))


def classes_of_emoji(emoji: Sequence[dict[str, Any]]) -> dict[str, tuple[str, str]]:
    """Return for each emoji of a class its code points -> its class and its subtype.

    >>> runner = {"short_name": "man-surfing", "subcategory": "person-sport", "unified": "1F3C4"}
    >>> classes_of_emoji([runner])
    {'1f3c4': ('surfing', 'surfing')}
    """
    found = {}
    for one in emoji:
        for name, patterns in _rules().items():
            if _belongs(one, patterns):
                found[_key(one["unified"])] = (name, _subtype(one["short_name"]))
    return found


def _belongs(emoji: dict[str, Any], patterns: Sequence[str]) -> bool:
    belongs = False
    for pattern in patterns:
        away = pattern.startswith("-")
        pattern = pattern.removeprefix("-")
        if pattern.startswith("sub:"):
            matches = emoji["subcategory"] == pattern.removeprefix("sub:")
        else:
            matches = fnmatchcase(emoji["short_name"], pattern)
        if matches:
            belongs = not away
    return belongs


def _subtype(short_name: str) -> str:
    return re.sub(r"^(man|woman|men|women|male|female)-", "", short_name)


def _key(code_points: str) -> str:
    """Return code points without the selector of how they are drawn, which vendors leave out."""
    return re.sub(r"-fe0f\b", "", code_points.lower())


# Making the set


def _rebuilt(name: str) -> ImageSet:
    folder = sets_dir() / "icons-50-rebuilt"
    if not folder.exists():
        with placed(folder) as scratch:
            build(scratch)
    return labelled_files(folder / "icons.csv", name=name, classes=_CLASSES)


def build(folder: Path, art: Sequence[_Art] = _ART, emoji: Package = _EMOJI) -> None:
    """Write every distinct rendering of the classes' emoji, and the table of what each is."""
    import csv
    import json

    [(_, content)] = _members(fetch(emoji), lambda name: name == "package/emoji.json")
    wanted = classes_of_emoji(json.loads(content))
    rows = []
    seen = set()
    for one in art:
        kept = partial(_is_wanted, folder=one.folder, wanted=wanted)
        for member, content in sorted(_members(fetch(one.package), kept)):
            stem = PurePosixPath(member).stem
            label, subtype = wanted[_key(stem)]
            picture = _on_white(content)
            same = (one.style, hashlib.sha256(picture.tobytes()).digest())
            if same in seen:
                continue
            seen.add(same)
            path = f"{label}/{one.style}_{one.version}_{_key(stem)}.png"
            (folder / label).mkdir(exist_ok=True)
            picture.save(folder / path)
            rows.append((path, label, one.style, one.version, subtype))
    if not rows:
        raise InputError("the packages hold none of the emoji that Icons-50 is made of")
    with (folder / "icons.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["picture", "label", "style", "version", "subtype"])
        table.writerows(sorted(rows))


def _is_wanted(name: str, folder: str, wanted: dict[str, tuple[str, str]]) -> bool:
    path = PurePosixPath(name)
    return str(path.parent) == folder and _key(path.stem) in wanted


def _members(archive: Path, kept: Callable[[str], bool]) -> Iterator[tuple[str, bytes]]:
    with tarfile.open(archive) as tar:
        for entry in tar:
            file = tar.extractfile(entry) if entry.isfile() and kept(entry.name) else None
            if file is not None:
                yield entry.name, file.read()


def _on_white(content: bytes) -> Any:
    """Return an icon of 64 px on white, as Icons-50 shows them."""
    from PIL import Image

    with Image.open(io.BytesIO(content)) as image:
        icon = image.convert("RGBA")
    if icon.size != (_SIDE, _SIDE):
        icon = icon.resize((_SIDE, _SIDE), Image.Resampling.LANCZOS)
    white = Image.new("RGBA", icon.size, "white")
    return Image.alpha_composite(white, icon).convert("RGB")


# The stored set


def _stored(root: Path, name: str) -> ImageSet:
    """``Icons-50.npy``: a dictionary of lists, read without letting it run anything."""
    found = _stored_columns(root)
    pictures = np.stack([np.asarray(one) for one in found["image"]])
    if pictures.ndim == 4 and pictures.shape[1] == 3:
        pictures = pictures.transpose(0, 2, 3, 1)
    labels = np.array([int(one) for one in found["class"]], np.int64)
    return ArraySet(name, np.ascontiguousarray(pictures.astype(np.uint8)), labels, _CLASSES)


def _stored_columns(root: Path) -> dict[str, Sequence[Any]]:
    path = next(iter(sorted(root.glob("**/Icons-50.npy"))), root / "Icons-50.npy")
    try:
        with path.open("rb") as file:
            np.lib.format.read_magic(file)
            np.lib.format.read_array_header_1_0(file)
            content = _Plain(file).load()
    except FileNotFoundError:
        raise InputError(f"{path} does not exist") from None
    except (OSError, ValueError, EOFError, pickle.UnpicklingError, AttributeError) as problem:
        raise InputError(f"{path} is not Icons-50's ({problem})") from None
    told = content.item() if isinstance(content, np.ndarray) else content
    if not isinstance(told, dict) or not {"class", "style", "image", "subtype"} <= set(told):
        raise InputError(f"{path} lacks Icons-50's columns class, style, image and subtype")
    return told


class _Plain(pickle.Unpickler):
    """An unpickler of arrays, and of nothing that could act."""

    def find_class(self, module: str, name: str) -> Any:
        arrays = module.replace("numpy.core", "numpy._core")
        if (arrays, name) in {
            ("numpy._core.multiarray", "_reconstruct"),
            ("numpy._core.multiarray", "scalar"),
            ("numpy", "ndarray"),
            ("numpy", "dtype"),
            ("_codecs", "encode"),
        }:
            home = "numpy._core" if find_spec("numpy._core") else "numpy.core"  # before NumPy 2
            return super().find_class(arrays.replace("numpy._core", home), name)
        raise pickle.UnpicklingError(f"it holds {module}.{name}, which is no array")


# Hold-outs


@dataclass(frozen=True)
class _Columns:
    label: npt.NDArray[np.str_]
    style: npt.NDArray[np.str_]
    version: npt.NDArray[np.str_]
    subtype: npt.NDArray[np.str_]


def hold_outs(
    columns: _Columns, control: tuple[str, str], styles: Sequence[str]
) -> dict[str, npt.NDArray[np.bool_]]:
    """Return which pictures are in each training and test set, by its name.

    No training set has a picture of the control, so that it is a fair clean counterpart of all.
    """
    held = _held_subtypes(columns)
    kept_out = (columns.style == control[0]) & (columns.version == control[1])
    unseen = np.array(
        [(label, kind) in held for label, kind in zip(columns.label, columns.subtype, strict=True)]
    )
    parts = {
        "train": ~kept_out,
        "control": kept_out,
        "subtypes": unseen & ~kept_out,
        "train-subtypes": ~unseen & ~kept_out,
    }
    for style in styles:
        mine = columns.style == style
        parts[f"style-{style}"] = mine & ~kept_out
        parts[f"train-style-{style}"] = ~mine & ~kept_out
    return parts


def _held_subtypes(columns: _Columns) -> set[tuple[str, str]]:
    """Choose one subtype of each class that has several, always the same."""
    kinds: dict[str, set[str]] = {}
    for label, kind in zip(columns.label, columns.subtype, strict=True):
        kinds.setdefault(str(label), set()).add(str(kind))
    return {
        (label, min(some, key=lambda kind: hashlib.sha256(f"{label} {kind}".encode()).digest()))
        for label, some in kinds.items()
        if len(some) > 1
    }


def _rebuilt_columns() -> _Columns:
    table = read_table(sets_dir() / "icons-50-rebuilt" / "icons.csv")
    return _Columns(*(np.array(table[name], str) for name in _NAMES))


def _columns_of_stored() -> _Columns:
    root = find_info("icons-50").home
    assert root is not None
    told = _stored_columns(root)
    names = np.array([_CLASSES[int(one)] for one in told["class"]], str)
    versions = np.array([str(one) for one in told.get("rendition", [""] * len(names))], str)
    style, subtype = (np.array([str(one) for one in told[key]]) for key in ("style", "subtype"))
    return _Columns(names, style, versions, subtype)


_NAMES = ("label", "style", "version", "subtype")


def _part(
    base: str,
    part: str,
    columns: Callable[[], _Columns],
    control: Sequence[str],
    root: Path,
    name: str,
) -> ImageSet:
    whole = find_info(base).open()
    told = columns()
    style, version = control
    if not version:  # the stored set: one of its renditions of that style
        versions = sorted({str(one) for one in told.version[told.style == style]})
        version = versions[len(versions) // 2] if versions else ""
    styles = sorted({str(one) for one in told.style})
    chosen = hold_outs(told, (style, version), styles)[part]
    return Subset(whole, np.flatnonzero(chosen), name)


_PAPER = "Hendrycks and Dietterich, Benchmarking Neural Network Robustness (2018), Section 4"
_SAID = {
    "train": "to train on: all but the control",
    "control": "a version of the art that training has not seen, of a style that it has",
    "subtypes": "one subtype of every class, held out",
    "train-subtypes": "to train on: without the held-out subtypes",
}


def _register(
    whole: Card,
    columns: Callable[[], _Columns],
    control: Sequence[str],
    styles: Sequence[str],
) -> None:
    abouts = dict(_SAID)
    for style in styles:
        abouts[f"style-{style}"] = f"icons in the style of {style}, held out"
        abouts[f"train-style-{style}"] = f"to train on: without the style of {style}"
    for part, about in abouts.items():
        test = not part.startswith(("train", "control"))
        card = replace(
            whole,
            name=f"{whole.name}.{part}",
            about=about,
            clean=f"{whole.name}.control" if test else None,
        )
        read = partial(_part, whole.name, part, columns, control)
        placed_set(card, Placed(read, base=whole.name), suites=(whole.name,) if test else ())


_MADE = Card(
    "icons-50-rebuilt",
    f"Icons-50 made anew from {len(_STYLES)} vendors' emoji, 64 px",
    variant="tiny-imagenet-c",
    licence="the art keeps its owners' licences (Apple, Google, Meta, Microsoft, Twitter, "
    "JoyPixels); not to be passed on",
    citation=_PAPER,
)
_OLD = replace(
    _MADE,
    name="icons-50",
    about="10,000 icons of 50 classes in the styles of their vendors, 32 px",
    variant="cifar-c",
)
image_set(_MADE, ready=lambda: (sets_dir() / "icons-50-rebuilt").exists())(
    partial(_rebuilt, _MADE.name)
)
placed_set(
    _OLD,
    Placed(
        _stored,
        pictures=10_000,
        by_hand="download Icons-50.npy, linked at the end of github.com/hendrycks/robustness",
    ),
)
_register(_MADE, _rebuilt_columns, _CONTROL, _STYLES)
_register(_OLD, _columns_of_stored, ("google", ""), ("microsoft", "apple", "google", "facebook"))
