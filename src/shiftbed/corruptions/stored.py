"""Stored benchmarks: corrupted copies of an image set, laid out as the authors publish them."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from shiftbed.corruptions import _registry
from shiftbed.corruptions._api import Picture, corrupt
from shiftbed.corruptions._resumable import Record, Shelf, Unit, alone, claim, run
from shiftbed.errors import InputError, unknown

__all__ = ["ENCODINGS", "Made", "Pictures", "as_seen", "make", "save", "writable"]

#: Name of an encoding -> the suffix of its files, Pillow's name for it, and how it is written.
#: The JPEG is the published benchmarks'; the others keep every pixel.
ENCODINGS: Mapping[str, tuple[str, str, Mapping[str, Any]]] = {
    "jpeg": (".JPEG", "JPEG", {"quality": 85, "optimize": True}),
    "png": (".png", "PNG", {}),
    "webp": (".webp", "WEBP", {"lossless": True}),
}

Shift = tuple[str, int | None]


class Pictures(Protocol):
    """What is asked of an image set; those of :mod:`shiftbed.data` have it."""

    @property
    def name(self) -> str:
        """What the set is called."""
        ...

    @property
    def ids(self) -> Sequence[str]:
        """One unique name per picture: the key of its random draws, and its file's name."""
        ...

    @property
    def labels(self) -> NDArray[Any] | None:
        """Class indices, or None where there are none."""
        ...

    @property
    def classes(self) -> Sequence[str]:
        """The classes' names, in the order of the labels."""
        ...

    def __len__(self) -> int:
        """How many pictures there are, readable or not."""
        ...

    def load(self, index: int) -> Picture:
        """Return a picture, uint8 (H, W) or (H, W, 3)."""
        ...

    def fingerprint(self) -> str:
        """A hash that changes when the set does."""
        ...


@dataclass(frozen=True)
class Made:
    """What a call of :func:`make` did."""

    #: How many files the stored set has, its manifest apart.
    files: int
    #: How many of them an earlier call had made.
    kept: int
    #: The pictures that could not be read: their ids, and why.
    unreadable: tuple[tuple[str, str], ...]


# ---------------------------------------------------------------- what the models were shown


def _imagenet(image: Image.Image) -> Image.Image:
    """Resize the shorter side to 256 and crop the central 224 x 224, as torchvision does."""
    short, long = sorted(image.size)
    if short != 256:
        longer = int(256 * long / short)
        image = image.resize(
            (256, longer) if image.width <= image.height else (longer, 256),
            Image.Resampling.BILINEAR,
        )
    return _cropped(image, 224, 224)


def _imagenet_299(image: Image.Image) -> Image.Image:
    """Crop the central 87.5% of either side and resize it to 299 x 299."""
    cropped = _cropped(image, int(image.width * 0.875), int(image.height * 0.875))
    return cropped.resize((299, 299), Image.Resampling.BILINEAR)


def _tiny(image: Image.Image) -> Image.Image:
    return image.resize((64, 64), Image.Resampling.BILINEAR)


def _cropped(image: Image.Image, width: int, height: int) -> Image.Image:
    left, top = round((image.width - width) / 2), round((image.height - height) / 2)
    return image.crop((left, top, left + width, top + height))


@dataclass(frozen=True)
class _Form:
    """How a benchmark is published: its layout, and how pictures become its size."""

    layout: Literal["files", "array", "arrays by folder"]
    #: None: the pictures have the benchmark's size, or it is a mistake.
    fit: Callable[[Image.Image], Image.Image] | None
    geometry: str
    mode: str = "RGB"


_FORMS = {
    "imagenet-c": _Form("files", _imagenet, "shorter side to 256, central 224 x 224"),
    "imagenet-299": _Form("files", _imagenet_299, "central 87.5%, to 299 x 299"),
    "tiny-imagenet-c": _Form("files", _tiny, "to 64 x 64"),
    "cifar-c": _Form("array", None, "32 x 32"),
    "mnist-c": _Form("arrays by folder", None, "28 x 28, grey", "L"),
}


