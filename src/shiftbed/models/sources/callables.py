"""Any callable as a model: a torch module, or a function of a batch of pictures."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Iterator
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
    # The user's own stays as it is: in training, on its device, with its gradients.
    module = copy.deepcopy(module)
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
            answer = answer.detach().cpu().float().numpy()
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
    """A function's own word on its fingerprint, or a hash of what can be seen of it.

    That is its code, its defaults and what it closes over. What it reads from elsewhere (a
    global, a file) is not seen: such a function should carry a ``fingerprint``.
    """
    own = getattr(function, "fingerprint", None)
    if own is not None:
        return str(own() if callable(own) else own)
    return digest(_parts(function, set()))


def _parts(value: Any, seen: set[int]) -> Iterator[str | bytes]:
    yield type(value).__qualname__
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, np.ndarray):
        yield from (str(value.dtype), str(value.shape), np.ascontiguousarray(value).tobytes())
    elif hasattr(value, "state_dict"):
        for key, tensor in value.state_dict().items():
            yield key
            yield from _parts(tensor, seen)
    elif hasattr(value, "detach"):
        yield from _parts(value.detach().cpu().float().numpy(), seen)
    elif isinstance(value, (str, bytes, int, float, complex, bool, type(None), np.generic)):
        yield repr(value)
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from _parts(item, seen)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield repr(key)
            yield from _parts(item, seen)
    elif hasattr(value, "co_code"):
        yield value.co_code
        yield from value.co_names
        yield from _parts(value.co_consts, seen)
    elif hasattr(value, "__code__"):
        yield from _parts(value.__code__, seen)
        yield from _parts((value.__defaults__, value.__kwdefaults__), seen)
        yield from _parts([cell.cell_contents for cell in value.__closure__ or ()], seen)
    elif hasattr(value, "__self__") and hasattr(value, "__func__"):
        yield from _parts(value.__func__, seen)
        yield from _parts(value.__self__, seen)
    else:
        yield from _parts(getattr(value, "__dict__", None), seen)
