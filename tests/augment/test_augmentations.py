from __future__ import annotations

import dataclasses
import pickle

import cv2
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from PIL import Image, ImageOps

from shiftbed.augment import (
    AugmentedDataset,
    augmentation,
    augmentation_names,
    jensen_shannon,
    preprocessed,
    ten_crop_averaged,
)
from shiftbed.augment.mixing import OPERATIONS, AugMix
from shiftbed.augment.restoring import noise_level
from shiftbed.corruptions import corruption_names
from shiftbed.errors import InputError
from shiftbed.models import load
from shiftbed.models._torchvision import import_torchvision

#: Those that need neither weights nor styles, and take a picture of any size.
PLAIN = [
    "augmix",
    "clahe",
    "denoise",
    "gaussian_noise",
    "random_erasing",
    "speckle_noise",
    "uniform_noise",
]
RANDOM = [name for name in PLAIN if name not in ("clahe", "denoise")]

pictures = st.tuples(st.integers(1, 20), st.integers(1, 20), st.sampled_from([1, 3])).flatmap(
    lambda shape: arrays(np.uint8, shape)
)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(PLAIN), pictures, st.text(max_size=5), st.integers(0, 2**70))
def test_any_picture_keeps_its_shape_and_is_drawn_by_seed_and_key(name, picture, key, seed) -> None:
    before = picture.copy()
    augment = augmentation(name, seed=seed)
    changed = augment(picture, key=key)
    assert changed.dtype == np.uint8
    assert changed.shape == picture.shape
    assert np.array_equal(picture, before)
    assert np.array_equal(changed, pickle.loads(pickle.dumps(augment))(picture, key=key))
    grey = picture[..., 0]
    assert np.array_equal(augment(grey, key=key), augment(grey[..., None], key=key)[..., 0])


@pytest.mark.parametrize("name", PLAIN)
def test_it_gives_back_what_it_was_given(name: str, photos: np.ndarray) -> None:
    augment, picture = augmentation(name), photos[0]
    expected = augment(picture, key="k")
    image = augment(Image.fromarray(picture), key="k")
    assert isinstance(image, Image.Image)
    assert np.array_equal(np.asarray(image), expected)
    tensor = torch.from_numpy(picture.transpose(2, 0, 1).copy())
    assert np.array_equal(augment(tensor, key="k").numpy().transpose(1, 2, 0), expected)
    import_torchvision()
    from torchvision import tv_tensors

    tv_tensor = tv_tensors.Image(tensor)
    assert type(augment(tv_tensor, key="k")) is type(tv_tensor)
    assert np.array_equal(
        augment(picture[:, ::-1], key="k"), augment(picture[:, ::-1].copy(), key="k")
    )


@pytest.mark.parametrize("name", RANDOM)
def test_draws_differ_between_keys_and_seeds(name: str, photos: np.ndarray) -> None:
    def drawn(seed: int, key: str) -> bytes:
        options = {"probability": 1.0} if name == "random_erasing" else {}
        return augmentation(name, seed=seed, **options)(photos[0], key=key).tobytes()

    assert len({drawn(seed, key) for seed in (0, 1) for key in ("a", "b", "c")}) == 6


def test_it_works_in_a_pipeline_of_torchvision(photos: np.ndarray) -> None:
    import_torchvision()
    from torchvision.transforms import v2

    pipeline = v2.Compose(
        [v2.RandomHorizontalFlip(), augmentation("augmix"), augmentation("speckle_noise")]
    )
    image, label = pipeline(Image.fromarray(photos[1]), 7)
    assert image.size == (64, 64)
    assert label == 7


@pytest.mark.parametrize("name", RANDOM)
def test_a_loader_gives_the_same_whatever_its_workers_and_batches(name, photos) -> None:
    clean = [(torch.from_numpy(photos[i % 4].transpose(2, 0, 1).copy()), i) for i in range(9)]
    dataset = AugmentedDataset(clean, augmentation(name, seed=3))

    def epoch(number: int, workers: int, size: int) -> torch.Tensor:
        dataset.set_epoch(number)
        loader = torch.utils.data.DataLoader(dataset, batch_size=size, num_workers=workers)
        return torch.cat([batch for batch, _ in loader])

    first = epoch(0, 0, 4)
    assert torch.equal(first, epoch(0, 1, 2))
    assert torch.equal(first, epoch(0, 2, 5))
    assert not torch.equal(first, epoch(1, 0, 4))
    assert torch.equal(first[7], dataset.augmentation(clean[7][0], key="0:7"))


