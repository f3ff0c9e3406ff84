"""Image sets and class spaces: labelled pictures, and what their labels mean."""

from __future__ import annotations

from shiftbed.data.arrays import ArraySet
from shiftbed.data.card import Card, ClassMap, Combine, Frames, card_of, check_score, renamed
from shiftbed.data.catalogue import SetInfo, image_set, list_sets, open_set, sets_dir
from shiftbed.data.described import Description, open_described, read_card, write_card
from shiftbed.data.files import (
    FileSet,
    found_path,
    parsed_csv,
    parsed_json,
    read_text,
    read_toml,
)
from shiftbed.data.folder import image_folder
from shiftbed.data.huggingface import Dataset, is_dataset
from shiftbed.data.imagenet import imagenet_classes, imagenet_names
from shiftbed.data.sets import ImageSet, Labels, Picture, UnreadablePicture, digest
from shiftbed.data.spaces import ClassSpace, KeyIndex, match_classes, read_class_map
from shiftbed.data.subset import Subset, of_classes
from shiftbed.data.table import labelled_files, read_table

__all__ = [
    "ArraySet",
    "Card",
    "ClassMap",
    "ClassSpace",
    "Combine",
    "Dataset",
    "Description",
    "FileSet",
    "Frames",
    "ImageSet",
    "KeyIndex",
    "Labels",
    "Picture",
    "SetInfo",
    "Subset",
    "UnreadablePicture",
    "card_of",
    "check_score",
    "digest",
    "found_path",
    "image_folder",
    "image_set",
    "imagenet_classes",
    "imagenet_names",
    "is_dataset",
    "labelled_files",
    "list_sets",
    "match_classes",
    "of_classes",
    "open_described",
    "open_set",
    "parsed_csv",
    "parsed_json",
    "read_card",
    "read_class_map",
    "read_table",
    "read_text",
    "read_toml",
    "renamed",
    "sets_dir",
    "write_card",
]
