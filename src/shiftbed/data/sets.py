"""What an image set is: pictures with stable ids, and labels if it has any."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

__all__ = ["ImageSet", "Labels", "Picture", "UnreadablePicture", "digest"]

Picture = npt.NDArray[np.uint8]
Labels = npt.NDArray[np.int64] | npt.NDArray[np.bool_]


class UnreadablePicture(Exception):  # noqa: N818 - a fact about a file, not a failure of the run
    """A picture that cannot be shown to a model, and why; the run goes on without it."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@runtime_checkable
class ImageSet(Protocol):
    """Pictures in a fixed order. Anything with these members is one.

    Labels are class indices, shape (N,); or, where a picture may have several classes or
    none, a table of truth values, shape (N, classes); or None where nobody labelled them.
    """

    @property
    def name(self) -> str:
        """The name that settings are built from, as in ``photos+fog.3``."""
        ...

    @property
    def ids(self) -> Sequence[str]:
        """One id per picture, unique, the same on every machine."""
        ...

    @property
    def labels(self) -> Labels | None:
        """Class indices (N,), or truth values (N, classes), or None."""
        ...

    @property
    def classes(self) -> Sequence[str]:
        """The classes' keys (WordNet ids or names), in the order of the labels."""
        ...

    def __len__(self) -> int:
        """How many pictures there are, readable or not."""
        ...

    def load(self, index: int) -> Picture:
        """Return one picture, uint8, (H, W) or (H, W, 3), or raise UnreadablePicture."""
        ...

    def fingerprint(self) -> str:
        """A hash that changes when the pictures, their order or their labels do."""
        ...


def digest(parts: Iterable[str | bytes]) -> str:
    """Return a short hash of parts, in which no two lists of parts run together.

    >>> digest(["a", "bc"]) == digest(["ab", "c"])
    False
    """
    state = hashlib.sha256()
    for part in parts:
        content = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        state.update(len(content).to_bytes(8, "little"))
        state.update(content)
    return state.hexdigest()[:32]
