"""The daemon's side of the control socket: one small task per connection, none of which can hurt the daemon."""

import os
import socket
import struct
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
import trio

from puma.daemon.control.messages import (
    HEADER_BYTES,
    PROTOCOL,
    Answer,
    Ask,
    Greeting,
    Refused,
    frame,
    length_of,
)
from puma.daemon.log import log
from puma.daemon.version import version

PATIENCE_SECONDS = 10.0
"""For a client to ask, and for the engine to answer."""

MAX_ASK_BYTES = 64 * 1024

Handler = Callable[[Ask], Awaitable[Answer]]

_decoder = msgspec.msgpack.Decoder(Ask)


def open_socket(path: Path) -> socket.socket:
    """Listen at the path, for the owner only whatever the umask is. The caller holds the lock.

    A socket that a dead daemon left there is replaced.
    """
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    fresh = path.with_name(path.name + ".new")
    fresh.unlink(missing_ok=True)
    listening.bind(os.fspath(fresh))
    # Nobody can connect before listen(), so there is no moment at which the mode is too wide.
    fresh.chmod(0o600)
    listening.listen(128)
    fresh.replace(path)
    return listening


async def serve_control(
    listening: socket.socket,
    handle: Handler,
    *,
    task_status: trio.TaskStatus[list[trio.SocketListener]] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Answer until cancelled."""

    async def connected(stream: trio.SocketStream) -> None:
        try:
            with trio.move_on_after(PATIENCE_SECONDS):
                await _converse(stream, handle)
        except* (OSError, trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        except* Exception as failures:
            log.error("a control connection failed", exc_info=failures)

    listener = trio.SocketListener(trio.socket.from_stdlib_socket(listening))
    await trio.serve_listeners(connected, [listener], task_status=task_status)


async def _converse(stream: trio.SocketStream, handle: Handler) -> None:
    user = _peer_user(stream)
    if user not in (os.geteuid(), 0):
        log.warning("control connection of user %d refused", user)
        return
    await stream.send_all(frame(Greeting(PROTOCOL, version(), os.getpid())))
    try:
        length = length_of(await _exactly(stream, HEADER_BYTES))
        if length > MAX_ASK_BYTES:
            raise ValueError("the message is too long")
        ask = _decoder.decode(await _exactly(stream, length))
    except (ValueError, msgspec.MsgspecError) as error:
        await stream.send_all(frame(Refused(f"not understood: {error}")))
        return
    await stream.send_all(frame(await handle(ask)))


def _peer_user(stream: trio.SocketStream) -> int:
    """User id of the process at the other end, from the kernel."""
    credentials = stream.socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return struct.unpack("3i", credentials)[1]


async def _exactly(stream: trio.SocketStream, count: int) -> bytes:
    """Raises trio.BrokenResourceError when the client leaves first."""
    data = bytearray()
    while len(data) < count:
        more = await stream.receive_some(count - len(data))
        if not more:
            raise trio.BrokenResourceError("the client left")
        data += more
    return bytes(data)
