"""Log lines on stderr, for people: time, level, the request they are about, and what happened."""

import logging
import sys
from contextvars import ContextVar

from puma.config.log import LogLevel

current_request: ContextVar[str] = ContextVar("current_request", default="-")
"""Id of the request that the running task serves; also in its response's x-request-id."""

log = logging.getLogger("puma")


class _Formatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        record.request = current_request.get()
        record.level = record.levelname.lower()
        return super().format(record)


def start_logging(level: LogLevel) -> None:
    """Write this level and more severe ones of Puma's own lines; warnings and errors only of the libraries'."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Formatter("%(asctime)s %(level)-7s %(request)s  %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    log.setLevel(level.upper())
