"""Why a command could not do its work: one line for people and the exit status, never a traceback for a known cause."""

import errno
import os
import sys
from typing import cast

from puma.config.errors import ConfigError
from puma.daemon.control.lock import AlreadyRunning
from puma.daemon.control.paths import UnusablePath
from puma.daemon.exits import Exit
from puma.daemon.listener import CannotListen
from puma.daemon.log import log
from puma.models.errors import ModelFileError, PromptError
from puma.models.store.errors import StoreError

CANNOT_WRITE = (errno.ENOSPC, errno.EDQUOT, errno.EIO)

TABLE: tuple[tuple[type[BaseException], Exit], ...] = (
    (ConfigError, Exit.USAGE),
    (UnusablePath, Exit.USAGE),
    (AlreadyRunning, Exit.IN_USE),
    (PromptError, Exit.FAILED),
    (ModelFileError, Exit.MODEL),
    (StoreError, Exit.MODEL),
    (KeyboardInterrupt, Exit.INTERRUPTED),
)


def report(error: BaseException) -> Exit:
    """Say what went wrong on stderr; returns the exit status."""
    cause = first_cause(error)
    if isinstance(cause, CannotListen):
        return _say(cause, cause.status)
    if isinstance(cause, OSError) and cause.errno in CANNOT_WRITE:
        # The interpreter flushes stdout once more at its end; let that go nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _say(OSError(f"the output cannot be written: {cause.strerror}"), Exit.FAILED)
    for kind, status in TABLE:
        if isinstance(cause, kind):
            return _say(cause, status)
    log.critical("Puma failed", exc_info=error)
    return Exit.FAILED


def first_cause(error: BaseException) -> BaseException:
    """The first error that is no group."""
    if isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        return first_cause(group.exceptions[0])
    return error


def _say(cause: BaseException, status: Exit) -> Exit:
    for line in str(cause).splitlines() or ["interrupted"]:
        print(f"puma: {line}", file=sys.stderr, flush=True)
    return status
