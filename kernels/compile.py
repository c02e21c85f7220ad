"""How kernels are compiled: without the interpreter's lock, without bounds checks, and with exact float order."""

from collections.abc import Callable
from typing import Any

import numba

OPTIONS: dict[str, Any] = {"nogil": True, "boundscheck": False, "error_model": "numpy", "fastmath": False}


def kernel(function: Callable[..., Any]) -> Any:
    """Compile on first use, for the argument types of each use; becomes part of whichever entry calls it."""
    return numba.njit(**OPTIONS)(function)


def entry(signature: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile at once for one signature, and keep the machine code on disk (see cache.py)."""
    return numba.njit(signature, cache=True, **OPTIONS)
