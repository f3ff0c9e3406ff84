"""Pictures as they are found in the wild and as nobody would wish them."""

from __future__ import annotations

import io
import os
import struct
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from PIL import Image

__all__ = ["corpus", "drawn"]


def drawn(height: int = 40, width: int = 48) -> np.ndarray:
    """A picture whose every pixel differs from its neighbours and from itself turned round."""
    rows, columns = np.indices((height, width))
    levels = np.stack([5 * rows + columns, 3 * columns, 255 - 4 * rows + columns], axis=2)
    return (levels % 256).astype(np.uint8)


def _saved(picture: np.ndarray | Image.Image, kind: str, **options: object) -> bytes:
    sink = io.BytesIO()
    image = picture if isinstance(picture, Image.Image) else Image.fromarray(picture)
    image.save(sink, kind, **options)
    return sink.getvalue()


def _png(width: int, height: int, depth: int, colour: int, rows: bytes) -> bytes:
    """A PNG made by hand: what no library would write."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        checked = kind + content
        return struct.pack(">I", len(content)) + checked + struct.pack(">I", zlib.crc32(checked))

    head = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    parts = [chunk(b"IHDR", head), chunk(b"IDAT", zlib.compress(rows, 9)), chunk(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def _rotated() -> bytes:
    image = Image.fromarray(drawn())
    exif = image.getexif()
    exif[0x0112] = 6
    return _saved(image, "PNG", exif=exif)


def _readable() -> Iterator[tuple[str, bytes, np.ndarray]]:
    """Names, files and pixels of what must be scored, and rightly."""
    whole = drawn()
    yield "whole.png", _saved(whole, "PNG"), whole
    yield "a PNG named.jpg", _saved(whole, "PNG"), whole
    yield "no suffix", _saved(whole, "BMP"), whole
    yield "line\nfeed.png", _saved(whole, "PNG"), whole
    yield "\x1b[31mred.png", _saved(whole, "PNG"), whole
    yield "ünïcødé ☃.png", _saved(whole, "PNG"), whole
    yield "' ; -- \" [b] *.png", _saved(whole, "PNG"), whole
    yield "lossless.webp", _saved(whole, "WEBP", lossless=True), whole
    for kind in ("JPEG", "WEBP"):
        content = _saved(whole, kind)
        decoded = np.asarray(Image.open(io.BytesIO(content)).convert("RGB"))
        yield f"lossy.{kind.lower()}", content, decoded
    grey = whole[..., 0]
    yield "grey.png", _saved(grey, "PNG"), np.repeat(grey[..., None], 3, 2)
    one_bit = Image.fromarray(grey).convert("1")
    yield "one bit.png", _saved(one_bit, "PNG"), np.asarray(one_bit.convert("RGB"))
    palette = Image.fromarray(whole).quantize(16)
    yield "palette.png", _saved(palette, "PNG"), np.asarray(palette.convert("RGB"))
    alpha = np.dstack([whole, whole[..., 0]])
    yield "alpha.png", _saved(alpha, "PNG"), whole
    cmyk = Image.fromarray(whole).convert("CMYK")
    yield "cmyk.tif", _saved(cmyk, "TIFF"), np.asarray(cmyk.convert("RGB"))
    frames = [Image.fromarray(frame).quantize(64) for frame in (whole, whole[::-1])]
    animated = _saved(frames[0], "GIF", save_all=True, append_images=frames[1:])
    yield "animated.gif", animated, np.asarray(frames[0].convert("RGB"))
    both = [Image.fromarray(frame) for frame in (whole, whole[::-1])]
    moving = _saved(both[0], "PNG", save_all=True, append_images=both[1:])
    yield "animated.png", moving, whole
    yield "exif rotated.png", _rotated(), whole  # the orientation is not asked for
    yield "one pixel.png", _saved(whole[:1, :1], "PNG"), whole[:1, :1]
    for shape in ((1, 10_000), (10_000, 1)):
        line = np.resize(whole, (*shape, 3))
        yield f"{shape[0]}x{shape[1]}.png", _saved(line, "PNG"), line


def _unreadable() -> Iterator[tuple[str, bytes, str]]:
    """Names, files and reasons of what must be listed."""
    whole = drawn()
    rough = np.random.default_rng(0).integers(0, 256, (64, 64, 3), np.uint8)
    for kind in ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF"):
        content = _saved(rough, kind)
        yield f"cut short.{kind.lower()}", content[: len(content) // 2], "truncated|damaged"
    yield "nothing.png", b"", "an empty file"
    yield "text.jpg", b"I am no picture", "not a picture"
    yield "script.png", b"<svg onload='alert(1)'/>", "not a picture"
    yield "16 bits.png", _saved(whole[..., 0].astype(np.uint16) * 257, "PNG"), "16 bits"
    deep = b"".join(b"\0" + bytes(48 * 6) for _ in range(40))
    yield "16 bits each.png", _png(48, 40, 16, 2, deep), "16 bits"
    # 4 gigapixels of zeros in some kilobytes; its end is never reached.
    bomb = _png(65_500, 65_500, 8, 2, bytes(1 << 20))
    yield "bomb.png", bomb, "too many pixels"
    yield "no pixels.png", _png(0, 0, 8, 2, b""), "damaged|not a picture"
    flipped = bytearray(_saved(rough, "PNG"))
    flipped[len(flipped) // 2] ^= 255
    yield "flipped.png", bytes(flipped), "damaged|truncated"


def corpus(folder: Path) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Write the corpus; return the pixels of what must be scored, and reasons for the rest.

    Keys are ids. What this system cannot name is left out.
    """
    good: dict[str, np.ndarray] = {}
    bad: dict[str, str] = {}
    for number, (name, content, pixels) in enumerate(_readable()):
        if _wrote(folder, f"class {number % 3}/{name}", lambda p, c=content: p.write_bytes(c)):
            good[f"class {number % 3}/{name}"] = pixels
    for number, (name, content, reason) in enumerate(_unreadable()):
        if _wrote(folder, f"class {number % 3}/{name}", lambda p, c=content: p.write_bytes(c)):
            bad[f"class {number % 3}/{name}"] = reason
    links = {"a loop.png": "a loop.png", "dead.png": "nowhere.png"}
    for name, target in links.items():
        if _wrote(folder, f"class 0/{name}", lambda p, t=target: p.symlink_to(t)):
            bad[f"class 0/{name}"] = "gone|damaged|loop|symbolic links"
    _wrote(folder, "class 1/back", lambda p: p.symlink_to(folder, target_is_directory=True))
    if hasattr(os, "mkfifo") and _wrote(folder, "class 2/pipe.png", os.mkfifo):
        bad["class 2/pipe.png"] = "not a file"
    strange = os.fsdecode(b"class 2/\xff\xfe not UTF-8.png")
    content = _saved(drawn(), "PNG")
    if _wrote(folder, strange, lambda p: p.write_bytes(content)):
        good[strange] = drawn()
    return good, bad


def _wrote(folder: Path, name: str, write: Callable[[Path], object]) -> bool:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        write(path)
    except (OSError, UnicodeError, NotImplementedError):  # a name that this system does not take
        return False
    return True