def test_views_are_the_picture_and_its_augmented_versions(photos: np.ndarray) -> None:
    dataset = AugmentedDataset([(photos[0], 1)], augmentation("augmix"), views=2)
    (picture, first, second), label = dataset[-1]
    assert picture is photos[0] or np.array_equal(picture, photos[0])
    assert not np.array_equal(first, second)
    assert label == 1
    with pytest.raises(IndexError):
        dataset[1]
    bare = AugmentedDataset(list(photos), augmentation("augmix"))
    assert bare[2].shape == (64, 64, 3)


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("augmx", {}, "did you mean augmix"),
        ("augmix", {"widht": 3}, "no option of augmix 'widht'; did you mean width"),
        ("augmix", {"width": "3.5"}, "'3.5'; expected a whole number"),
        ("augmix", {"severity": 11}, "expected 0.1 to 10"),
        ("augmix", {"alpha": "nan"}, "expected a number above 0"),
        ("augmix", {"width": 0}, "expected a width of 1 to 100"),
        ("gaussian_noise", {"scale": -1}, "expected a number above 0"),
        ("gaussian_noise", {"vary": "perhaps"}, "expected yes or no"),
        ("random_erasing", {"least": 0.5, "most": 0.2}, "expected parts of the picture"),
        ("random_erasing", {"probability": 2}, "expected 0 to 1"),
        ("random_erasing", {"narrowest": 0}, "expected above 0 to 1"),
        ("clahe", {"tiles": 0}, "1 to 256 tiles"),
        ("denoise", {"patch": 4}, "expected odd numbers"),
        ("denoise", {"strength": 0}, "expected a number above 0"),
    ],
)
def test_mistakes_are_told_in_a_sentence(name: str, options: dict, said: str) -> None:
    with pytest.raises(InputError, match=said):
        augmentation(name, **options)


def test_what_is_no_picture_is_refused() -> None:
    augment = augmentation("augmix")
    with pytest.raises(InputError, match="float64 was given"):
        augment(np.zeros((4, 4, 3)))
    with pytest.raises(InputError, match="alpha is not supported"):
        augment(np.zeros((4, 4, 4), np.uint8))
    with pytest.raises(InputError, match="takes one picture"):
        augment(np.zeros((2, 4, 4, 3), np.uint8))
    with pytest.raises(InputError, match="1 or more"):
        AugmentedDataset([], augment, views=0)


def test_every_name_is_a_documented_class() -> None:
    for name in augmentation_names():
        from shiftbed.augment._registry import augmentations

        kind = augmentations()[name]
        assert dataclasses.is_dataclass(kind)
        assert kind.__doc__


# ---------------------------------------------------------------- AugMix


def test_augmix_uses_no_corruption_of_the_benchmarks() -> None:
    tested = set(corruption_names("imagenet-c", extra=True))
    assert not tested & set(OPERATIONS)
    assert len(OPERATIONS) == 9


