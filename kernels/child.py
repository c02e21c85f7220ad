"""A process that compiles entries into the cache for another one: `python -m puma.kernels.child MODULE:FUNCTION ...`

stdin    brings nothing; its end says that the other process is gone, and so goes this one
stdout   a byte for each function that is compiled
stderr   why it failed
"""

import importlib
import os
import sys
import threading
from collections.abc import Sequence

from puma.kernels import cache
from puma.kernels.compile import ENTRIES, Entry, counting

STDIN, STDOUT, STDERR = range(3)


def main(names: Sequence[str]) -> None:
    """Compile these entries. Raises what numba raises, and OSError when the machine code cannot be written."""
    threading.Thread(target=leave_with_parent, daemon=True).start()
    told = os.dup(STDOUT)
    os.dup2(STDERR, STDOUT)
    entries = [find(name) for name in names]
    if not cache.is_current():
        raise SystemExit("the sources of the kernels have changed since the other process began")
    with counting(lambda: os.write(told, b".") and None):
        for entry in entries:
            entry.compile()


def leave_with_parent() -> None:
    """End the process, whatever it is doing, when stdin ends."""
    while os.read(STDIN, 1):
        pass
    os._exit(1)


def find(name: str) -> Entry:
    """The entry of this name, "module:function". Raises ImportError, LookupError."""
    importlib.import_module(name.partition(":")[0])
    for entry in ENTRIES:
        if entry.name == name:
            return entry
    raise LookupError(f"{name} is no entry")


if __name__ == "__main__":
    main(sys.argv[1:])
    # Without tearing down an interpreter in which a thread still reads.
    os._exit(0)
