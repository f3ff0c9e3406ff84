"""The pictures of a training: cut, mirrored and changed by draws that belong to each picture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import torch
from torch.utils.data import Dataset, Sampler

from shiftbed.augment import Augmentation
from shiftbed.data import ImageSet, Picture, Subset, UnreadablePicture
from shiftbed.errors import InputError
from shiftbed.models import Geometry
from shiftbed.train.recipe import Crop, Recipe

__all__ = ["Batches", "Shown", "geometry_of", "mean_and_std", "shown"]

#: A pass, a picture's place in the set, and its turn in the pass.
_Item = tuple[int, int, int]
_Batch = tuple[torch.Tensor, torch.Tensor]

#: Sets up to this size are decoded once and kept.
_KEPT_BYTES = 2**31
#: So many pictures are looked at for the mean and the standard deviation.
_LOOKED_AT = 4096


@dataclass(frozen=True, eq=False)
class Shown(Dataset[_Batch]):
    """Pictures as a network is shown them: uint8 (views, C, H, W), and their labels.

    What is drawn depends on the seed, the pass, the picture and its turn alone: not on the
    number of workers, or where a training was interrupted.
    """

    images: ImageSet
    labels: npt.NDArray[np.int64]
    geometry: Geometry
    side: int
    channels: int
    crop: Crop
    mirror: bool
    preprocess: tuple[Augmentation, ...]
    #: And of how many of the pictures: 1 of all.
    augment: tuple[tuple[Augmentation, float], ...]
    #: How many views of each picture: the plain one, then changed ones; 1: a changed one.
    views: int
    seed: int
    #: All pictures in the geometry, with the edges that they are cropped from, where they fit.
    kept: npt.NDArray[np.uint8] | None = None

    @property
    def edge(self) -> int:
        """How far a picture is continued on each side, for a crop that may begin anywhere."""
        return max(1, self.side // 8) if self.crop == "pad" else 0

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, item: _Item) -> _Batch:
        return self.__getitems__([item])

    def __getitems__(self, items: Sequence[_Item]) -> _Batch:
        """Return a batch of pictures."""
        seen = np.stack([self._views(*item) for item in items])
        labels = self.labels[[place for _, place, _ in items]]
        return torch.from_numpy(seen.transpose(0, 1, 4, 2, 3)), torch.from_numpy(labels)

    def _views(self, epoch: int, place: int, turn: int) -> npt.NDArray[np.uint8]:
        rng = np.random.default_rng((self.seed, epoch, place))
        picture = self._read(place)
        if self.mirror and rng.random() < 0.5:
            picture = picture[:, ::-1]
        picture = self._cut(picture, rng)
        # Keys that count on let pictures of one batch share what is slow to draw.
        if self.views == 1:
            return self._changed(picture, f"{epoch}:{turn}", rng)[None]
        keys = [f"{epoch}.{view}:{turn}" for view in range(self.views - 1)]
        changed = [self._changed(picture, key, rng) for key in keys]
        return np.stack([self.prepared(picture), *changed])

    def plain(self, place: int) -> Picture:
        """Return a picture as evaluation shows it."""
        picture = self._read(place)
        if self.edge:
            picture = picture[self.edge : -self.edge, self.edge : -self.edge]
        if self.crop == "resized":
            picture = geometry_of(self.side, self.channels).apply(picture)
        return self.prepared(np.ascontiguousarray(picture))

    def _read(self, place: int) -> Picture:
        if self.kept is not None:
            picture: Picture = self.kept[place]
        else:
            picture = continued(_load(self.images, place, self.geometry)[None], self.edge)[0]
        return picture

    def _cut(self, picture: Picture, rng: np.random.Generator) -> Picture:
        side = self.side
        if self.crop == "resized":
            return _random_part(picture, side, rng)
        if self.edge:
            top, left = rng.integers(0, 2 * self.edge + 1, 2)
            picture = picture[top : top + side, left : left + side]
        return np.ascontiguousarray(picture)

    def _changed(self, picture: Picture, key: str, rng: np.random.Generator) -> Picture:
        for one, share in self.augment:
            if share == 1 or rng.random() < share:
                picture = one(picture, key=key)
        return self.prepared(picture)

    def prepared(self, picture: Picture) -> Picture:
        """Return a picture with what is done to all, in training and ever after."""
        for one in self.preprocess:
            picture = one(picture, key="")
        return picture


def continued(pictures: npt.NDArray[np.uint8], edge: int) -> npt.NDArray[np.uint8]:
    """Return pictures (N, H, W, C) that are mirrored at their edges.

    >>> continued(np.arange(4, dtype=np.uint8).reshape(1, 1, 4, 1), 0).shape
    (1, 1, 4, 1)
    """
    if not edge:
        return pictures
    return np.pad(pictures, ((0, 0), (edge, edge), (edge, edge), (0, 0)), mode="reflect")


def _random_part(picture: Picture, side: int, rng: np.random.Generator) -> Picture:
    """Return 8% to 100% of a picture, of an aspect from 3:4 to 4:3, resized to the side."""
    height, width = picture.shape[:2]
    area = height * width * rng.uniform(0.08, 1)
    aspect = np.exp(rng.uniform(np.log(3 / 4), np.log(4 / 3)))
    tall = int(np.clip(round(float(np.sqrt(area / aspect))), 1, height))
    wide = int(np.clip(round(float(np.sqrt(area * aspect))), 1, width))
    top, left = rng.integers(0, height - tall + 1), rng.integers(0, width - wide + 1)
    part = np.ascontiguousarray(picture[top : top + tall, left : left + wide])
    return Geometry(resize=(side, side), fit="squash").apply(part)


def shown(
    images: ImageSet,
    recipe: Recipe,
    preprocess: Sequence[Augmentation] = (),
    augment: Sequence[tuple[Augmentation, float]] = (),
    *,
    views: int = 1,
) -> Shown:
    """Return an image set as a recipe shows it."""
    if images.labels is None or images.labels.ndim != 1:
        lacks = "no labels" if images.labels is None else "several labels for a picture"
        raise InputError(f"{images.name} has {lacks}; a training needs one label for each picture")
    if (images.labels < 0).any():  # shown to models, but nobody said what they are
        images = Subset(images, np.flatnonzero(images.labels >= 0), images.name)
    if not len(images):
        raise InputError(f"{images.name} has no labelled pictures to train on")
    first = _load(images, 0, Geometry())
    channels = recipe.channels or first.shape[2]
    side = recipe.size or first.shape[0]
    if recipe.size is None and first.shape[0] != first.shape[1]:
        raise InputError(
            f"the pictures of {images.name} are {first.shape[1]} px wide and {first.shape[0]} px "
            "high; say the side that the network is to see with size"
        )
    geometry = geometry_of(side, channels, whole=recipe.crop == "resized")
    labels = np.asarray(images.labels, np.int64)
    made = Shown(
        images,
        labels,
        geometry,
        side,
        channels,
        recipe.crop,
        recipe.mirror,
        tuple(preprocess),
        tuple(augment),
        views,
        recipe.seed,
    )
    size = side + 2 * made.edge
    if recipe.crop != "resized" and len(images) * size * size * channels <= _KEPT_BYTES:
        whole = np.stack([_load(images, place, geometry) for place in range(len(images))])
        return replace(made, kept=continued(whole, made.edge))
    return made


def geometry_of(side: int, channels: int, *, whole: bool = False) -> Geometry:
    """Return how pictures are brought to a side; ``whole``: only the channels are changed.

    >>> str(geometry_of(32, 3))
    '32x32 from shorter 32, bilinear'
    """
    if whole:
        return Geometry(channels=channels)
    return Geometry((side, side), (side, side), channels=channels)


def _load(images: ImageSet, place: int, geometry: Geometry) -> Picture:
    try:
        return geometry.apply(images.load(place))
    except UnreadablePicture as problem:
        raise InputError(
            f"{images.ids[place]!r} of {images.name} cannot be read ({problem.reason}); mend it, "
            "or take it away"
        ) from None


def mean_and_std(pictures: Shown) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the mean and the standard deviation of each channel, of pixels in [0, 1]."""
    places = np.linspace(0, len(pictures) - 1, min(len(pictures), _LOOKED_AT)).astype(int)
    total = square = 0.0
    count = 0
    for place in places:
        seen = pictures.plain(int(place)) / 255.0
        pixels = seen.reshape(-1, seen.shape[2])
        total = total + pixels.sum(axis=0)
        square = square + (pixels**2).sum(axis=0)
        count += len(pixels)
    mean = np.asarray(total) / count
    std = np.sqrt(np.maximum(np.asarray(square) / count - mean**2, 1e-6))
    return tuple(round(float(one), 4) for one in mean), tuple(round(float(one), 4) for one in std)


@dataclass(frozen=True, eq=False)
class Batches(Sampler[list[_Item]]):
    """The batches of one pass from ``start`` on; the last, if it is not full, is left out."""

    count: int
    batch_size: int
    seed: int
    epoch: int
    start: int = 0
    drop_last: bool = True

    def __len__(self) -> int:
        return self.count // self.batch_size - self.start

    def __iter__(self) -> Iterator[list[_Item]]:
        order = np.random.default_rng((self.seed, self.epoch)).permutation(self.count)
        for number in range(self.start, self.count // self.batch_size):
            turns = range(number * self.batch_size, (number + 1) * self.batch_size)
            yield [(self.epoch, int(order[turn]), turn) for turn in turns]
