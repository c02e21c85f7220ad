"""Clients that leave, and clients that do not read."""

import json
import socket
import struct
import threading
import time

import httpx
import pytest

from tests.daemon.daemons import RunningDaemon, post_bytes

LONG = {
    "messages": [{"role": "user", "content": "Write a very long story about the sea."}],
    "max_tokens": 1500,
    "temperature": 0,
}


def chat_bytes(**fields):
    return post_bytes("/v1/chat/completions", json.dumps(LONG | fields).encode())


def running(status):
    return len(status.sequences) == 1


def test_streaming_client_leaves(daemon, client):
    with client.stream("POST", "/v1/chat/completions", json=LONG | {"stream": True}) as response:
        lines = response.iter_lines()
        for _ in range(6):
            next(lines)
        assert running(daemon.status())
    daemon.assert_idle(seconds=1)


def test_waiting_client_leaves(daemon):
    with daemon.connect() as connection:
        connection.sendall(chat_bytes())
        assert running(daemon.wait_status(running))
    daemon.assert_idle(seconds=1)


def test_client_resets(daemon):
    with daemon.connect() as connection:
        connection.sendall(chat_bytes(stream=True))
        assert running(daemon.wait_status(running))
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    daemon.assert_idle(seconds=1)


@pytest.mark.parametrize("extra", [b"\r\n", b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n", b"x" * 1000])
@pytest.mark.parametrize("stream", [False, True])
def test_client_leaves_with_more_bytes_on_the_way(daemon, extra, stream):
    """Bytes after a request make the server wait with reading; it sees the client leave all the same."""
    with daemon.connect() as connection:
        connection.sendall(chat_bytes(stream=stream) + extra)
        assert running(daemon.wait_status(running))
    daemon.assert_idle(seconds=1)


def test_pipelined_requests_are_answered_in_turn(daemon):
    with daemon.connect() as connection:
        connection.sendall(chat_bytes(max_tokens=2) + b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        connection.settimeout(30)
        data = b""
        while more := connection.recv(65536):
            data += more
    assert data.index(b"chat.completion") < data.index(b'{"status":"ok"}')


def test_client_leaves_before_its_answer_begins(daemon):
    """Also when the response's body is never begun, what was submitted is given back."""
    for delay in (0, 0.001, 0.003, 0.01):
        for _ in range(5):
            with daemon.connect() as connection:
                connection.sendall(chat_bytes(stream=True))
                time.sleep(delay)
    daemon.assert_idle()


def test_nine_of_ten_clients_leave(daemon):
    clients = [httpx.Client(base_url=daemon.url, timeout=60) for _ in range(10)]
    streams = [client.stream("POST", "/v1/chat/completions", json=LONG | {"stream": True}) for client in clients]
    responses = [stream.__enter__() for stream in streams]
    readers = [response.iter_raw() for response in responses]
    for reader in readers:
        next(reader)
    assert len(daemon.wait_status(lambda status: len(status.sequences) == 10).sequences) == 10
    for stream, client in list(zip(streams, clients, strict=True))[1:]:
        stream.__exit__(None, None, None)
        client.close()
    status = daemon.wait_status(running, seconds=1)
    assert running(status)
    assert status.sequences[0].blocks == status.blocks_used
    streams[0].__exit__(None, None, None)
    clients[0].close()
    daemon.assert_idle(seconds=1)


def test_slow_reader_slows_nobody_and_is_dropped():
    """It takes nothing at all; with tiny buffers the server's write stands still."""
    with RunningDaemon("--send-timeout-seconds", "2") as daemon:
        with socket.socket() as slow:
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            slow.connect(daemon.address)
            many = LONG | {"stream": True, "logprobs": True, "top_logprobs": 20, "max_tokens": 1500}
            slow.sendall(post_bytes("/v1/chat/completions", json.dumps(many).encode()))
            daemon.wait_status(running)
            with daemon.client() as client:
                answer = client.post("/v1/chat/completions", json=LONG | {"max_tokens": 20}).json()
            assert answer["usage"]["completion_tokens"] == 20
            daemon.assert_idle(seconds=120)
            end = time.monotonic() + 30
            while "stopped reading" not in daemon.log() and time.monotonic() < end:
                time.sleep(0.1)
        assert "stopped reading" in daemon.log()
        assert daemon.end() == 0


def test_stalled_reader_does_not_keep_the_daemon_from_stopping():
    with RunningDaemon("--grace-seconds", "1") as daemon, socket.socket() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        slow.connect(daemon.address)
        many = LONG | {"stream": True, "logprobs": True, "top_logprobs": 20, "max_tokens": 1500}
        slow.sendall(post_bytes("/v1/chat/completions", json.dumps(many).encode()))
        daemon.wait_status(running)
        time.sleep(3)
        begun = time.monotonic()
        assert daemon.end() == 0
        assert time.monotonic() - begun < 10


def test_many_clients_at_once(daemon):
    """More than run together: the rest wait, and everyone gets the answer that one alone gets."""
    body = LONG | {"max_tokens": 4}
    with daemon.client() as client:
        alone = client.post("/v1/chat/completions", json=body).json()["choices"]
    answers = []

    def ask():
        with daemon.client() as client:
            answers.append(client.post("/v1/chat/completions", json=body).json()["choices"])

    threads = [threading.Thread(target=ask) for _ in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [alone] * 40
