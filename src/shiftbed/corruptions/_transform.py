"""Corruptions where training code wants them: as transforms and as data sets."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from shiftbed.corruptions import _registry
from shiftbed.corruptions._api import _check_options, corrupt
from shiftbed.errors import InputError


@dataclass(frozen=True)
class Corruption:
    """A corruption as a transform of NumPy arrays, PIL pictures and torch tensors.

    It gives back what it was given: the same type, shape and device. Tensors are ``uint8``
    with channels first. Further arguments (a label, say) pass through, so that it works
    inside ``torchvision.transforms.v2.Compose``.

    The draws are keyed by the picture's own content: the same picture is corrupted the same
    way whatever its place in an epoch, the batch size or the number of workers. Use
    :class:`CorruptedDataset` to key by position instead.

    >>> import numpy as np
    >>> fog = Corruption("fog", 3, seed=1)
    >>> picture = np.full((16, 16, 3), 60, np.uint8)
    >>> bool((fog(picture) == fog(picture.copy())).all())
    True
    """

    name: str
    severity: int | None = None
    variant: str = "imagenet-c"
    seed: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        spec = _registry.get(self.name, self.variant)
        spec.arguments(self.severity)
        _check_options(spec, dict(self.options))

    def __call__(self, picture: Any, *rest: Any, key: str | None = None) -> Any:
        """Return the corrupted picture, followed by the other arguments if there are any."""
        array = as_array(picture)
        if key is None:
            key = hashlib.blake2b(np.ascontiguousarray(array).data, digest_size=16).hexdigest()
        corrupted = corrupt(
            array,
            self.name,
            self.severity,
            variant=self.variant,
            seed=self.seed,
            key=key,
            **self.options,
        )
        result = like(corrupted, picture)
        return (result, *rest) if rest else result


class Indexed(Protocol):
    """A map-style data set."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> Any: ...


class CorruptedDataset:
    """A map-style data set whose pictures are corrupted, keyed by (seed, index).

    Items are pictures, or tuples that begin with one. It is itself a map-style data set, for
    ``torch.utils.data.DataLoader`` with any number of workers.

    >>> import numpy as np
    >>> clean = [(np.full((8, 8, 3), 9, np.uint8), "cat"), (np.zeros((8, 8, 3), np.uint8), "dog")]
    >>> noisy = CorruptedDataset(clean, Corruption("gaussian_noise", 1))
    >>> len(noisy), noisy[1][1]
    (2, 'dog')
    """

    def __init__(self, dataset: Indexed, corruption: Corruption) -> None:
        self.dataset = dataset
        self.corruption = corruption

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: int) -> Any:
        return changed_item(
            self.dataset, index, lambda picture, place: self.corruption(picture, key=str(place))
        )


def changed_item(dataset: Indexed, index: int, change: Callable[[Any, int], Any]) -> Any:
    """Return an item whose picture is changed, given its place from 0; the rest stays.

    >>> changed_item([("b", 1), ("c", 2)], -1, lambda picture, place: f"{picture}{place}")
    ('c1', 2)
    """
    place = index + len(dataset) if index < 0 else index
    if not 0 <= place < len(dataset):
        raise IndexError(f"there are {len(dataset)} pictures")
    item = dataset[place]
    if isinstance(item, tuple):
        return (change(item[0], place), *item[1:])
    return change(item, place)


def _is_tensor(picture: object) -> bool:
    """Say whether it is a torch tensor or a subclass, without importing torch."""
    return any(
        base.__module__.partition(".")[0] == "torch" and base.__name__ == "Tensor"
        for base in type(picture).__mro__
    )


def as_array(picture: Any) -> Any:
    """Return a picture of any kind as an array, channels last."""
    if isinstance(picture, np.ndarray):
        if picture.ndim == 4:
            raise InputError(
                f"a Corruption takes one picture, but an array of shape {picture.shape} was "
                "given; corrupt(...) takes batches"
            )
        return picture
    if _is_tensor(picture):
        if picture.ndim != 3 or picture.shape[0] not in (1, 3):
            raise InputError(
                f"a picture tensor has shape (1 or 3, H, W), but {tuple(picture.shape)} was given"
            )
        if str(picture.dtype) != "torch.uint8":
            raise InputError(
                f"a picture tensor is uint8, but {picture.dtype} was given; "
                "scale it to 0..255 and convert it"
            )
        return picture.detach().cpu().numpy().transpose(1, 2, 0)
    mode = getattr(picture, "mode", None)
    if mode in ("L", "RGB"):
        return np.asarray(picture)
    if mode is not None:
        if mode.startswith(("I", "F")):  # Pillow would cut off what is above 255
            advice = "more than 8 bits are not supported: scale it to 0..255 and convert it to L"
        else:
            advice = "convert it first, with .convert('RGB')"
        raise InputError(f"a PIL picture of mode {mode!r} was given; {advice}")
    raise InputError(
        "a picture is a uint8 NumPy array, a PIL picture or a torch tensor, but "
        f"{type(picture).__name__} was given"
    )


def like(array: Any, picture: Any) -> Any:
    """Return the array as what the picture was."""
    if isinstance(picture, np.ndarray):
        return array
    if _is_tensor(picture):
        import sys

        torch = sys.modules["torch"]
        plain = torch.from_numpy(np.ascontiguousarray(array.transpose(2, 0, 1)))
        return plain.to(picture.device).as_subclass(type(picture))
    from PIL import Image

    return Image.fromarray(array)
