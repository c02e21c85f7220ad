"""Raw HTTP: attacks, slow senders, keep-alive, and what is no HTTP at all."""

import json
import random
import time

import pytest

from tests.daemon.daemons import RunningDaemon, answer, post_bytes, received

GET = b"GET /health HTTP/1.1\r\nHost: puma\r\n"
KEY = b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"


def exchange(daemon, data, seconds=10):
    with daemon.connect() as connection:
        connection.sendall(data)
        return received(connection, seconds)


def assert_alive(daemon):
    with daemon.client() as client:
        assert client.get("/health").status_code == 200


@pytest.mark.parametrize(
    "attack",
    [
        GET + b"Connection: Upgrade\r\nUpgrade: websocket\r\n" + KEY + b"\r\nx",
        GET + b"Connection: Upgrade, close\r\nUpgrade: websocket\r\n" + KEY + b"\r\n",
        GET + b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: A\r\n\r\n",
        GET + b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\x00" * 100,
        b"GET ?a=1 HTTP/1.1\r\nHost: puma\r\nConnection: close\r\n\r\n",
        b"GET http://elsewhere/health HTTP/1.1\r\nHost: puma\r\nConnection: close\r\n\r\n",
        b"GET * HTTP/1.1\r\nHost: puma\r\nConnection: close\r\n\r\n",
        b"OPTIONS * HTTP/1.1\r\nHost: puma\r\nConnection: close\r\n\r\n",
        b"CONNECT puma:80 HTTP/1.1\r\nHost: puma\r\n\r\nhello",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET /health HTTP/1.0\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc",
        b"\x00" * 4096,
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\n",
        b"POST /v1/completions HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n",
        b"POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Length: -5\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"x" * 100_000 + b"\r\n\r\n",
        b"GET /v1/models/%ff%fe HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
    ],
)
def test_malformed_requests_hurt_nobody(daemon, attack):
    data = exchange(daemon, attack, seconds=3)
    if data:
        assert data.startswith(b"HTTP/1.1 ")
        assert not data.startswith((b"HTTP/1.1 101", b"HTTP/1.1 500"))
    assert_alive(daemon)


def test_upgrades_are_ignored(daemon):
    for upgrade in (b"websocket\r\n" + KEY, b"h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n"):
        data = exchange(daemon, GET + b"Connection: Upgrade, close\r\nUpgrade: " + upgrade + b"\r\n")
        assert data.startswith(b"HTTP/1.1 200")
        assert data.endswith(b'{"status":"ok"}')


def test_malformed_head_is_told_in_the_usual_shape(daemon):
    data = exchange(daemon, b"GET / HTTP/1.1\r\nbad header\r\n\r\n")
    head, _, body = data.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400")
    assert set(json.loads(body)["error"]) == {"message", "type", "param", "code"}


def test_fuzzed_heads_and_bodies(daemon):
    """Random damage to valid requests: the daemon answers in HTTP or closes, and lives."""
    rng = random.Random(20)
    valid = [
        post_bytes("/v1/chat/completions", b'{"messages":[{"role":"user","content":"Hi"}],"max_tokens":1}'),
        post_bytes("/v1/completions", b'{"prompt":[1,2,3],"max_tokens":1,"stream":true}', "Expect: 100-continue"),
        GET + b"Connection: Upgrade\r\nUpgrade: websocket\r\n" + KEY + b"\r\nabc",
        GET + b"Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n",
        b'POST /v1/completions HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n{"a\r\n0\r\n\r\n',
    ]
    for _ in range(300):
        data = bytearray(rng.choice(valid))
        for _ in range(rng.randrange(1, 6)):
            place = rng.randrange(len(data))
            match rng.randrange(4):
                case 0:
                    data[place] = rng.randrange(256)
                case 1:
                    del data[place : place + rng.randrange(1, 9)]
                case 2:
                    data[place:place] = rng.choice([b"\r\n", b"\0", b": ", b"\r\n\r\n", b"{", b"HTTP/1.1"])
                case _:
                    data += data[: rng.randrange(len(data))]
            if not data:
                break
        with daemon.connect() as connection:
            connection.sendall(bytes(data))
            data = received(connection, rng.choice([0.001, 0.02]))
        assert not data or data.startswith(b"HTTP/1.1 ")
    assert_alive(daemon)
    daemon.assert_idle()
    assert "Traceback" not in daemon.log()


