"""The versions that a number was made with."""

from __future__ import annotations

import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version

__all__ = ["versions"]

_PACKAGES = (
    "numba",
    "numpy",
    "onnxruntime",
    "opencv-python-headless",
    "openvino",
    "pillow",
    "pyarrow",
    "scikit-learn",
    "scipy",
    "shiftbed",
    "timm",
    "torch",
    "torchvision",
    "transformers",
)


@cache
def versions() -> dict[str, str]:
    """Return the versions of Python, of this package, and of the libraries that compute.

    >>> sorted(versions())[:2]
    ['machine', 'numba']
    """
    found = {"machine": platform.machine(), "python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
