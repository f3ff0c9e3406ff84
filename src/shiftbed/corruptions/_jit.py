"""How kernels are compiled: on first use, kept on disk, with the GIL released."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar, cast

import numba
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
_Function = TypeVar("_Function", bound=Callable[..., Any])


def kernel(function: _Function) -> _Function:
    """Compile a function of arrays and numbers with Numba.

    No fast-math and no contraction: the order of the operations is the written one, since
    the published pixels depend on it.
    """
    return cast(_Function, numba.njit(cache=True, nogil=True, error_model="numpy")(function))
