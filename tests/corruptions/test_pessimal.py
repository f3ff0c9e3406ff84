"""Pessimal noise: its matrix, and its training against a model."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

from shiftbed.corruptions import corrupt
from shiftbed.corruptions.pessimal import PESSIMAL_NORM, load_matrix, train
from shiftbed.errors import InputError

Floats = npt.NDArray[np.float64]


class Digits(NamedTuple):
    """Scikit-learn's 8 x 8 digits, and a softmax regression fitted to half of them."""

    pictures: Floats
    labels: npt.NDArray[np.int64]
    weights: Floats
    bias: Floats

    def scores(self, pictures: Floats) -> Floats:
        logits = pictures.reshape(len(pictures), -1) @ self.weights + self.bias
        logits = np.exp(logits - logits.max(axis=1, keepdims=True))
        return np.asarray(logits / logits.sum(axis=1, keepdims=True))

    def loss(self, pictures: Floats) -> float:
        right = self.scores(pictures)[np.arange(len(pictures)), self.labels]
        return float(-np.log(np.maximum(right, 1e-12)).mean())

    def gradient(self, pictures: Any, labels: Any) -> Floats:
        wrong = self.scores(pictures)
        wrong[np.arange(len(labels)), labels] -= 1
        return (wrong @ self.weights.T / len(labels)).reshape(pictures.shape)


@pytest.fixture(scope="module")
def digits() -> Digits:
    sklearn = pytest.importorskip("sklearn")
    assert sklearn
    from sklearn.datasets import load_digits
    from sklearn.linear_model import LogisticRegression

    found = load_digits()
    pictures, labels = found.images / 16, found.target
    model = LogisticRegression(max_iter=500).fit(found.data[::2] / 16, labels[::2])
    return Digits(pictures[1::2], labels[1::2], model.coef_.T, model.intercept_)


def noisy(digits: Digits, matrix: Floats, norm: float, seed: int) -> Floats:
    """Add noise of a norm with the matrix's covariance, in tiles of 4 x 4."""
    noise = np.random.default_rng(seed).normal(size=(len(digits.pictures), len(matrix))) @ matrix
    noise *= norm / 4 / np.linalg.norm(noise, axis=1, keepdims=True)
    tiled = np.tile(noise.reshape(-1, 4, 4), (1, 2, 2))
    return np.clip(digits.pictures + tiled, 0, 1)


def test_training_hurts_the_model_more_than_plain_noise(digits: Digits) -> None:
    norm = 5.0
    matrix = train(
        digits.gradient,
        digits.pictures,
        digits.labels,
        tile=4,
        epochs=30,
        batch_size=50,
        learning_rate=5.0,
        norm=norm,
    )
    assert matrix.shape == (16, 16)
    for seed in (1, 2, 3):
        plain = digits.loss(noisy(digits, np.eye(16), norm, seed))
        worse = digits.loss(noisy(digits, matrix, norm, seed))
        assert digits.loss(digits.pictures) < plain
        assert worse > 1.25 * plain, (seed, plain, worse)


def test_training_repeats_by_seed(digits: Digits) -> None:
    def trained(seed: int) -> Floats:
        given: dict[str, Any] = {"tile": 4, "epochs": 2, "learning_rate": 1.0, "norm": 4.0}
        return train(digits.gradient, digits.pictures, digits.labels, seed=seed, **given)

    np.testing.assert_array_equal(trained(1), trained(1))
    assert not np.array_equal(trained(1), trained(2))


