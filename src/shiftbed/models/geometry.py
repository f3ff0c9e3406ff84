"""Resize and crop, exactly as each model's own library does them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from shiftbed.errors import InputError

__all__ = ["ROOM", "Fit", "Geometry", "Interpolation", "ten_crops"]

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
            picture = self._resized(picture, self.resize, self.fit)
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
        self, picture: npt.NDArray[np.uint8], resize: tuple[int, int], fit: Fit
    ) -> npt.NDArray[np.uint8]:
        height, width = picture.shape[:2]
        wanted = _fitted(height, width, resize, fit)
        if wanted == (height, width):
            return picture
        if self.antialias:
            return _resized_by_pillow(picture, wanted, self.interpolation)
        return _resized_by_opencv(picture, wanted, self.interpolation)


#: How far the corner crops look beyond a model's own view where its geometry leaves no room:
#: the part of the picture that 224 of 256 pixels are.
ROOM = 8 / 7


def ten_crops(geometry: Geometry, picture: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Return ten views of a picture, uint8 (10, H, W, C): in the middle, the corners, mirrored.

    The first is what the model sees otherwise; the next four are crops of the same size from
    the corners of the resized picture; then come the mirror images of these five. Where a
    geometry resizes to the crop's own size, or not at all, the corners are those of the
    picture enlarged by 8/7.

    >>> import numpy as np
    >>> picture = np.random.default_rng(0).integers(0, 256, (60, 90, 3), np.uint8)
    >>> standard = Geometry((28, 28), (32, 32))
    >>> crops = ten_crops(standard, picture)
    >>> crops.shape, bool((crops[0] == standard.apply(picture)).all())
    ((10, 28, 28, 3), True)
    >>> bool((crops[5:] == crops[:5, :, ::-1]).all())
    True
    """
    own = geometry.apply(picture)
    height, width = own.shape[:2]
    whole = _with_room(geometry, picture, (height, width))
    down, right = whole.shape[0] - height, whole.shape[1] - width
    corners = [
        whole[top : top + height, left : left + width] for top in (0, down) for left in (0, right)
    ]
    five = np.stack([own, *corners])
    return np.concatenate([five, five[:, :, ::-1]])


def _with_room(
    geometry: Geometry, picture: npt.NDArray[np.uint8], size: tuple[int, int]
) -> npt.NDArray[np.uint8]:
    """Return a picture resized as a geometry does, not cropped, and larger than ``size``."""
    picture = _with_channels(picture, geometry.channels)
    resize, fit = geometry.resize, geometry.fit
    if geometry.size is None or resize is None:
        if geometry.size is not None and all(np.greater(picture.shape[:2], size)):
            return picture
        fit, resize = "squash", size
    if any(np.less_equal(resize, size)):
        resize = round(size[0] * ROOM), round(size[1] * ROOM)
    whole = geometry._resized(_middle(picture, resize, fit), resize, fit)
    height, width = (max(pair) for pair in zip(size, whole.shape[:2], strict=True))
    return _cropped(whole, (height, width), geometry)


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