def test_fuzzed_json(daemon, client):
    """Random damage to valid bodies: never a 500."""
    rng = random.Random(21)
    valid = (
        b'{"model":"smollm2:135m","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":'
        b'[{"type":"text","text":"Hi \\ud83d\\ude00"}]}],"max_tokens":1,"temperature":0.5,"top_p":0.9,"top_k":40,'
        b'"seed":5,"stop":["a","b"],"stream":false,"stream_options":{"include_usage":true},"logprobs":true,'
        b'"top_logprobs":2,"n":1,"logit_bias":{},"user":"me","prompt":[1,2]}'
    )
    pieces = (b"null", b"-1", b"1e999", b"[]", b"{}", b'""', b"true", b"\\ud83d", b"\xff", b"9" * 30, b",", b"}")
    seen = set()
    for _ in range(400):
        data = bytearray(valid)
        for _ in range(rng.randrange(1, 4)):
            place = rng.randrange(len(data))
            if rng.randrange(2):
                data[place : place + rng.randrange(6)] = rng.choice(pieces)
            else:
                data[place] = rng.randrange(256)
        path = rng.choice(["/v1/chat/completions", "/v1/completions"])
        response = client.post(path, content=bytes(data))
        seen.add(response.status_code)
        assert response.status_code in (200, 400, 404), (bytes(data), response.text)
        if response.status_code != 200:
            assert set(response.json()["error"]) == {"message", "type", "param", "code"}
    assert 400 in seen


def test_slow_head_is_closed(daemon):
    with daemon.connect() as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nHo")
        begun = time.monotonic()
        assert received(connection, 30) == b""
        assert 5 < time.monotonic() - begun < 20


def test_slow_bodies_are_told_and_closed():
    with RunningDaemon("--body-timeout-seconds", "1") as daemon:
        stuck = [daemon.connect() for _ in range(200)]
        for connection in stuck:
            connection.sendall(post_bytes("/v1/chat/completions", b"x" * 50)[:-47])
        begun = time.monotonic()
        assert_alive(daemon)
        assert time.monotonic() - begun < 1
        for connection in stuck:
            data = received(connection)
            assert data.startswith(b"HTTP/1.1 408")
            assert b'"code":"request_timeout"' in data
            connection.close()
        assert daemon.end() == 0


def test_dripping_body_is_closed_at_the_same_time():
    with RunningDaemon("--body-timeout-seconds", "1") as daemon, daemon.connect() as connection:
        connection.sendall(post_bytes("/v1/chat/completions", b"x" * 50)[:-47])
        begun = time.monotonic()
        data = b""
        connection.settimeout(0.3)
        while not data and time.monotonic() - begun < 10:
            connection.sendall(b"x")
            try:
                data = connection.recv(4096)
            except TimeoutError:
                continue
        assert data.startswith(b"HTTP/1.1 408")
        assert time.monotonic() - begun < 5


def test_keep_alive(daemon):
    with daemon.connect() as connection:
        for _ in range(3):
            connection.sendall(GET + b"\r\n")
            assert answer(connection).startswith(b"HTTP/1.1 200")


def test_large_body_for_an_unknown_route_is_answered(daemon):
    """The answer arrives although the client is still sending."""
    for size in (1_000_000, 8_000_000):
        with daemon.client() as client:
            response = client.post("/v1/nowhere", content=b"x" * size)
        assert response.status_code == 404