def test_the_gradient_climbed_is_that_of_the_loss() -> None:
    """One step on a linear loss moves the matrix along the gradient found by differences."""
    rng = np.random.default_rng(3)
    slope = rng.normal(size=(4, 4))
    pictures, labels = np.full((1, 4, 4), 0.5), np.zeros(1, int)
    norm, rate = 0.8, 1e-3
    seen: list[Floats] = []

    def gradient(x: Any, y: Any) -> Any:
        seen.append(x)
        return np.broadcast_to(slope, x.shape)

    stepped = train(
        gradient, pictures, labels, tile=2, epochs=1, batch_size=1, learning_rate=rate, norm=norm
    )
    # What was drawn is found again from the noise: the matrix began as the identity.
    order = np.random.default_rng(0)
    order.permutation(1)
    normal = order.standard_normal((1, 4))

    def loss(matrix: Floats) -> float:
        noise = (normal @ matrix)[0]
        tile = (noise / np.linalg.norm(noise) * norm / 4).reshape(2, 2)
        return float((np.tile(tile, (2, 2)) * slope).sum())

    first = np.tile((normal[0] / np.linalg.norm(normal) * norm / 4).reshape(2, 2), (2, 2))
    np.testing.assert_allclose(seen[0][0], 0.5 + first)
    differences = np.zeros((4, 4))
    for place in np.ndindex(4, 4):
        nudge = np.zeros((4, 4))
        nudge[place] = 1e-6
        differences[place] = (loss(np.eye(4) + nudge) - loss(np.eye(4) - nudge)) / 2e-6
    np.testing.assert_allclose((stepped - np.eye(4)) / rate, differences, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize(
    ("epochs", "epoch", "rate"),
    [
        *((135, 1, 1), (135, 44, 1), (135, 45, 0.1), (135, 89, 0.1), (135, 90, 1e-3)),
        *((135, 135, 1e-3), (1, 1, 1), (3, 1, 1), (3, 2, 0.1), (3, 3, 1e-3)),
    ],
)
def test_the_rate_falls_as_the_authors_let_it(epochs: int, epoch: int, rate: float) -> None:
    """With a slope in one epoch alone, the length of the only step tells that epoch's rate."""
    slope = np.random.default_rng(epoch).normal(size=4)
    norm = 0.8
    seen: list[Floats] = []

    def gradient(x: Any, y: Any) -> Any:
        seen.append(x.reshape(-1) - 0.5)
        return (slope if len(seen) == epoch else 0 * slope).reshape(x.shape)

    given: dict[str, Any] = {"epochs": epochs, "batch_size": 1, "learning_rate": 1.0}
    matrix = train(gradient, np.full((1, 2, 2), 0.5), np.zeros(1), tile=2, norm=norm, **given)
    direction = seen[epoch - 1] / np.linalg.norm(seen[epoch - 1])
    across = slope - (slope @ direction) * direction
    step = np.linalg.norm(matrix - np.eye(4)) / (np.linalg.norm(across) * norm / 4)
    assert len(seen) == epochs
    np.testing.assert_allclose(step, rate, rtol=1e-6)


def test_the_recipe_for_torch(digits: Digits) -> None:
    torch = pytest.importorskip("torch")
    from torch.nn import functional

    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(1, 8, 3, padding=1),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Linear(8 * 64, 10),
    )
    optimiser = torch.optim.Adam(model.parameters(), 5e-3)
    pictures = torch.tensor(digits.pictures, dtype=torch.float32)[:, None]
    labels = torch.tensor(digits.labels)
    for _ in range(60):
        optimiser.zero_grad()
        functional.cross_entropy(model(pictures), labels).backward()
        optimiser.step()
    model.requires_grad_(False)

    def gradient(x: Any, y: Any) -> Any:
        x = torch.tensor(x, dtype=torch.float32, requires_grad=True)
        functional.cross_entropy(model(x[:, None]), torch.tensor(y)).backward()
        return x.grad.numpy()

    matrix = train(
        gradient,
        digits.pictures,
        digits.labels,
        tile=4,
        epochs=20,
        batch_size=50,
        learning_rate=5.0,
        norm=5.0,
    )

    def loss(matrix: Floats) -> float:
        shown = torch.tensor(noisy(digits, matrix, 5.0, 9), dtype=torch.float32)[:, None]
        return float(functional.cross_entropy(model(shown), labels))

    assert loss(matrix) > 1.1 * loss(np.eye(16))


