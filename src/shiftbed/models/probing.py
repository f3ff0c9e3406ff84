"""Finding out how many outputs a model has, before any work is done."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from shiftbed.errors import InputError
from shiftbed.models.geometry import Geometry

__all__ = ["are_probabilities", "probe"]

#: Tried where a model does not say what it wants: MNIST, CIFAR, Tiny ImageNet, ImageNet.
_USUAL = [(28, 28, 1), (32, 32, 3), (64, 64, 3), (224, 224, 3), (32, 32, 1), (28, 28, 3)]


def probe(
    predict: Callable[[npt.NDArray[np.uint8]], npt.ArrayLike], geometry: Geometry, name: str
) -> npt.NDArray[np.generic]:
    """Return a model's answers to two pictures: a grey one and one that shades from black to white.

    >>> probe(lambda batch: np.zeros((len(batch), 7)), Geometry(), "seven").shape
    (2, 7)
    """
    shapes = [
        (*(geometry.size or shape[:2]), geometry.channels or shape[2])
        for shape in (_USUAL if geometry.size is None else [(0, 0, 3), (0, 0, 1)])
    ]
    problem: Exception | None = None
    for shape in dict.fromkeys(shapes):
        try:
            answer = np.asarray(predict(_pictures(*shape)))
        except InputError:
            raise
        except Exception as raised:  # whatever the user's code raises
            problem = problem or raised
            continue
        if answer.ndim != 2 or len(answer) != 2 or answer.shape[1] < 1:
            raise InputError(
                f"model {name} answers two pictures with shape {answer.shape}; "
                "expected (2, classes), one row of logits each"
            )
        return answer
    said = (str(problem).strip() or type(problem).__name__).splitlines()[0]
    tried = ", ".join("x".join(map(str, shape)) for shape in dict.fromkeys(shapes))
    raise InputError(
        f"model {name} fails on a picture ({tried}: {said}); say what it wants with "
        "size= and channels="
    )


def _pictures(height: int, width: int, channels: int) -> npt.NDArray[np.uint8]:
    pictures = np.full((2, height, width, channels), 127, np.uint8)
    pictures[1] = np.linspace(0, 255, width).astype(np.uint8)[None, :, None]
    return pictures


def are_probabilities(answer: npt.NDArray[np.generic]) -> bool:
    """Whether answers are probabilities rather than logits: in [0, 1], with the sum 1.

    >>> are_probabilities(np.array([[0.25, 0.75]])), are_probabilities(np.array([[-1.0, 2.0]]))
    (True, False)
    """
    values = np.asarray(answer, np.float64)
    return bool((values >= 0).all() and np.allclose(values.sum(axis=1), 1, atol=1e-3))
