"""Exit statuses of `puma`, in one place. docs/operations.md repeats the table."""

from enum import IntEnum


class Exit(IntEnum):
    """A process that a signal ended before it served, or that a second signal ended, exits with 128 + signal."""

    OK = 0
    FAILED = 1
    """Something in Puma went wrong; the log says what."""
    USAGE = 2
    """A flag or a configuration value is wrong; nothing was loaded."""
    IN_USE = 3
    """The port or the control socket belongs to another process; nothing was loaded."""
    MODEL = 4
    """The model is not there, cannot be fetched, or its file cannot be used."""
    INTERRUPTED = 130
    """Ctrl-C."""
    BROKEN_PIPE = 141
    """Whoever read the output has gone."""