def as_seen(
    picture: Picture, variant: str = "imagenet-c", *, keep_size: bool = False, name: str = ""
) -> Picture:
    """Return a picture as a benchmark's models see it: its colours, its size.

    ``imagenet-c``: shorter side to 256, central 224 x 224; ``imagenet-299``: the central 87.5%
    resized to 299 x 299; ``tiny-imagenet-c``: resized to 64 x 64. Pictures for ``cifar-c`` and
    ``mnist-c`` must have their 32 x 32 and 28 x 28 pixels already. ``keep_size`` leaves any
    size as it is.

    >>> as_seen(np.zeros((300, 400), np.uint8)).shape
    (224, 224, 3)
    """
    if variant not in _FORMS:
        raise unknown("variant", variant, _FORMS)
    form, side = _FORMS[variant], _registry.VARIANTS[variant]
    image = Image.fromarray(picture).convert(form.mode)
    if not keep_size:
        if form.fit is not None:
            image = form.fit(image)
        elif image.size != (side, side):
            raise InputError(
                f"{name or 'the picture'} has {image.width} x {image.height} pixels, but "
                f"{variant} is of {side} x {side}; resize it, or keep its own size (--keep-size)"
            )
    return np.asarray(image)


# ---------------------------------------------------------------- the call


def make(
    pictures: Pictures,
    output: str | Path,
    shifts: Iterable[Shift] | None = None,
    *,
    variant: str = "imagenet-c",
    seed: int = 0,
    encoding: str = "jpeg",
    keep_size: bool = False,
    options: Mapping[str, Any] | None = None,
    workers: int | None = None,
    check: bool = False,
    watch: Callable[[int], None] = lambda pictures: None,
) -> Made:
    """Write corrupted copies of an image set in the layout of the benchmark's authors.

    ``shifts`` are pairs of a corruption and a severity (None: the standard one, or none):
    by default all of the benchmark's main list. The ImageNet variants are written as files
    ``corruption/severity/class/name.JPEG``; ``cifar-c`` as ``corruption.npy``, its severities
    one after the other, with ``labels.npy``; ``mnist-c`` as ``corruption/test_images.npy`` with
    ``test_labels.npy``, and the clean pictures as the corruption ``identity``.

    ``options`` go to those corruptions that take them. ``watch`` is called with a number of
    corrupted pictures whenever they are in place. ``check`` reads what an earlier call left
    and makes anew what differs from its manifest.

    ``manifest.json`` says what was asked for; ``manifest.jsonl`` has the SHA-256 of every
    source picture's pixels and of every file. A call with other settings is refused.
    """
    if variant not in _FORMS:
        raise unknown("variant", variant, _FORMS)
    if encoding not in ENCODINGS:
        raise unknown("encoding", encoding, ENCODINGS)
    layout = _FORMS[variant].layout
    chosen = _chosen(shifts, variant)
    if pictures.labels is not None and pictures.labels.ndim != 1:
        raise InputError(
            f"{pictures.name} has several labels per picture, which the layout of {variant} "
            "has no place for; give a set with one label per picture, or none"
        )
    output = Path(output)
    check_outside(pictures, output)
    job = _Job(
        pictures,
        chosen,
        variant,
        seed,
        encoding,
        keep_size,
        _given(options or {}, chosen, variant),
        thread_count(workers),
        watch,
    )
    units = job.files() if layout == "files" else job.arrays(by_folder=layout != "array")
    # Arrays are made one after the other, each with all threads.
    threads = job.workers if layout == "files" else 1
    return carried_out(units, output, job.settings, threads=threads, check=check, watch=watch)


def check_outside(pictures: Pictures, output: Path) -> None:
    """Refuse to write into the folder that the pictures are in."""
    root = getattr(pictures, "root", None)
    if root is not None and output.resolve().is_relative_to(Path(root).resolve()):
        raise InputError(f"{output} is inside the image set {root}; choose a folder outside it")


def thread_count(workers: int | None) -> int:
    """Return the number of threads that was asked for; by default, one for each core."""
    if workers is not None and workers < 1:
        raise InputError(f"{workers} workers were asked for; expected 1 or more")
    return workers or os.cpu_count() or 1