@settings(max_examples=50, deadline=None)
@given(arrays(np.uint8, st.tuples(st.integers(1, 12), st.integers(1, 12), st.just(3))))
def test_level_operations_are_pillows(picture: np.ndarray) -> None:
    image = Image.fromarray(picture)
    for strength, bits, threshold in ((0.3, 3, 180), (0.9, 1, 26)):
        expected = {
            "autocontrast": ImageOps.autocontrast(image),
            "equalize": ImageOps.equalize(image),
            "posterize": ImageOps.posterize(image, bits),
            "solarize": ImageOps.solarize(image, threshold),
        }
        for name, other in expected.items():
            assert np.array_equal(OPERATIONS[name](picture, strength, 1), np.asarray(other)), name


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("name", ["rotate", "shear_x", "shear_y", "translate_x", "translate_y"])
def test_movements_are_pillows(name: str, sign: int) -> None:
    rows, columns = np.mgrid[:80, :60]
    smooth = (128 + 100 * np.sin(rows / 9) * np.cos(columns / 7)).astype(np.uint8)
    picture = np.repeat(smooth[..., None], 3, axis=2)
    image, bilinear = Image.fromarray(picture), Image.Resampling.BILINEAR
    slant, across, down = -0.3 * 0.5 * sign, -10 * sign, -13 * sign
    matrices = {
        "shear_x": (1, slant, 0, 0, 1, 0),
        "shear_y": (1, 0, 0, slant, 1, 0),
        "translate_x": (1, 0, across, 0, 1, 0),
        "translate_y": (1, 0, 0, 0, 1, down),
    }
    if name == "rotate":
        expected = image.rotate(-15 * sign, bilinear)
    else:
        expected = image.transform((60, 80), Image.Transform.AFFINE, matrices[name], bilinear)
    change = OPERATIONS[name](picture, 0.5, sign).astype(int) - np.asarray(expected)
    # Away from the picture's edges, which one draws half a pixel further than the other.
    inside = cv2.erode((np.asarray(expected) > 0).astype(np.uint8), np.ones((7, 7)), iterations=1)
    assert inside.mean() > 0.4
    assert np.abs(change[inside == 1]).max() <= 6


def test_augmix_is_a_convex_mixture_of_its_chains(photos: np.ndarray) -> None:
    grey = np.full((16, 16, 3), 100, np.uint8)
    for key in "abcdef":
        mixed = AugMix(severity=0.1)(grey, key=key)
        assert abs(int(mixed[8, 8, 0]) - 100) <= 156
    # With a small alpha, one of picture and chains takes nearly all: the picture half the time.
    kept = [
        np.abs(AugMix(alpha=0.001)(photos[0], key=str(i)).astype(int) - photos[0]).max() <= 1
        for i in range(60)
    ]
    assert 0.3 < np.mean(kept) < 0.75


def test_the_mixture_is_the_weighted_mean(photos: np.ndarray) -> None:
    """Drawn again by hand, in float64."""
    augment = AugMix(seed=5, depth=2, alpha=0.7)
    for key in ("x", "y"):
        rng = augment.generator(key)
        weights, share = rng.dirichlet([0.7] * 3), rng.beta(0.7, 0.7)
        mean = (1 - share) * photos[0].astype(np.float64)
        for weight in weights:
            chain = photos[0]
            for _ in range(2):
                change = list(OPERATIONS.values())[rng.integers(9)]
                chain = change(chain, rng.uniform(0.1, 3.0) / 10, 1 if rng.random() < 0.5 else -1)
            mean += share * weight * chain
        assert np.abs(augment(photos[0], key=key) - mean).max() < 0.51


def test_the_divergence_is_the_one_of_the_definition() -> None:
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(3, 5, 7))
    chances = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    mean = chances.mean(0)
    expected = np.mean([(one * np.log(one / mean)).sum(1).mean() for one in chances])
    answers = [torch.tensor(one, requires_grad=True) for one in logits]
    loss = jensen_shannon(*answers)
    assert loss.item() == pytest.approx(expected, rel=1e-6)
    loss.backward()
    assert all(one.grad.abs().sum() > 0 for one in answers)
    with pytest.raises(InputError, match="2 or more"):
        jensen_shannon(answers[0])
    with pytest.raises(InputError, match="one shape"):
        jensen_shannon(answers[0], answers[0][:2])


# ---------------------------------------------------------------- noise, erasing


@pytest.mark.parametrize(
    ("name", "expected"),
    [("gaussian_noise", 0.1), ("speckle_noise", 0.1 * 100 / 255), ("uniform_noise", 0.1 / 3**0.5)],
)
def test_noise_has_the_scale_that_was_asked_for(name: str, expected: float) -> None:
    grey = np.full((200, 200, 3), 100, np.uint8)
    still = augmentation(name, scale=0.1, vary=False)(grey, key="a") / 255 - 100 / 255
    assert still.std() == pytest.approx(expected, rel=0.02)
    stds = [augmentation(name, scale=0.1)(grey, key=str(i)).std() / 255 for i in range(60)]
    assert np.mean(stds) == pytest.approx(expected / 2, rel=0.25)
    assert max(stds) < expected * 1.02


