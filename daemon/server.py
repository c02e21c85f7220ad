"""The HTTP server: Hypercorn's protocol parts on trio, over connections of our own.

Hypercorn's serve() is not used, since its TCP server has two faults under trio (daemon/connection.py), and since
connections end differently here when the daemon stops.
"""

import socket
from functools import partial

import trio
from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.config import Config
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import ASGIFramework

from puma.daemon.connection import Connection, Limits, Writes
from puma.daemon.listener import open_port
from puma.daemon.log import log

CLOSING_SECONDS = 0.5
"""What connections have left, once the server stops, for what they are just writing."""


async def serve(
    app: ASGIFramework,
    taken: socket.socket,
    limits: Limits,
    *,
    stop: trio.Event,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Listen on a bound socket until `stop`; then end idle connections at once and the others soon."""
    config = Config()
    config.include_server_header = False
    config.errorlog = log
    context = WorkerContext(None)
    writes = Writes(limits.send)
    wrapped = ASGIWrapper(app)

    async def connected(stream: trio.SocketStream) -> None:
        await Connection(wrapped, config, context, limits, writes, stream).run()

    open_port(taken)
    listener = trio.SocketListener(trio.socket.from_stdlib_socket(taken))
    async with trio.open_nursery() as connections:
        try:
            async with trio.open_nursery() as accepting:
                await accepting.start(partial(trio.serve_listeners, connected, [listener], handler_nursery=connections))
                task_status.started()
                await stop.wait()
                accepting.cancel_scope.cancel()
        finally:
            await context.terminated.set()
            connections.cancel_scope.deadline = trio.current_time() + CLOSING_SECONDS
            writes.end_by(connections.cancel_scope.deadline)
