"""How kernels are compiled: without the interpreter's lock, without bounds checks, and with exact float order."""

from collections.abc import Callable
from typing import Any

import numba
from numba.core import event

OPTIONS: dict[str, Any] = {"nogil": True, "boundscheck": False, "error_model": "numpy", "fastmath": False}

FUNCTIONS = 203
"""About as many functions are compiled in all, the library's own included; only the progress shown depends on it."""

ENTRIES: list[tuple[Any, Any]] = []
"""Every entry with its signature."""


def kernel(function: Callable[..., Any]) -> Any:
    """Compile on first use, for the argument types of each use; becomes part of whichever entry calls it."""
    return numba.njit(**OPTIONS)(function)


def entry(signature: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile when compile_entries or the first call asks for it, and keep the machine code on disk (see cache.py)."""

    def decorate(function: Callable[..., Any]) -> Any:
        dispatcher = numba.njit(cache=True, **OPTIONS)(function)
        ENTRIES.append((dispatcher, signature))
        return dispatcher

    return decorate


class Counter(event.Listener):
    """Counts finished compilations and reports their share of FUNCTIONS."""

    def __init__(self, progress: Callable[[float], None]) -> None:
        self._progress, self._count = progress, 0

    def on_start(self, event: Any) -> None:
        pass

    def on_end(self, event: Any) -> None:
        self._count += 1
        self._progress(min(0.99, self._count / FUNCTIONS))


def compile_entries(progress: Callable[[float], None]) -> None:
    """Compile whatever the cache does not hold. `progress` is called with the part that is done, 0 to 1."""
    with event.install_listener("numba:compile", Counter(progress)):
        for dispatcher, signature in ENTRIES:
            dispatcher.compile(signature)
    progress(1.0)
