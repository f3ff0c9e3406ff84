"""Image sets held in arrays: in memory, in an ``.npz`` file, or in MNIST's IDX files."""

from __future__ import annotations

import gzip
import io
import math
import zipfile
import zlib
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from shiftbed.data.sets import Labels, Picture, digest
from shiftbed.errors import InputError

__all__ = ["ArraySet", "plain_array", "read_idx", "read_npy", "read_npz"]

#: What a small compressed file may grow to, and a large one in proportion: the pictures of
#: MNIST, mostly black, grow fivefold.
_SMALL, _GROWTH = 2**30, 100


class ArraySet:
    """Pictures in one array, uint8 (N, H, W) or (N, H, W, 1 or 3).

    >>> digits = ArraySet("two", np.zeros((2, 28, 28), np.uint8), labels=[7, 2],
    ...                   classes=[str(digit) for digit in range(10)])
    >>> digits.ids, digits.load(0).shape
    (('0', '1'), (28, 28))
    """

    def __init__(
        self,
        name: str,
        pictures: npt.ArrayLike,
        labels: npt.ArrayLike | None = None,
        classes: Sequence[str] | None = None,
        ids: Sequence[str] | None = None,
    ) -> None:
        self.name = name
        self._pictures = np.asarray(pictures)
        if self._pictures.dtype != np.uint8:
            raise InputError(
                f"the pictures of {name} are {self._pictures.dtype}; expected uint8 from 0 to 255 "
                "(multiply pictures in [0, 1] by 255 and round)"
            )
        shape = self._pictures.shape
        if len(shape) == 4 and shape[3] == 1:
            self._pictures = self._pictures[..., 0]
        elif not (len(shape) == 3 or (len(shape) == 4 and shape[3] == 3)):
            raise InputError(
                f"the pictures of {name} have shape {shape}; expected (N, height, width) or "
                "(N, height, width, 3)"
            )
        if not shape[0]:
            raise InputError(f"{name} holds no pictures")
        self.ids = tuple(ids) if ids is not None else tuple(map(str, range(shape[0])))
        if len(self.ids) != shape[0] or len(set(self.ids)) != shape[0]:
            raise InputError(f"{name} needs one id for each of its {shape[0]} pictures, unique")
        self.labels = None if labels is None else self._checked(np.asarray(labels), classes)
        if classes is None and self.labels is not None:
            classes = [str(index) for index in range(int(self.labels.max()) + 1)]
        self.classes = tuple(classes or ())

    def _checked(self, labels: npt.NDArray[np.generic], classes: Sequence[str] | None) -> Labels:
        count = len(self._pictures)
        if len(labels) != count:
            raise InputError(f"{self.name} has {count} pictures and {len(labels)} labels")
        if labels.dtype == np.bool_ and labels.ndim == 2:
            if classes is None or len(classes) != labels.shape[1]:
                raise InputError(
                    f"{self.name} has a column of truth values for each of {labels.shape[1]} "
                    "classes; give as many class names"
                )
            return labels.astype(np.bool_)
        if labels.ndim != 1 or not np.issubdtype(labels.dtype, np.integer):
            raise InputError(
                f"the labels of {self.name} are {labels.dtype} of shape {labels.shape}; expected "
                "one whole number per picture, or truth values (N, classes)"
            )
        indices = labels.astype(np.int64)
        top = len(classes) if classes is not None else np.iinfo(np.int64).max
        if indices.min() < 0 or indices.max() >= top:
            raise InputError(
                f"the labels of {self.name} run from {indices.min()} to {indices.max()}; "
                f"expected 0 to {top - 1}, one for each class"
            )
        return indices

    def __len__(self) -> int:
        return len(self._pictures)

    def load(self, index: int) -> Picture:
        """Return a picture, uint8 (H, W) or (H, W, 3)."""
        picture: Picture = self._pictures[index]
        return picture

    @cached_property
    def _hash(self) -> str:
        labels = b"" if self.labels is None else self.labels.tobytes()
        parts = ["arrays", *self.classes, *self.ids, str(self._pictures.shape)]
        return digest([*parts, labels, np.ascontiguousarray(self._pictures).tobytes()])

    def fingerprint(self) -> str:
        """A hash of pixels, ids and labels."""
        return self._hash


