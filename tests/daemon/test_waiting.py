"""The port while the model is loaded: 503 to everything, then the model's answers, and nothing refused in between."""

import socket
import time

import httpx
import pytest

from tests.daemon.daemons import START_SECONDS, RunningDaemon


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@pytest.fixture
def starting():
    port = free_port()
    with RunningDaemon(port=port, wait=False) as daemon:
        yield daemon, f"http://127.0.0.1:{port}"
        daemon.wait_ready()
        assert daemon.end() == 0


def until_open(ask):
    """The first response; the process has to be started and its libraries imported before the port is open."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            return ask()
        except httpx.ConnectError:
            time.sleep(0.005)
    raise AssertionError("the port did not open")


def test_health_says_loading_and_then_ok(starting):
    _, url = starting
    first = until_open(lambda: httpx.get(url + "/health"))
    assert (first.status_code, first.json()) == (503, {"status": "loading"})
    seen, end = [], time.monotonic() + START_SECONDS
    while not seen or seen[-1] != (200, {"status": "ok"}):
        assert time.monotonic() < end
        response = httpx.get(url + "/health")
        seen.append((response.status_code, response.json()))
    assert all(one == (503, {"status": "loading"}) for one in seen[:-1])


def test_requests_are_told_to_come_again(starting):
    _, url = starting
    body = {"messages": [{"role": "user", "content": "Hello " * 5000}]}
    response = until_open(lambda: httpx.post(url + "/v1/chat/completions", json=body))
    assert response.status_code == 503
    assert response.headers["retry-after"] == "1"
    assert response.json()["error"]["code"] == "model_loading"
