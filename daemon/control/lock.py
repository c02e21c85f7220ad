"""The lock that says: a daemon lives here. The kernel gives it back when the process ends, however it ends."""

import fcntl
import os
from pathlib import Path

from puma.daemon.control.paths import lock_path


class AlreadyRunning(Exception):
    """A living daemon holds the lock."""


class Lock:
    """Held by the daemon for its whole life. Raises AlreadyRunning."""

    def __init__(self, socket: Path) -> None:
        self._path = lock_path(socket)
        while True:
            self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                holder = os.pread(self._descriptor, 32, 0).decode(errors="replace").strip()
                os.close(self._descriptor)
                raise AlreadyRunning(
                    f"a daemon already uses the control socket {socket} (process {holder}): stop it with "
                    f"`pumactl --control-socket {socket} stop`, or choose another --control-socket"
                ) from None
            if self._is_in_place():
                break
            # A daemon that was just ending has removed the file between the two calls.
            os.close(self._descriptor)
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, f"{os.getpid()}\n".encode(), 0)

    def remove(self) -> None:
        """Remove the file at the end. The lock itself stays until the process has gone."""
        if self._is_in_place():
            self._path.unlink()

    def _is_in_place(self) -> bool:
        try:
            return os.path.samestat(os.fstat(self._descriptor), os.stat(self._path))
        except FileNotFoundError:
            return False


def open_lock(socket: Path) -> int | None:
    """For a client: a descriptor to wait on the daemon's end with; None when there is no lock file."""
    try:
        return os.open(lock_path(socket), os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return None


def is_held(descriptor: int) -> bool:
    """Whether a daemon lives."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    fcntl.flock(descriptor, fcntl.LOCK_UN)
    return False


def wait_released(descriptor: int) -> None:
    """Wait until the daemon has gone."""
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    fcntl.flock(descriptor, fcntl.LOCK_UN)
