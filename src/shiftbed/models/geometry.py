"""Resize and crop, exactly as each model's own library does them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from shiftbed.errors import InputError

__all__ = ["Fit", "Geometry", "Interpolation"]

Interpolation = Literal["nearest", "bilinear", "bicubic", "lanczos", "box", "hamming"]
Fit = Literal["shorter", "squash", "cover", "contain"]


@dataclass(frozen=True)
class Geometry:
    """How a picture becomes what a model sees. Models with equal geometries share the work.

    The picture is resized, then cropped at its centre. ``Geometry()`` leaves it as it is.

    >>> import numpy as np
    >>> standard = Geometry((224, 224), (256, 256), channels=3)
    >>> standard.apply(np.zeros((480, 640, 3), np.uint8)).shape
    (224, 224, 3)
    >>> Geometry((28, 28), channels=1).apply(np.zeros((28, 28), np.uint8)).shape
    (28, 28, 1)
    """

    #: (height, width) that the model sees; None: whatever the picture has.
    size: tuple[int, int] | None = None
    #: (height, width) that the picture is resized to before the crop; None: not resized.
    resize: tuple[int, int] | None = None
    #: ``shorter``: the shorter side becomes ``resize[0]`` (torchvision's rule for the other);
    #: ``squash``: to exactly ``resize``, whatever the aspect; ``cover`` and ``contain``: the
    #: aspect is kept, and the picture covers ``resize`` or fits into it (timm's rule).
    fit: Fit = "shorter"
    interpolation: Interpolation = "bilinear"
    #: Widen the filter when shrinking, as Pillow does. False: as OpenCV or torch do without.
    antialias: bool = True
    #: 1 or 3; None: whatever the picture has.
    channels: int | None = None
    #: What surrounds a picture smaller than the crop.
    fill: tuple[int, int, int] = (0, 0, 0)
    #: Where half a pixel goes when the crop is centred: to the even side, as torchvision and
    #: timm have it, or up and left, as transformers has it.
    centre: Literal["even", "down"] = "even"

    def apply(self, picture: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
        """Return uint8 (H, W, channels) for a uint8 picture (H, W) or (H, W, 3)."""
        picture = _with_channels(picture, self.channels)
        if self.resize is not None:
            if self.size is not None:
                picture = _middle(picture, self.resize, self.fit)
            picture = self._resized(picture, self.resize)
        if self.size is not None:
            picture = _cropped(picture, self.size, self)
        return np.ascontiguousarray(picture)

    def __str__(self) -> str:
        """A short text for tables and logs."""
        if self.size is None:
            return "as is"
        size = "x".join(str(side) for side in self.size)
        if self.resize is None:
            return f"{size} crop"
        how = "" if self.antialias else ", not antialiased"
        return f"{size} from {self.fit} {max(self.resize)}, {self.interpolation}{how}"

    def _resized(
        self, picture: npt.NDArray[np.uint8], resize: tuple[int, int]
    ) -> npt.NDArray[np.uint8]:
        height, width = picture.shape[:2]
        wanted = _fitted(height, width, resize, self.fit)
        if wanted == (height, width):
            return picture
        if self.antialias:
            return _resized_by_pillow(picture, wanted, self.interpolation)
        return _resized_by_opencv(picture, wanted, self.interpolation)


#: A picture that would have more pixels when resized is cut first: one row of 10,000 pixels
#: whose height becomes 256 would take 2 GB, of which the crop keeps 150 kB.
_MOST_PIXELS = 2**26
_KEPT = 8


def _middle(
    picture: npt.NDArray[np.uint8], resize: tuple[int, int], fit: Fit
) -> npt.NDArray[np.uint8]:
    """Return what a centre crop can see of a very long picture, with room to spare.

    >>> _middle(np.zeros((2, 10_000, 3), np.uint8), (256, 256), "shorter").shape
    (2, 16, 3)
    """
    height, width = picture.shape[:2]
    short = min(height, width)
    if math.prod(_fitted(height, width, resize, fit)) <= max(_MOST_PIXELS, 8 * math.prod(resize)):
        return picture
    # The same on both sides, so that the middle stays where it is.
    top, left = (max(0, (side - _KEPT * short) // 2) for side in (height, width))
    return picture[top : height - top, left : width - left]


def _fitted(height: int, width: int, resize: tuple[int, int], fit: Fit) -> tuple[int, int]:
    """Return the (height, width) that a picture is resized to."""
    if fit == "squash":
        return resize
    if fit == "shorter":  # torchvision: the longer side is rounded down
        long = int(resize[0] * max(height, width) / min(height, width))
        return (resize[0], long) if height <= width else (long, resize[0])
    ratios = height / resize[0], width / resize[1]
    ratio = min(ratios) if fit == "cover" else max(ratios)
    return max(1, round(height / ratio)), max(1, round(width / ratio))


def _with_channels(picture: npt.NDArray[np.uint8], channels: int | None) -> npt.NDArray[np.uint8]:
    if picture.ndim == 2:
        picture = picture[:, :, None]
    if channels is None or picture.shape[2] == channels:
        return picture
    if channels == 3 and picture.shape[2] == 1:
        return np.repeat(picture, 3, axis=2)
    if channels == 1 and picture.shape[2] == 3:
        from PIL import Image

        return np.asarray(Image.fromarray(picture).convert("L"))[:, :, None]
    raise InputError(
        f"a picture of {picture.shape[2]} channels cannot be shown to a model that wants "
        f"{channels}; 1 and 3 are understood"
    )


def _resized_by_pillow(
    picture: npt.NDArray[np.uint8], size: tuple[int, int], interpolation: Interpolation
) -> npt.NDArray[np.uint8]:
    from PIL import Image

    method = Image.Resampling[interpolation.upper()]
    image = Image.fromarray(picture[:, :, 0] if picture.shape[2] == 1 else picture)
    resized = np.asarray(image.resize((size[1], size[0]), method))
    return resized[:, :, None] if resized.ndim == 2 else resized


def _resized_by_opencv(
    picture: npt.NDArray[np.uint8], size: tuple[int, int], interpolation: Interpolation
) -> npt.NDArray[np.uint8]:
    import cv2

    methods = {
        "nearest": cv2.INTER_NEAREST,
        "bilinear": cv2.INTER_LINEAR,
        "bicubic": cv2.INTER_CUBIC,
        "lanczos": cv2.INTER_LANCZOS4,
        "box": cv2.INTER_AREA,
    }
    if interpolation not in methods:
        raise InputError(f"{interpolation} interpolation is always antialiased")
    # In float, because OpenCV's uint8 kernels round their weights to 11 bits.
    resized = cv2.resize(
        picture.astype(np.float32), (size[1], size[0]), interpolation=methods[interpolation]
    )
    rounded = np.clip(np.rint(resized), 0, 255).astype(np.uint8)
    return rounded[:, :, None] if rounded.ndim == 2 else rounded


def _cropped(
    picture: npt.NDArray[np.uint8], size: tuple[int, int], how: Geometry
) -> npt.NDArray[np.uint8]:
    height, width, channels = picture.shape
    down, right = max(size[0] - height, 0), max(size[1] - width, 0)
    if down or right:
        padded = np.empty((height + down, width + right, channels), np.uint8)
        padded[:] = how.fill[:channels]
        padded[down // 2 : down // 2 + height, right // 2 : right // 2 + width] = picture
        picture, height, width = padded, height + down, width + right
    # Python's round, half to even, is torchvision's too.
    centred = round if how.centre == "even" else math.floor
    top, left = centred((height - size[0]) / 2), centred((width - size[1]) / 2)
    return picture[top : top + size[0], left : left + size[1]]
