"""Where the control socket and its lock are."""

import os
import warnings
from pathlib import Path

import platformdirs

from puma.config.home import chosen_home

LONGEST_PATH = 107
"""Bytes that a Unix socket's address holds."""


class UnusablePath(Exception):
    """The control socket cannot be at this place."""


def socket_path(configured: str | None) -> Path:
    """The configured path; else puma.sock in PUMA_HOME, or in the user's runtime folder.

    Raises UnusablePath when it is too long for a socket.
    """
    if configured is not None:
        path = Path(configured).expanduser()
    elif (home := chosen_home()) is not None:
        path = home / "puma.sock"
    else:
        with warnings.catch_warnings():
            # Said where there is no runtime folder, and a temporary one stands in for it: private_folder looks at that.
            warnings.simplefilter("ignore")
            path = platformdirs.user_runtime_path("puma") / "puma.sock"
    path = path.absolute()
    length = len(os.fsencode(path))
    if length > LONGEST_PATH:
        message = f"the control socket's path has {length} bytes, at most {LONGEST_PATH} are possible: {path}"
        raise UnusablePath(f"{message}; choose another with --control-socket")
    return path


def lock_path(path: Path) -> Path:
    """The file whose lock a daemon holds from before it loads until it has gone."""
    return path.with_name(path.name + ".lock")


def private_folder(folder: Path) -> None:
    """Create the folder, for its owner only; refuse one that somebody else could swap the socket in.

    Raises UnusablePath.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.stat()
    except OSError as error:
        raise UnusablePath(f"the control socket's folder cannot be used: {error}") from None
    if status.st_uid not in (os.geteuid(), 0):
        raise UnusablePath(f"the control socket's folder belongs to another user: {folder}")
