"""Pictures in, pictures out: the corruptions of ImageNet-C, CIFAR-C, Tiny-ImageNet-C, MNIST-C.

>>> import numpy as np
>>> picture = np.full((32, 32, 3), 128, np.uint8)
>>> corrupt(picture, "fog", 3, variant="cifar-c", key="a picture's name").dtype
dtype('uint8')
"""

from shiftbed.corruptions._api import corrupt
from shiftbed.corruptions._registry import (
    VARIANTS,
    Spec,
    corruption,
    corruption_names,
    corruptions,
    severities,
    standard_severity,
    version,
)
from shiftbed.corruptions._transform import CorruptedDataset, Corruption

__all__ = [
    "VARIANTS",
    "CorruptedDataset",
    "Corruption",
    "Spec",
    "corrupt",
    "corruption",
    "corruption_names",
    "corruptions",
    "severities",
    "standard_severity",
    "version",
]