def _check_growth(path: Path, size: int) -> None:
    if size > max(_SMALL, _GROWTH * path.stat().st_size):
        raise InputError(
            f"{path} would grow to {size / 2**30:,.1f} GiB, more than {_GROWTH} times its size, "
            "when it is decompressed; decompress it yourself where that is meant"
        )


def read_npz(
    path: str | Path, name: str | None = None, classes: Sequence[str] | None = None
) -> ArraySet:
    """Read pictures from an ``.npz`` file: ``images``, and ``labels``, ``classes``, ``ids``."""
    path = Path(path)
    try:
        with zipfile.ZipFile(path) as archive:
            _check_growth(path, sum(entry.file_size for entry in archive.infolist()))
        with np.load(path, allow_pickle=False) as arrays:
            held = {key: arrays[key] for key in arrays.files}
    except FileNotFoundError:
        raise InputError(f"{path} does not exist") from None
    except InputError:
        raise
    except Exception as problem:  # whatever NumPy and zipfile make of damage
        raise InputError(f"{path} is not an .npz file of plain arrays ({problem})") from None
    if "images" not in held:
        raise InputError(
            f"{path} holds {', '.join(held) or 'nothing'}; expected 'images', and 'labels' and "
            "'classes' where there are any"
        )
    texts = {
        key: [str(item) for item in held[key]] if key in held else None
        for key in ("classes", "ids")
    }
    if classes is not None:
        texts["classes"] = list(classes)
    return ArraySet(name or path.stem, held["images"], held.get("labels"), **texts)


def read_npy(
    path: str | Path, name: str | None = None, classes: Sequence[str] | None = None
) -> ArraySet:
    """Read pictures from an ``.npy`` file, and their labels from the one beside it.

    That is ``test_labels.npy`` for ``test_images.npy``, and ``labels.npy`` for any other name.
    """
    path = Path(path)
    beside = path.with_name(path.name.replace("images", "labels"))
    if beside == path or not beside.is_file():
        beside = path.with_name("labels.npy")
    labels = plain_array(beside) if beside.is_file() and beside != path else None
    return ArraySet(name or path.stem, plain_array(path), labels, classes)


def plain_array(path: Path) -> npt.NDArray[np.generic]:
    """Read an array from an ``.npy`` file, where it lies, or say in a sentence why not."""
    try:
        # Not by np.load, which takes an .npz and a pickle by this name too.
        array: npt.NDArray[np.generic] = np.lib.format.open_memmap(path, mode="r")
    except FileNotFoundError:
        raise InputError(f"{path} does not exist") from None
    except Exception as problem:  # whatever NumPy makes of damage
        raise InputError(f"{path} is not a plain .npy array ({problem})") from None
    return array


def read_idx(path: str | Path) -> npt.NDArray[np.uint8]:
    """Read one of MNIST's IDX files, plain or gzipped, as a uint8 array."""
    path = Path(path)
    try:
        content = path.read_bytes()
        if content[:2] == b"\x1f\x8b":
            most = max(_SMALL, _GROWTH * len(content))
            content = gzip.GzipFile(fileobj=io.BytesIO(content)).read(most + 1)
            _check_growth(path, len(content))
    except (OSError, EOFError, zlib.error) as problem:
        raise InputError(f"cannot read {path}: {problem}") from None
    # Two zero bytes, the type (8: unsigned byte), the number of axes; then each axis's length.
    if len(content) < 4 or content[:3] != b"\0\0\x08":
        raise InputError(f"{path} is not an IDX file of unsigned bytes")
    start = 4 + 4 * content[3]
    shape = [int.from_bytes(content[at : at + 4], "big") for at in range(4, start, 4)]
    if len(content) - start != math.prod(shape):
        raise InputError(f"{path} is cut short: {len(content):,} bytes for the shape {shape}")
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape)