def test_erasing_paints_over_one_rectangle_as_often_as_asked() -> None:
    grey = np.full((40, 50, 3), 7, np.uint8)
    areas = []
    for number in range(200):
        changed = (augmentation("random_erasing", probability=0.4)(grey, key=str(number)) != 7).any(
            2
        )
        if changed.any():
            rows, columns = np.flatnonzero(changed.any(1)), np.flatnonzero(changed.any(0))
            assert changed[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1].all()
            areas.append(changed.mean())
    assert 55 <= len(areas) <= 105
    assert 0.01 < min(areas) < 0.08 < 0.2 < max(areas) < 0.36
    pixelwise = augmentation("random_erasing", probability=1, pixelwise=True)(grey, key="a")
    assert len(np.unique(pixelwise)) > 50


# ---------------------------------------------------------------- restoring


@pytest.mark.parametrize("scale", [5, 15, 40])
def test_the_level_of_noise_is_estimated(scale: int) -> None:
    from skimage import data

    photo = data.astronaut()
    rng = np.random.default_rng(1)
    noisy = np.clip(photo * 0.5 + 60 + rng.normal(0, scale, photo.shape), 0, 255).astype(np.uint8)
    assert noise_level(noisy) * 255 == pytest.approx(scale, rel=0.15, abs=1.5)


def test_denoising_takes_noise_away_and_leaves_clean_pictures() -> None:
    from skimage import data

    clean = cv2.resize(data.astronaut(), (160, 160), interpolation=cv2.INTER_AREA)
    noisy = augmentation("gaussian_noise", scale=0.15, vary=False)(clean, key="a")

    def error(picture: np.ndarray) -> float:
        return float(np.sqrt(np.mean((picture.astype(float) - clean) ** 2)))

    restored = augmentation("denoise")(noisy)
    assert error(restored) < 0.7 * error(noisy)
    assert error(augmentation("denoise")(clean)) < 0.25 * error(noisy)


def test_clahe_is_scikit_images_in_kind() -> None:
    """Contrast grows where there was little; colours keep their hue."""
    from skimage import data

    dim = (data.astronaut()[::4, ::4] // 4 + 96).astype(np.uint8)
    equalised = augmentation("clahe", clip=4)(dim)
    assert equalised.std() > 1.5 * dim.std()
    grey = augmentation("clahe", clip=4)(dim[..., :1])
    assert grey.std() > 1.5 * dim[..., 0].std()


# ---------------------------------------------------------------- models


def test_a_model_may_see_restored_pictures(photos: np.ndarray) -> None:
    model = load(lambda batch: batch.astype(float).reshape(len(batch), -1)[:, :5], name="corner")
    clahe = augmentation("clahe")
    wrapped = preprocessed(model, clahe)
    assert np.array_equal(wrapped.logits(photos)[2], model.logits(clahe(photos[2])[None])[0])
    assert wrapped.fingerprint() != model.fingerprint()
    assert wrapped.fingerprint() != preprocessed(model, augmentation("clahe", clip=3)).fingerprint()
    assert not wrapped.differentiable


def test_ten_crops_are_averaged_as_probabilities(photos: np.ndarray) -> None:
    rng = np.random.default_rng(0)
    weights = rng.normal(size=(24 * 24 * 3, 4)) / 3000

    def linear(batch: np.ndarray) -> np.ndarray:
        return batch.reshape(len(batch), -1) @ weights

    model = load(linear, name="linear", size=24, resize=32)
    wrapped = ten_crop_averaged(model)
    seen = wrapped.geometry.apply(photos[0])
    assert seen.shape == (32, 32, 3)
    corners = [seen[:24, :24], seen[:24, 8:], seen[8:, :24], seen[8:, 8:], seen[4:28, 4:28]]
    views = np.stack([*corners, *(one[:, ::-1] for one in corners)])
    scores = np.exp(linear(views))
    expected = np.log((scores / scores.sum(1, keepdims=True)).mean(0))
    assert wrapped.logits(seen[None])[0] == pytest.approx(expected, abs=1e-5)
    with pytest.raises(InputError, match="have no crops"):
        ten_crop_averaged(load(lambda batch: batch.mean((1, 2)), name="any size"))
