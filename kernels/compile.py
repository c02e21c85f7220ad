"""How kernels are compiled: without the interpreter's lock, without bounds checks, and with exact float order.

Compiling takes half a minute and some hundred megabytes that a process does not give back. So what the cache does not
hold is compiled by processes of their own (children.py), and loaded from the cache like everything else.
"""

import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any

import numba
from numba.core import event
from numba.core.compiler_lock import global_compiler_lock

from puma.kernels.children import compile_apart

log = logging.getLogger(__name__)

OPTIONS: dict[str, Any] = {"nogil": True, "boundscheck": False, "error_model": "numpy", "fastmath": False}

FUNCTIONS = 168
"""About as many functions are compiled in all, the library's own included; only the progress shown depends on it."""


class Missing(Exception):
    """The cache does not hold an entry."""


class Entry:
    """A function that Python calls, and the one signature that it is compiled for."""

    rank = 1
    """Those of a lower rank are loaded first."""

    def __init__(self, dispatcher: Any, signature: Any, cost: int) -> None:
        self.dispatcher, self.signature, self.cost = dispatcher, signature, cost
        self.module: str = dispatcher.py_func.__module__
        self.name: str = f"{self.module}:{dispatcher.py_func.__qualname__}"

    @property
    def compiled(self) -> bool:
        """Whether this process can call it without compiling."""
        return bool(self.dispatcher.overloads)

    def load(self) -> bool:
        """Load its machine code from the cache. False when that does not hold it; never compiles."""
        try:
            # The lock, so that no other thread's compilation is taken for ours.
            with global_compiler_lock, event.install_listener("numba:compile", _Refusal()):
                self.dispatcher.compile(self.signature)
        except Missing:
            return False
        except (OSError, MemoryError):
            raise
        except Exception as error:
            log.warning("%s: its machine code in the cache is damaged (%r); it is made anew", self.name, error)
            self._discard()
            return False
        return True

    def compile(self) -> None:
        """Load or compile it, and keep the machine code. Raises OSError when that cannot be written."""
        self.dispatcher.compile(self.signature)

    def _discard(self) -> None:
        function = self.dispatcher.py_func
        pattern = f"{Path(function.__code__.co_filename).stem}.{function.__qualname__}-*"
        for file in Path(self.dispatcher.stats.cache_path).glob(pattern):
            with suppress(OSError):
                file.unlink()


ENTRIES: list[Entry] = []
"""Every entry of the modules that have been imported."""


def kernel(function: Callable[..., Any]) -> Any:
    """Compile on first use, for the argument types of each use; becomes part of whichever entry calls it."""
    return numba.njit(**OPTIONS)(function)


def entry(signature: Any, *, cost: int = 1) -> Callable[[Callable[..., Any]], Any]:
    """Compile when compile_entries or the first call asks for it, and keep the machine code on disk (see cache.py).

    `cost` is about how many seconds that takes; only how processes share the work depends on it.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        dispatcher = numba.njit(cache=True, **OPTIONS)(function)
        ENTRIES.append(Entry(dispatcher, signature, cost))
        return dispatcher

    return decorate


class _Refusal(event.Listener):
    """Stops a compilation at its beginning; by then the cache has been asked."""

    def on_start(self, event: Any) -> None:
        raise Missing

    def on_end(self, event: Any) -> None:
        pass


class _Finished(event.Listener):
    def __init__(self, tell: Callable[[], None]) -> None:
        self._tell = tell

    def on_start(self, event: Any) -> None:
        pass

    def on_end(self, event: Any) -> None:
        self._tell()


def counting(tell: Callable[[], None]) -> AbstractContextManager[Any]:
    """Call `tell` after each function that is compiled while it lasts."""
    return event.install_listener("numba:compile", _Finished(tell))


def compile_entries(progress: Callable[[float], None], processes: int = 1) -> None:
    """Load every entry, after up to so many processes have compiled what the cache does not hold.

    What they fail to compile is compiled here. `progress` is called with the part that is done, 0 to 1; not at all when
    nothing has to be compiled.
    """
    missing: list[Entry] = []
    for entry in sorted(ENTRIES, key=lambda entry: entry.rank):
        # Whoever calls a part is bound to it when loaded, so all parts have to be there by then.
        if (missing and missing[0].rank < entry.rank) or not entry.load():
            missing.append(entry)
    if not missing:
        return
    progress(0.0)
    count = 0

    def tell() -> None:
        nonlocal count
        count += 1
        progress(min(0.99, count / FUNCTIONS))

    # Nobody else can import what stands in the program itself.
    apart = [entry for entry in missing if entry.module != "__main__"]
    for failure in compile_apart(shares(apart, processes), tell):
        log.warning("a process that was to compile %s; compiling here instead, which takes more memory", failure)
    with counting(tell):
        for entry in missing:
            compile_here(entry)
    progress(1.0)


def shares(entries: Sequence[Entry], processes: int) -> list[list[str]]:
    """The names of entries, divided among up to so many processes that are to end at about the same time."""
    found: list[list[Entry]] = [[] for _ in range(min(processes, len(entries)))]
    for each in sorted(entries, key=lambda entry: -entry.cost):
        min(found, key=lambda share: sum(entry.cost for entry in share)).append(each)
    return [[entry.name for entry in share] for share in found]


def compile_here(entry: Entry) -> None:
    """Load or compile an entry in this process; that it cannot be kept is no obstacle."""
    try:
        entry.compile()
    except OSError as error:
        if not entry.compiled:
            raise
        log.warning("%s cannot be kept for the next start, which compiles it again: %s", entry.name, error)
