from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from shiftbed.data import ArraySet, UnreadablePicture
from shiftbed.models import Geometry, Model


def pictures(count: int, side: int = 16, seed: int = 0) -> np.ndarray:
    """Pictures with structure, so that corruptions and models have something to change."""
    rng = np.random.default_rng(seed)
    coarse = rng.integers(0, 256, (count, 4, 4, 3))
    grown = coarse.repeat(side // 4, axis=1).repeat(side // 4, axis=2)
    return np.clip(grown + rng.normal(0, 12, grown.shape), 0, 255).astype(np.uint8)


def linear(name: str, outputs: int = 7, side: int = 16, seed: int = 1) -> Model:
    """A linear classifier whose sums depend on nothing but the picture."""
    weights = np.random.default_rng(seed).normal(0, 0.01, (side * side * 3, outputs))

    def predict(batch: np.ndarray) -> np.ndarray:
        return batch.reshape(len(batch), -1).astype(np.float64) @ weights

    return Model(
        name=name,
        spec=f"python:test:{name}",
        geometry=Geometry((side, side), (side, side), fit="squash", channels=3),
        outputs=outputs,
        predict=predict,
        weights=hashlib.sha256(weights.tobytes()).hexdigest(),
    )


@dataclass
class Broken:
    """An image set some of whose pictures cannot be read, and which counts its reading."""

    whole: ArraySet
    unreadable: dict[int, str] = field(default_factory=dict)
    loads: int = 0

    @property
    def name(self) -> str:
        return self.whole.name

    @property
    def ids(self) -> Sequence[str]:
        return self.whole.ids

    @property
    def labels(self):
        return self.whole.labels

    @property
    def classes(self) -> Sequence[str]:
        return self.whole.classes

    def __len__(self) -> int:
        return len(self.whole)

    def load(self, index: int) -> np.ndarray:
        self.loads += 1
        if index in self.unreadable:
            raise UnreadablePicture(self.unreadable[index])
        return self.whole.load(index)

    def fingerprint(self) -> str:
        return self.whole.fingerprint()


def image_set(count: int, classes: int = 7, name: str = "toys", labelled: bool = True) -> Broken:
    labels = np.arange(count) % classes if labelled else None
    return Broken(
        ArraySet(
            name,
            pictures(count),
            labels=labels,
            classes=[f"class {number}" for number in range(classes)] if labelled else None,
            ids=[f"picture-{number:04}.png" for number in range(count)],
        )
    )


def files_of(folder: Path) -> dict[str, bytes]:
    """Everything that two equal runs must have in common."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "timing.json"
    }
