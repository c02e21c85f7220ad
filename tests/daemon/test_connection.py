"""The server round any application: what goes wrong in one connection stays in it."""

from functools import partial

import pytest
import trio
import trio.lowlevel

from puma.daemon.connection import Limits
from puma.daemon.http1 import Http1
from puma.daemon.listener import take_port
from puma.daemon.server import serve

GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


async def hello(scope, receive, send):
    """The smallest application; a path of /slow waits for ever, one of /large writes much."""
    if scope["path"] == "/slow":
        await trio.sleep_forever()
    body = b"x" * 50_000_000 if scope["path"] == "/large" else b"hello"
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
    await send({"type": "http.response.body", "body": body, "more_body": False})


@pytest.fixture
async def server(nursery):
    """Connects to a server of `hello`; `stop` ends it."""
    stop = trio.Event()
    port = take_port("127.0.0.1", 0)
    await nursery.start(partial(serve, hello, port, Limits(send=1, head=1, idle=2), stop=stop))
    connect = partial(trio.open_tcp_stream, *port.getsockname())
    connect.stop = stop
    return connect


async def answer(stream):
    data = b""
    while not data.endswith(b"hello"):
        more = await stream.receive_some()
        assert more, data
        data += more
    return data


async def rest(stream):
    data = b""
    async for more in stream:
        data += more
    return data


async def test_fault_in_a_connection_ends_that_connection_only(server, monkeypatch, caplog):
    handle = Http1.handle

    async def faulty(self, event):
        if b"boom" in getattr(event, "data", b""):
            raise ValueError("a fault of the protocol")
        await handle(self, event)

    monkeypatch.setattr(Http1, "handle", faulty)
    async with await server() as other, await server() as hit:
        await hit.send_all(b"boom")
        assert await rest(hit) == b""
        await other.send_all(GET)
        await answer(other)
    assert "a connection failed" in caplog.text


async def test_times_before_between_and_after_requests(server):
    async with await server() as stream:
        begun = trio.current_time()
        assert await rest(stream) == b""
        assert 0.9 < trio.current_time() - begun < 1.9
    async with await server() as stream:
        await stream.send_all(GET)
        await answer(stream)
        begun = trio.current_time()
        await trio.sleep(1.2)
        # Between two requests there is more time, but once the next head has begun no more than for the first.
        await stream.send_all(GET[:5])
        assert await rest(stream) == b""
        assert 2.1 < trio.current_time() - begun < 3.5


async def test_writes_are_bounded(server):
    async with await server() as stream:
        await stream.send_all(GET.replace(b"/ ", b"/large "))
        await trio.sleep(2)
        assert 0 < len(await rest(stream)) < 50_000_000


async def test_stop_ends_idle_ones_at_once_and_busy_ones_soon(server):
    async with await server() as idle, await server() as fresh, await server() as busy, await server() as stuck:
        await idle.send_all(GET)
        await answer(idle)
        await busy.send_all(GET.replace(b"/ ", b"/slow "))
        await stuck.send_all(GET.replace(b"/ ", b"/large "))
        await trio.sleep(0.2)
        begun = trio.current_time()
        server.stop.set()
        assert await rest(idle) == b""
        assert await rest(fresh) == b""
        assert trio.current_time() - begun < 0.4
        await rest(busy)
        assert trio.current_time() - begun < 3
        with pytest.raises(OSError, match="connect"):
            await server()
