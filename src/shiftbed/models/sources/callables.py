"""Any callable as a model: a torch module, or a function of a batch of pictures."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from shiftbed.data import digest
from shiftbed.errors import InputError
from shiftbed.models.geometry import Geometry
from shiftbed.models.keys import class_keys
from shiftbed.models.model import Model
from shiftbed.models.options import Options
from shiftbed.models.probing import probe

__all__ = ["wrap"]


def wrap(given: Any, options: Options, name: str | None = None) -> Model:
    """Return a callable as a model.

    A torch module is shown float pictures (N, C, H, W), in [0, 1] unless ``mean`` and ``std``
    say otherwise; one of timm's as timm prepares them. A function is shown uint8 pictures
    (N, H, W, C). It may carry ``geometry``, ``class_keys`` and ``fingerprint`` as attributes.

    >>> def darkness(batch):
    ...     return np.stack([255 - batch.mean((1, 2, 3)), batch.mean((1, 2, 3))], axis=1)
    >>> wrap(darkness, Options()).outputs
    2
    """
    # A torch module can only have been made by an imported torch.
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(given, torch.nn.Module):
        return _torch_module(given, options, name)
    if hasattr(given, "predict") and hasattr(given, "fit"):
        from shiftbed.models.sources.sklearn import estimator_model

        return estimator_model(given, options, name or type(given).__name__)
    if not callable(given):
        raise InputError(
            f"a model is a spec, a torch module or a function of a batch of pictures; "
            f"{type(given).__name__} is none of them"
        )
    return _function(given, options, name)


def _torch_module(module: Any, options: Options, name: str | None) -> Model:
    from shiftbed.models._torch import Pretrained, torch_model

    name = options.name or name or type(module).__name__
    if hasattr(module, "pretrained_cfg"):
        from shiftbed.models.sources.timm import as_pretrained

        return torch_model(name, f"python:{name}", as_pretrained(module), options)
    own = Pretrained(module, Geometry(), (0.0,), (1.0,))
    return torch_model(name, f"python:{name}", own, options)


def _function(function: Callable[..., Any], options: Options, name: str | None) -> Model:
    for option in ("mean", "std"):
        if getattr(options, option) is not None:
            raise InputError(f"a function is shown uint8 pictures; do what {option} would in it")
    name = options.name or name or str(getattr(function, "__name__", type(function).__name__))

    def predict(batch: npt.NDArray[np.uint8]) -> npt.ArrayLike:
        answer = function(batch)
        if hasattr(answer, "detach"):  # a torch tensor
            answer = answer.detach().cpu().numpy()
        return np.asarray(answer)

    geometry = options.geometry(getattr(function, "geometry", Geometry()))
    outputs = probe(predict, geometry, name).shape[1]
    own = getattr(function, "class_keys", None)
    return Model(
        name=name,
        spec=f"python:{name}",
        geometry=geometry,
        outputs=outputs,
        predict=predict,
        weights=_hash(function),
        class_keys=class_keys(options.classes, own and tuple(own), outputs, name),
    )


def _hash(function: Callable[..., Any]) -> str:
    """A function's own word on its fingerprint, or its code and what it closes over."""
    own = getattr(function, "fingerprint", None)
    if own is not None:
        return str(own() if callable(own) else own)
    code = getattr(function, "__code__", None)
    if code is None:
        return digest(["callable", repr(type(function))])
    parts: list[str | bytes] = ["function", code.co_code, repr(code.co_names)]
    parts += [repr(const) for const in code.co_consts if not hasattr(const, "co_code")]
    for cell in getattr(function, "__closure__", None) or ():
        held = cell.cell_contents
        parts.append(held.tobytes() if isinstance(held, np.ndarray) else type(held).__name__)
    return hashlib.sha256(digest(parts).encode()).hexdigest()[:32]
