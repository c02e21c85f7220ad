"""Lifecycle: who wants the daemon to end, and how soon."""

import signal
from collections.abc import AsyncIterator, Callable
from typing import NoReturn

import trio

from puma.daemon.log import log

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Lifecycle:
    """`stopping` is set when the daemon is to end, `now` when running requests are not to be waited for."""

    def __init__(self) -> None:
        self.stopping = trio.Event()
        self.now = trio.Event()
        self.signal: int | None = None

    def stop(self, *, now: bool = False) -> None:
        """Ask for the end; may be called again, with now, to hurry."""
        self.stopping.set()
        if now:
            self.now.set()

    async def watch(self, signals: AsyncIterator[int], force: Callable[[int], NoReturn]) -> None:
        """The first signal asks for the end, the second forces it."""
        async for number in signals:
            if self.stopping.is_set():
                force(number)
            self.signal = number
            log.info("%s: stopping; once more ends at once", signal.Signals(number).name)
            self.stop()

    async def stopping_or(self, scope: trio.CancelScope) -> None:
        """Cancel the scope when the daemon is to end."""
        await self.stopping.wait()
        scope.cancel()
