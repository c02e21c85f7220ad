"""HTTP/1.1 as Puma speaks it: Hypercorn's protocol without its upgrades, with errors in JSON."""

from collections.abc import Awaitable, Callable
from itertools import chain

import h11
import msgspec
import trio
from hypercorn.config import Config
from hypercorn.events import Event
from hypercorn.protocol.h11 import H11Protocol
from hypercorn.trio.task_group import TaskGroup
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import AppWrapper, ConnectionState

from puma.daemon.errors import HTTP_CODES, error_body

READ_AHEAD = 1 << 16
"""Bytes beyond the current request that are read while it is answered."""

Address = tuple[str, int] | None


class ClientGone(Exception):
    """The client closed the connection while its request was being answered."""


class Http1(H11Protocol):
    """Differs from Hypercorn's protocol in three things.

    - Upgrades are ignored, as RFC 9110 (7.8) allows: a request that asks for a websocket or for HTTP/2 is
      answered in HTTP/1.1. In Hypercorn 0.18 two malformed upgrade requests raise out of the connection.
    - While a request is answered and more bytes follow it, the client's leaving is still noticed.
    - A malformed request is told so in the shape of all other errors.
    """

    def __init__(
        self,
        app: AppWrapper,
        config: Config,
        context: WorkerContext,
        tasks: TaskGroup,
        addresses: tuple[Address, Address],
        send: Callable[[Event], Awaitable[None]],
        stream: trio.SocketStream,
    ) -> None:
        client, server = addresses
        super().__init__(app, config, context, tasks, ConnectionState({}), False, client, server, send)
        self.can_read = _Turn(stream, self.connection.receive_data, self._close_stream)

    @property
    def request_unread(self) -> bool:
        """Whether bytes of the request may still be on their way."""
        return self.connection.their_state not in (h11.DONE, h11.MUST_CLOSE, h11.CLOSED)

    async def _check_protocol(self, event: h11.Request) -> None:
        pass

    async def _create_stream(self, request: h11.Request) -> None:
        headers = [(name, value) for name, value in request.headers if name != b"upgrade"]
        await super()._create_stream(
            h11.Request(
                method=request.method,
                target=request.target,
                headers=headers,
                http_version=request.http_version,
            )
        )

    async def _send_error_response(self, status_code: int) -> None:
        message = "the request is not valid HTTP/1.1, or its head is too long"
        code = HTTP_CODES.get(status_code, "bad_request")
        body = msgspec.json.encode(error_body(message, "invalid_request_error", code))
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
            (b"connection", b"close"),
        ]
        every = list(chain(headers, self.config.response_headers("h11")))
        await self._send_h11_event(h11.Response(status_code=status_code, headers=every))
        await self._send_h11_event(h11.Data(data=body))
        await self._send_h11_event(h11.EndOfMessage())


class _Turn:
    """Until a request has been answered, what follows it is kept for later: an event in Hypercorn's manner.

    Hypercorn stops reading meanwhile and so would not see the client leave; this reads on, up to a limit.
    """

    def __init__(
        self, stream: trio.SocketStream, keep: Callable[[bytes], None], end_request: Callable[[], Awaitable[None]]
    ) -> None:
        self._stream = stream
        self._keep = keep
        self._end_request = end_request
        self._event = trio.Event()

    async def clear(self) -> None:
        self._event = trio.Event()

    async def set(self) -> None:
        self._event.set()

    def is_set(self) -> bool:
        return self._event.is_set()

    async def wait(self) -> None:
        """Raises ClientGone out of the connection's tasks when the client leaves first."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._read_ahead)
            await self._event.wait()
            nursery.cancel_scope.cancel()

    async def _read_ahead(self) -> None:
        room = READ_AHEAD
        while room > 0:
            try:
                data = await self._stream.receive_some(room)
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                data = b""
            if not data:
                await self._end_request()
                raise ClientGone
            self._keep(bytes(data))
            room -= len(data)