def carried_out(
    units: list[Unit],
    output: Path,
    settings: Callable[[], Record],
    *,
    threads: int,
    check: bool,
    watch: Callable[[int], None],
) -> Made:
    """Do what is missing of a job in its folder, alone, and return what there is then."""
    try:
        claim(output, settings())
        with alone(output):
            records, kept = run(units, Shelf(output), threads=threads, check=check, watch=watch)
    except OSError as problem:
        raise InputError(
            f"cannot write to {output} ({problem.strerror or problem}); the same command goes on "
            "once that is mended"
        ) from None
    return Made(
        sum(len(record.get("files", ())) for record in records),
        kept,
        tuple((one["source"], one["unreadable"]) for one in records if "unreadable" in one),
    )


def save(picture: Picture | Image.Image, path: str | Path, *, replace: bool = False) -> None:
    """Write a picture to a file, whole or not at all: .png and .webp lossless, or .jpg.

    JPEG is written as the benchmarks' authors did: quality 85, optimised. A file that is
    there already is kept, and the call refused, unless ``replace`` is set.
    """
    path = Path(path)
    encoding = writable(path, replace=replace)
    temporary = None
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
        os.close(handle)
        temporary = Path(name)
        write_picture(picture, encoding, temporary)
        # A temporary file is its owner's alone; this one is to be like any other.
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)
        temporary.replace(path)
    except OSError as problem:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        raise InputError(f"cannot write {path} ({problem.strerror or problem})") from None


def writable(path: Path, *, replace: bool = False) -> str:
    """Return the encoding that a file's name asks for, or refuse to write the file.

    >>> writable(Path("foggy.png"))
    'png'
    """
    encoding = path.suffix.lower().removeprefix(".").replace("jpg", "jpeg")
    if encoding not in ENCODINGS:
        raise InputError(
            f"a picture cannot be written as {path.name!r}; expected a name that ends in "
            ".png or .webp (lossless) or in .jpg (quality 85)"
        )
    if not path.parent.is_dir():
        raise InputError(f"cannot write {path}: there is no folder {path.parent}; make it first")
    if path.is_dir():
        raise InputError(f"cannot write {path}: it is a folder")
    if path.exists() and not replace:
        raise InputError(f"{path} exists already; name another file, or replace it with --force")
    return encoding


def write_picture(picture: Picture | Image.Image, encoding: str, path: Path) -> None:
    """Write a picture in an encoding, whatever the file's name ends in."""
    image = picture if isinstance(picture, Image.Image) else Image.fromarray(picture)
    _, name, how = ENCODINGS[encoding]
    # Into a real file, because Pillow then releases the interpreter while it encodes.
    image.save(path, name, **how)


def _chosen(shifts: Iterable[Shift] | None, variant: str) -> list[Shift]:
    """Return the shifts that were asked for, each of which exists."""
    if shifts is None:
        shifts = [
            (name, severity)
            for name in _registry.corruption_names(variant)
            for severity in _steps(_registry.get(name, variant))
        ]
    chosen = list(dict.fromkeys(shifts))
    if not chosen:
        raise InputError("there is nothing to make: no corruption was named")
    for name, severity in chosen:
        _registry.get(name, variant).arguments(severity)
    return chosen


def _steps(spec: _registry.Spec) -> tuple[int | None, ...]:
    """Return the severities of a corruption that are part of its benchmark."""
    return spec.severities if spec.severities and spec.standard is None else (None,)


def _given(options: Mapping[str, Any], chosen: list[Shift], variant: str) -> dict[str, Any]:
    taken = {option for name, _ in chosen for option in _registry.get(name, variant).options}
    for option in options:
        if option not in taken:
            raise unknown("option of these corruptions", option, taken)
    return dict(options)


# ---------------------------------------------------------------- the units


