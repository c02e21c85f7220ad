"""One client's connection: bytes between a socket and HTTP/1.1.

It does what Hypercorn's TCPServer does, without that one's two faults under trio: an exception in one connection
would end the whole process, and a client that stops reading could not be ended by anything.
"""

from collections.abc import Generator
from contextlib import contextmanager, suppress
from math import inf

import msgspec
import trio
from hypercorn.config import Config
from hypercorn.events import Closed, Event, RawData, Updated
from hypercorn.trio.task_group import TaskGroup
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import AppWrapper

from puma.daemon.http1 import ClientGone, Http1
from puma.daemon.log import log

RECEIVE_BYTES = 1 << 16

LINGER_SECONDS = 2.0
"""How long what a client still sends is thrown away after it was answered, so that it can read the answer."""

GONE = (OSError, trio.BrokenResourceError, trio.ClosedResourceError, trio.BusyResourceError)


class Limits(msgspec.Struct, frozen=True):
    """Seconds a client may take."""

    send: float
    """For a write to be taken."""
    head: float = 10.0
    """For the head of a request, from its first byte, or from the connection's beginning."""
    idle: float = 75.0
    """Between two requests."""


class Writes:
    """The writes in progress of all connections.

    Each is shielded, since half a chunk would spoil a stream, and bounded, since clients stop reading.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._latest = inf
        self._scopes: set[trio.CancelScope] = set()

    @contextmanager
    def bounded(self) -> Generator[trio.CancelScope]:
        """A scope for one write; its cancelled_caught tells whether the client took too long."""
        deadline = min(trio.current_time() + self._seconds, self._latest)
        scope = trio.CancelScope(shield=True, deadline=deadline)
        self._scopes.add(scope)
        try:
            with scope:
                yield scope
        finally:
            self._scopes.discard(scope)

    def end_by(self, deadline: float) -> None:
        """No write, present or future, lasts longer than this."""
        self._latest = deadline
        for scope in self._scopes:
            scope.deadline = min(scope.deadline, deadline)


class Connection:
    """One connection; `writes` is shared by all of them."""

    def __init__(
        self,
        app: AppWrapper,
        config: Config,
        context: WorkerContext,
        limits: Limits,
        writes: Writes,
        stream: trio.SocketStream,
    ) -> None:
        self._app = app
        self._config = config
        self._context = context
        self._limits = limits
        self._writes = writes
        self._stream = stream
        self._protocol: Http1
        self._tasks: TaskGroup
        self._life = trio.CancelScope()
        self._send_lock = trio.Lock()
        self._timer = trio.CancelScope()
        self._between_requests = False
        self._closing = False

    async def run(self) -> None:
        """Serve the connection to its end. Raises nothing but Cancelled."""
        try:
            with self._life:
                await self._serve()
        except* (ClientGone, *GONE):
            pass
        except* Exception as failures:
            log.error("a connection failed and was closed", exc_info=failures)
        finally:
            with trio.CancelScope(shield=True):
                await trio.aclose_forcefully(self._stream)

    async def _serve(self) -> None:
        socket = self._stream.socket
        client, server = socket.getpeername()[:2], socket.getsockname()[:2]
        async with TaskGroup() as self._tasks:
            self._protocol = Http1(
                self._app,
                self._config,
                self._context,
                self._tasks,
                (client, server),
                self._send,
                self._stream,
            )
            self._close_after(self._limits.head)
            await self._read()

    async def _read(self) -> None:
        while True:
            try:
                data = await self._stream.receive_some(RECEIVE_BYTES)
            except GONE:
                break
            if self._closing:
                if not data:
                    self._life.cancel()
                continue
            if self._between_requests:
                self._between_requests = False
                self._close_after(self._limits.head)
            await self._protocol.handle(RawData(bytes(data)))
            if not data:
                break
        await self._protocol.handle(Closed())

    async def _send(self, event: Event) -> None:
        """What the protocol wants done."""
        match event:
            case RawData():
                await self._write(event.data)
            case Closed():
                # The task that is here was often cancelled just now, with the request that it has answered.
                with trio.CancelScope(shield=True):
                    await self._close()
            case Updated(idle=True):
                self._between_requests = True
                self._close_after(self._limits.idle)
            case Updated():
                self._timer.cancel()
            case _:
                pass

    async def _write(self, data: bytes) -> None:
        async with self._send_lock:
            try:
                with self._writes.bounded() as scope:
                    await self._stream.send_all(data)
            except GONE:
                await self._protocol.handle(Closed())
                return
        if scope.cancelled_caught:
            log.info("a client stopped reading and was dropped")
            await trio.aclose_forcefully(self._stream)
            await self._protocol.handle(Closed())

    async def _close(self) -> None:
        await self._protocol.handle(Closed())
        if not self._protocol.request_unread:
            await self._stream.aclose()
            return
        # Closing with bytes unread would reset the connection, and the client might never see its answer.
        self._closing = True
        with suppress(*GONE):
            await self._stream.send_eof()
        self._life.deadline = trio.current_time() + LINGER_SECONDS

    def _close_after(self, seconds: float) -> None:
        """Close unless this is called again, or the timer is cancelled, in time."""
        self._timer.cancel()
        self._timer = trio.CancelScope()
        self._tasks.spawn(self._close_in, seconds, self._timer)  # pyright: ignore[reportUnknownMemberType]

    async def _close_in(self, seconds: float, timer: trio.CancelScope) -> None:
        with timer:
            with trio.move_on_after(seconds):
                await self._context.terminated.wait()
            with trio.CancelScope(shield=True):
                await self._protocol.handle(Closed())
                await self._stream.aclose()
