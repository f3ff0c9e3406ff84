"""Image sets and class spaces: labelled pictures, and what their labels mean."""

from __future__ import annotations

from shiftbed.data.arrays import ArraySet
from shiftbed.data.catalogue import SetInfo, image_set, list_sets, open_set
from shiftbed.data.files import FileSet, found_path
from shiftbed.data.folder import image_folder
from shiftbed.data.imagenet import imagenet_classes, imagenet_names
from shiftbed.data.sets import ImageSet, Labels, Picture, UnreadablePicture, digest
from shiftbed.data.spaces import ClassMap, ClassSpace, Combine, match_classes, read_class_map

__all__ = [
    "ArraySet",
    "ClassMap",
    "ClassSpace",
    "Combine",
    "FileSet",
    "ImageSet",
    "Labels",
    "Picture",
    "SetInfo",
    "UnreadablePicture",
    "digest",
    "found_path",
    "image_folder",
    "image_set",
    "imagenet_classes",
    "imagenet_names",
    "list_sets",
    "match_classes",
    "open_set",
    "read_class_map",
]