@dataclass(frozen=True)
class _Job:
    pictures: Pictures
    shifts: list[Shift]
    variant: str
    seed: int
    encoding: str
    keep_size: bool
    options: dict[str, Any]
    workers: int
    watch: Callable[[int], None]

    def settings(self) -> Record:
        """All that the bytes depend on."""
        import cv2
        import numba
        import PIL
        import scipy

        from shiftbed import __version__

        form = _FORMS[self.variant]
        names = dict.fromkeys(name for name, _ in self.shifts)
        return {
            "variant": self.variant,
            "shifts": [_folder(shift) for shift in self.shifts],
            "seed": self.seed,
            "pictures": {
                "name": self.pictures.name,
                "count": len(self.pictures),
                "fingerprint": self.pictures.fingerprint(),
            },
            "size": "as they are" if self.keep_size else form.geometry,
            "encoding": self.encoding if form.layout == "files" else "npy",
            "options": {name: str(value) for name, value in self.options.items()},
            "versions": [_registry.version(name, self.variant) for name in names],
            "libraries": {
                "numba": numba.__version__,
                "numpy": np.__version__,
                "opencv": cv2.__version__,
                "pillow": PIL.__version__,
                "scipy": scipy.__version__,
            },
            "shiftbed": __version__,
        }

    def files(self) -> list[Unit]:
        """One unit for each picture: all its corruptions."""
        places = file_places(self.pictures, ENCODINGS[self.encoding][0])
        return [
            Unit(len(self.shifts), partial(self._write_files, index, path))
            for index, path in enumerate(places)
        ]

    def _write_files(self, index: int, path: str, shelf: Shelf) -> Record:
        source = self.pictures.ids[index]
        picture = self._load(index)
        if isinstance(picture, str):
            self.watch(len(self.shifts))
            return {"source": source, "unreadable": picture}
        picture = self._as_seen(picture, source)
        files = {}
        for shift in self.shifts:
            corrupted = self._corrupted(picture, shift, source)
            write = partial(write_picture, corrupted, self.encoding)
            files[_folder(shift)] = shelf.put(f"{_folder(shift)}/{path}", write)
            self.watch(1)
        return {"source": source, "pixels": pixels_digest(picture), "path": path, "files": files}

    def arrays(self, *, by_folder: bool) -> list[Unit]:
        """One unit for each array, after what there is to say of each picture."""
        clean, keys, labels, said = self._stacked()
        units = [Unit(0, partial(_said, line)) for line in said]
        wanted: dict[str, list[Shift]] = {}
        for shift in self.shifts:
            wanted.setdefault(shift[0], []).append(shift)
        depths = {len(steps) for steps in wanted.values()}
        if by_folder:
            if depths != {1}:
                twice = next(name for name, steps in wanted.items() if len(steps) > 1)
                raise InputError(
                    f"the layout of {self.variant} holds one severity of each corruption, but "
                    f"{twice} was asked for at several; make each in a folder of its own"
                )
            part = "train" if self.pictures.name.endswith("train") else "test"
            names = {name: f"{name}/{part}_images.npy" for name in ["identity", *wanted]}
            wanted = {"identity": [], **wanted}
            if labels is not None:
                for name in wanted:
                    place = f"{name}/{part}_labels.npy"
                    units.append(Unit(0, partial(_write_labels, place, labels)))
        else:
            if len(depths) > 1:
                raise InputError(
                    f"the layout of {self.variant} has one file of labels for all corruptions, "
                    "so each needs the same number of severities"
                )
            names = {name: f"{name}.npy" for name in wanted}
            if labels is not None:
                repeated = np.tile(labels, depths.pop())
                if labels.max() < 256:
                    repeated = repeated.astype(np.uint8)
                units.append(Unit(0, partial(_write_labels, "labels.npy", repeated)))
        for name, steps in wanted.items():
            write = partial(self._write_array, names[name], steps, clean, keys)
            units.append(Unit(len(steps) * len(clean), write))
        return units

    def _stacked(self) -> tuple[Picture, list[str], NDArray[Any] | None, list[Record]]:
        """Return all pictures, their keys and labels, and a line of the manifest for each."""
        loaded: list[Picture] = []
        rows: list[int] = []
        said: list[Record] = []
        for index, source in enumerate(self.pictures.ids):
            picture = self._load(index)
            if isinstance(picture, str):
                said.append({"source": source, "unreadable": picture})
                continue
            picture = self._as_seen(picture, source)
            if loaded and picture.shape != loaded[0].shape:
                raise InputError(
                    f"{source} has {_size(picture)} pixels and {self.pictures.ids[rows[0]]} has "
                    f"{_size(loaded[0])}; an array of {self.variant} needs them of one size"
                )
            said.append({"source": source, "row": len(loaded), "pixels": pixels_digest(picture)})
            rows.append(index)
            loaded.append(picture)
        if not loaded:
            raise InputError(f"none of the pictures of {self.pictures.name} can be read")
        clean = np.stack(loaded)
        labels = self.pictures.labels
        return (
            clean if clean.ndim == 4 else clean[..., None],
            [self.pictures.ids[row] for row in rows],
            None if labels is None else np.asarray(labels, np.int64)[rows],
            said,
        )

    def _write_array(
        self, name: str, steps: list[Shift], clean: Picture, keys: list[str], shelf: Shelf
    ) -> Record:
        if not steps:  # the clean pictures, stored beside the corrupted ones
            return {"files": {name: shelf.put(name, partial(_write_array, clean))}}
        out = np.empty((len(steps), *clean.shape), np.uint8)
        for stack, shift in zip(out, steps, strict=True):
            for start in range(0, len(clean), _CHUNK):
                chunk = slice(start, start + _CHUNK)
                stack[chunk] = self._corrupted(clean[chunk], shift, keys[chunk])
                self.watch(len(clean[chunk]))
        whole = out.reshape(-1, *clean.shape[1:])
        return {"files": {name: shelf.put(name, partial(_write_array, whole))}}

    def _load(self, index: int) -> Picture | str:
        """Return a picture, or why it cannot be read."""
        try:
            return self.pictures.load(index)
        except Exception as problem:  # whatever ails one file, the others can be made
            return str(problem) or type(problem).__name__

    def _as_seen(self, picture: Picture, name: str) -> Picture:
        return as_seen(picture, self.variant, keep_size=self.keep_size, name=name)

    def _corrupted(self, picture: Picture, shift: Shift, key: str | list[str]) -> Picture:
        name, severity = shift
        takes = _registry.get(name, self.variant).options
        return corrupt(
            picture,
            name,
            severity,
            variant=self.variant,
            seed=self.seed,
            key=key,
            workers=self.workers,
            **{option: value for option, value in self.options.items() if option in takes},
        )


