"""One real daemon for all tests that do not end it."""

import pytest

from tests.daemon.daemons import RunningDaemon


@pytest.fixture(scope="session", autouse=True)
def model_is_here(smollm2_path):
    """The daemons are given its name, and do not fetch it themselves."""


@pytest.fixture(scope="session")
def daemon():
    # A small context keeps what a runaway request can cost small.
    with RunningDaemon("--log-level", "debug") as running:
        yield running
        assert running.process.poll() is None, running.log()
        assert running.end() == 0, running.log()


@pytest.fixture
def client(daemon):
    with daemon.client() as client:
        yield client
    daemon.assert_idle()


@pytest.fixture
def chat(client):
    """Send a chat request; returns the response."""

    def send(content="Name three colours.", **fields):
        body = {"messages": [{"role": "user", "content": content}], "max_tokens": 8, "temperature": 0} | fields
        return client.post("/v1/chat/completions", json=body)

    return send


@pytest.fixture
def complete(client):
    """Send a completion request; returns the response."""

    def send(prompt="The capital of France is", **fields):
        body = {"prompt": prompt, "max_tokens": 8, "temperature": 0} | fields
        return client.post("/v1/completions", json=body)

    return send
