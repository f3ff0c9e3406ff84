"""Decoding: one rule from any picture file to uint8 RGB, or a reason why not.

The rule is Pillow's ``convert("RGB")``, as torchvision's and timm's own readers use it:
greyscale becomes three equal channels, CMYK and palettes are converted, transparency is
dropped, the first frame of an animation is taken, and the EXIF orientation is ignored unless
it is asked for, as it was when the published figures were measured. Pictures of 16 bits per
channel are refused, because every library cuts them down to 8 in its own way.
"""

from __future__ import annotations

import stat
import warnings
from io import BytesIO
from pathlib import Path

import numpy as np

from shiftbed.data.sets import Picture, UnreadablePicture

__all__ = ["read_picture"]

_PILLOW = r"PIL\."


def read_picture(path: Path | BytesIO, *, orient: bool = False) -> Picture:
    """Return a picture file as uint8 (H, W, 3), or raise UnreadablePicture with the reason."""
    from PIL import Image, ImageOps, UnidentifiedImageError

    _hush()
    try:
        # A pipe would be waited for without end.
        if isinstance(path, Path) and not stat.S_ISREG(path.stat().st_mode):
            raise UnreadablePicture("not a file")
        with Image.open(path) as image:
            if _deep(image):
                raise UnreadablePicture("16 bits or more per channel; convert it to 8 bits")
            if image.mode == "P" and "transparency" in image.info:
                converted = image.convert("RGBA").convert("RGB")
            else:
                converted = image.convert("RGB")
            if orient:
                # convert() drops no EXIF, so the tag is still there to be read.
                converted = ImageOps.exif_transpose(converted)
            return np.asarray(converted)
    except FileNotFoundError:
        raise UnreadablePicture("the file is gone") from None
    except UnidentifiedImageError:
        size = path.stat().st_size if isinstance(path, Path) else len(path.getvalue())
        raise UnreadablePicture("not a picture" if size else "an empty file") from None
    except Image.DecompressionBombError:
        raise UnreadablePicture("too many pixels: a decompression bomb?") from None
    except PermissionError:
        raise UnreadablePicture("no permission to read it") from None
    except (OSError, SyntaxError, ValueError, EOFError) as problem:
        raise UnreadablePicture(_said(problem)) from None


def _hush() -> None:
    """Let Pillow not warn of odd metadata and large pictures: it is the pixels that count.

    Not by ``catch_warnings``, which is not safe in threads.
    """
    for _, _, _, module, _ in warnings.filters:
        if getattr(module, "pattern", None) == _PILLOW:
            return
    warnings.filterwarnings("ignore", module=_PILLOW)


def _deep(image: object) -> bool:
    """Whether a picture has more than 8 bits per channel, which ``mode`` may not show."""
    mode = str(getattr(image, "mode", ""))
    raw = " ".join(str(tile[3]) for tile in getattr(image, "tile", []) if len(tile) > 3)
    return mode.startswith(("I", "F")) or ";16" in raw


def _said(problem: Exception) -> str:
    text = (getattr(problem, "strerror", None) or str(problem)).strip().rstrip(".")
    if "truncated" in text or "Truncated" in text:
        return "truncated"
    return f"damaged: {text}" if text else f"damaged: {type(problem).__name__}"
