"""The pretrained classifiers that arrive inside packages, on the labelled photographs."""

from __future__ import annotations

import numpy as np
import pytest

from shiftbed import InputError, data, models


@pytest.mark.parametrize(
    ("name", "right"),
    [
        ("efficientnet_lite0", 18),
        pytest.param("efficientnet_lite1", 18, marks=pytest.mark.slow),
        pytest.param("efficientnet_lite2", 18, marks=pytest.mark.slow),
        pytest.param("resnet50_keras", 19, marks=pytest.mark.slow),
        pytest.param("squeezenet1_1_keras", 14, marks=pytest.mark.slow),
    ],
)
def test_they_know_as_many_photographs_as_their_publishers_code(name: str, right: int) -> None:
    if name.startswith("squeezenet"):
        pytest.importorskip("h5py")
    try:
        photos = data.open_set("imagenet-photos")
        model = models.load(f"package:{name}")
    except InputError as problem:
        if "cannot fetch" in str(problem) or "not on this machine" in str(problem):
            pytest.skip(str(problem))
        raise
    batch = np.stack([model.geometry.apply(photos.load(i)) for i in range(len(photos))])
    space = data.match_classes(photos.classes, model.class_keys, model.outputs)
    answers = space.scores(model.logits(batch)).argmax(axis=1)
    assert (answers == photos.labels).sum() == right
    assert model.differentiable
    assert model.fingerprint() == models.load(f"package:{name}").fingerprint()
