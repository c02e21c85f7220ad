"""One pull of a model at a time, over all processes."""

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def exclusive(path: Path) -> Generator[None]:
    """Hold the lock that this file stands for; waits while another process, or thread, holds it.

    The file is removed at the end. It goes with its holder in any case: the system frees the lock of a process that
    dies, and whoever waited checks that the file it locked is still the one at the path.
    """
    while True:
        with path.open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            if not is_at(file.fileno(), path):
                continue
            try:
                yield
            finally:
                path.unlink(missing_ok=True)
            return


def is_at(descriptor: int, path: Path) -> bool:
    """Whether the path still names this open file."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False