def test_the_noise_has_its_norm_and_its_tiles(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    matrix = rng.normal(size=(196, 196))
    grey = np.full((28, 28), 128, np.uint8)
    result = corrupt(grey, "pessimal_noise", variant="mnist-c", key="k", matrix=matrix)
    noise = (result.astype(float) - 128) / 255
    for rows, columns in ((0, 14), (14, 0), (14, 14)):
        np.testing.assert_array_equal(noise[:14, :14], noise[rows : rows + 14, columns:][:14, :14])
    # A tile has a quarter of the constant; whole levels blur it a little.
    assert abs(np.linalg.norm(noise[:14, :14]) - PESSIMAL_NORM / 4) < 0.03
    # A larger picture has more tiles of the same noise.
    large = np.full((40, 33), 128, np.uint8)
    more = corrupt(large, "pessimal_noise", variant="mnist-c", key="k", matrix=matrix)
    np.testing.assert_array_equal(more[:28, :28], result)

    np.save(tmp_path / "matrix.npy", matrix)
    for given in (tmp_path / "matrix.npy", str(tmp_path / "matrix.npy"), matrix.tolist()):
        same = corrupt(grey, "pessimal_noise", variant="mnist-c", key="k", matrix=given)
        np.testing.assert_array_equal(same, result)


def test_the_noise_has_the_covariance_of_the_matrix() -> None:
    """A matrix of one row makes all noise a multiple of it, up or down."""
    direction = np.abs(np.random.default_rng(5).normal(size=196))
    matrix = np.zeros((196, 196))
    matrix[3] = direction
    grey = np.full((14, 14), 128, np.uint8)
    signs = []
    for i in range(40):
        result = corrupt(grey, "pessimal_noise", variant="mnist-c", key=str(i), matrix=matrix)
        noise = (result.astype(float) - 128).reshape(-1)
        cosine = noise @ direction / np.linalg.norm(noise) / np.linalg.norm(direction)
        assert abs(cosine) > 0.999
        signs.append(cosine > 0)
    assert 5 < sum(signs) < 35


@pytest.mark.parametrize(
    ("matrix", "sentence"),
    [
        (None, "pessimal_noise needs its matrix: pass matrix=FILE.npy"),
        ("no/such.npy", "cannot read a matrix for pessimal_noise from no/such.npy"),
        (np.eye(195), "has shape (195, 195); expected square, with the square of a tile's side"),
        (np.zeros((196, 195)), "has shape (196, 195)"),
        (np.zeros(196), "has shape (196,)"),
        (5, "has shape ()"),
        (np.zeros((196, 196)), "gives no noise"),
        (np.zeros((0, 0)), "gives no noise"),
        (np.full((4, 4), np.nan), "expected finite numbers"),
        (np.full((4, 4), "x"), "expected finite numbers"),
    ],
)
def test_a_matrix_that_does_not_fit_is_refused(matrix: Any, sentence: str) -> None:
    with pytest.raises(InputError) as told:
        corrupt(np.zeros((28, 28), np.uint8), "pessimal_noise", variant="mnist-c", matrix=matrix)
    assert sentence in str(told.value)


def test_a_file_that_holds_no_matrix_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text.npy").write_text("not an array")
    (tmp_path / "empty.npy").write_bytes(b"")
    np.savez(tmp_path / "several.npz", a=np.eye(4), b=np.eye(4))
    np.save(tmp_path / "objects.npy", np.array([{"a": 1}]), allow_pickle=True)
    for name in ("text.npy", "empty.npy", "several.npz", "objects.npy"):
        with pytest.raises(InputError, match=name.replace(".", r"\.")):
            load_matrix(tmp_path / name)


def test_pictures_that_cannot_be_tiled_are_refused() -> None:
    def flat(x: Any, y: Any) -> Any:
        return x

    with pytest.raises(InputError, match="28 x 30 cannot be tiled by 14 x 14"):
        train(flat, np.zeros((2, 28, 30)), np.zeros(2))
    with pytest.raises(InputError, match="2 pictures were given with 3 labels"):
        train(flat, np.zeros((2, 28, 28)), np.zeros(3))
