"""What an augmentation is: a transform whose draws belong to its seed and the picture's key."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from shiftbed.corruptions._api import Picture, check_picture
from shiftbed.corruptions._transform import Indexed, as_array, changed_item, like
from shiftbed.errors import InputError

__all__ = ["Augmentation", "AugmentedDataset"]


@dataclass(frozen=True, kw_only=True)
class Augmentation(ABC):
    """A transform of NumPy arrays, PIL pictures and torch tensors, one picture at a time.

    It gives back what it was given: the same type, shape and device. Tensors are ``uint8``
    with channels first. Further arguments (a label, say) pass through, so that it works
    inside ``torchvision.transforms.v2.Compose``.

    What it draws depends on its seed and the ``key`` alone. Without a key, the picture's own
    content is the key: after a random crop, say, every epoch draws anew. A data set without
    such a transform before it wants an :class:`AugmentedDataset`, which gives each place of
    each epoch a key of its own.
    """

    #: Whether torch computes it.
    by_torch: ClassVar[bool] = False

    seed: int = 0

    @abstractmethod
    def apply(self, pixels: Picture, key: str) -> Picture:
        """Return an augmented copy of uint8 pixels (H, W, C), in the same shape."""

    def __call__(self, picture: Any, *rest: Any, key: str | None = None) -> Any:
        """Return the augmented picture, followed by the other arguments if there are any."""
        array = as_array(picture)
        check_picture(array)
        if key is None:
            key = hashlib.blake2b(np.ascontiguousarray(array).data, digest_size=16).hexdigest()
        pixels = np.require(array if array.ndim == 3 else array[..., None], requirements=["C", "W"])
        result = like(self.apply(pixels, key).reshape(array.shape), picture)
        return (result, *rest) if rest else result

    def generator(self, key: str) -> np.random.Generator:
        """Return the draws that belong to a key."""
        named = repr((self.seed, type(self).__name__, key))
        digest = hashlib.blake2b(named.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        return np.random.default_rng(int.from_bytes(digest, "little"))


class AugmentedDataset:
    """A map-style data set whose pictures are augmented, keyed by (epoch, place, view).

    Items are pictures, or tuples that begin with one. With ``views``, each picture becomes a
    tuple of it and that many augmented versions, as a consistency loss wants them.

    Call :meth:`set_epoch` before each epoch, as with a distributed sampler; workers that
    outlive an epoch (``persistent_workers``) do not hear of it.

    >>> import numpy as np
    >>> from shiftbed.augment import augmentation
    >>> clean = [(np.full((8, 8, 3), 9, np.uint8), "cat"), (np.zeros((8, 8, 3), np.uint8), "dog")]
    >>> augmented = AugmentedDataset(clean, augmentation("augmix"), views=2)
    >>> (picture, first, second), label = augmented[1]
    >>> len(augmented), second.shape, label
    (2, (8, 8, 3), 'dog')
    """

    def __init__(
        self, dataset: Indexed, augmentation: Augmentation, *, views: int | None = None
    ) -> None:
        if views is not None and views < 1:
            raise InputError(f"{views} augmented views were asked for; expected 1 or more")
        self.dataset = dataset
        self.augmentation = augmentation
        self.views = views
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """Draw anew: each epoch has draws of its own."""
        self.epoch = epoch

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: int) -> Any:
        return changed_item(self.dataset, index, self._shown)

    def _shown(self, picture: Any, place: int) -> Any:
        if self.views is None:
            return self.augmentation(picture, key=f"{self.epoch}:{place}")
        keys = [f"{self.epoch}.{view}:{place}" for view in range(self.views)]
        return (picture, *(self.augmentation(picture, key=key) for key in keys))
