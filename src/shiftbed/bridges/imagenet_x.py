"""Predictions in the form that ImageNet-X reads."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from shiftbed.results import Results, export

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["write_imagenet_x"]


def write_imagenet_x(results: Results, model: str, setting: str, file: str | Path) -> Path:
    """Write a cell as ``file_name,predicted_class,predicted_probability``, and return the file.

    Classes are numbers in the order of the setting's class space. ``shiftbed import`` reads
    such files as well.
    """
    import pyarrow as pa

    rows = results.predictions(model, setting)
    table: pa.Table = pa.table(
        {
            "file_name": _names(rows["picture"].to_pylist()),
            "predicted_class": rows["class1"],
            "predicted_probability": rows["confidence"],
        }
    )
    return export(table, file)


def _names(pictures: list[str]) -> list[str]:
    """Return names without folders, as ImageNet-X has them, if these tell pictures apart.

    >>> _names(["n01/1.JPEG", "n02/2.JPEG"]), _names(["cat/1.png", "dog/1.png"])
    (['1.JPEG', '2.JPEG'], ['cat/1.png', 'dog/1.png'])
    """
    short = [picture.rpartition("/")[2] for picture in pictures]
    return short if len(set(short)) == len(short) else pictures