#: Pictures that are corrupted together on their way into an array.
_CHUNK = 500


def _said(line: Record, shelf: Shelf) -> Record:
    return line


def _write_labels(name: str, labels: NDArray[Any], shelf: Shelf) -> Record:
    return {"files": {name: shelf.put(name, partial(_write_array, labels))}}


def _write_array(array: NDArray[Any], path: Path) -> None:
    with path.open("wb") as file:
        np.save(file, array)


def _size(picture: Picture) -> str:
    return f"{picture.shape[1]} x {picture.shape[0]}"


def pixels_digest(picture: Picture) -> str:
    """Return the SHA-256 of a picture's shape and pixels."""
    state = hashlib.sha256(repr(picture.shape).encode())
    state.update(np.ascontiguousarray(picture).data)
    return state.hexdigest()


def _folder(shift: Shift) -> str:
    """Return the folder of a shift.

    >>> _folder(("fog", 3)), _folder(("greyscale", None))
    ('fog/3', 'greyscale')
    """
    name, severity = shift
    return name if severity is None else f"{name}/{severity}"


def file_places(pictures: Pictures, suffix: str) -> list[str]:
    """Return where each picture goes below a shift's folder: ``class/name.JPEG``."""
    Image.init()
    places: dict[str, str] = {}
    for index, name in enumerate(pictures.ids):
        folder = "" if pictures.labels is None else pictures.classes[int(pictures.labels[index])]
        path = PurePosixPath(name.removeprefix(f"{folder}/"))
        if path.suffix.lower() in Image.EXTENSION:
            path = path.with_suffix("")
        place = f"{folder}/{path}{suffix}" if folder else f"{path}{suffix}"
        parts = place.split("/")
        if "\\" in place or "\0" in place or not {"", ".", ".."}.isdisjoint(parts):
            raise InputError(f"{name!r} of class {folder!r} cannot be the name of a file")
        if place in places:
            raise InputError(
                f"{places[place]} and {name} of {pictures.name} would both be written as "
                f"{place}; rename one of them"
            )
        places[place] = name
    return list(places)
