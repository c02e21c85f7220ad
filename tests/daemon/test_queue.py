"""One sequence at a time, one waiting: who waits, who is told to come later, and what a waiting client sees."""

import threading
import time

import pytest

from tests.daemon.daemons import RunningDaemon
from tests.daemon.streams import chunks_of

LONG = {
    "messages": [{"role": "user", "content": "Write a very long story about the sea."}],
    "max_tokens": 3000,
    "temperature": 0,
    "stream": True,
}
SHORT = LONG | {"max_tokens": 2}


@pytest.fixture(scope="module")
def narrow():
    with RunningDaemon("--max-batch-size", "1", "--max-queued-requests", "1") as daemon:
        yield daemon
        assert daemon.end() == 0, daemon.log()


def test_next_one_runs_as_soon_as_a_client_leaves(narrow):
    with narrow.client() as leaving, narrow.client() as next_one:
        with leaving.stream("POST", "/v1/chat/completions", json=LONG) as response:
            reader = response.iter_raw()
            for _ in range(3):
                next(reader)
            answers = []
            waiting = threading.Thread(target=lambda: answers.append(next_one.post("/v1/chat/completions", json=SHORT)))
            waiting.start()
            narrow.wait_status(lambda status: len(status.sequences) == 2)
            assert not answers
            # One more finds no place to wait.
            with narrow.client() as third:
                refused = third.post("/v1/chat/completions", json=SHORT)
            assert refused.status_code == 429
            assert refused.headers["retry-after"]
            assert refused.json()["error"]["code"] == "queue_full"
        left = time.monotonic()
        waiting.join()
        assert time.monotonic() - left < 5
    assert chunks_of(answers[0])[-1] == "[DONE]"
    narrow.assert_idle(seconds=1)


def test_several_prompts_are_refused_together():
    """The second finds no place: the first is given back."""
    with RunningDaemon("--max-batch-size", "1", "--max-queued-requests", "2") as daemon, daemon.client() as client:
        body = {"prompt": ["a", "b"], "max_tokens": 500}
        with daemon.client() as first, first.stream("POST", "/v1/completions", json=body | {"stream": True}):
            daemon.wait_status(lambda status: len(status.sequences) == 2)
            assert client.post("/v1/completions", json=body).status_code == 429
            # What was given back is gone once the scheduler has heard of it.
            assert len(daemon.wait_status(lambda status: len(status.sequences) == 2).sequences) == 2
        daemon.assert_idle(seconds=1)
        assert daemon.end() == 0


def test_waiting_stream_is_kept_alive(narrow):
    """Headers at once; a comment about every ten seconds until the first token."""
    with (
        narrow.client() as running,
        narrow.client() as waiting,
        running.stream("POST", "/v1/chat/completions", json=LONG) as first,
    ):
        reader = first.iter_raw()
        next(reader)
        begun = time.monotonic()
        with waiting.stream("POST", "/v1/chat/completions", json=LONG) as second:
            pieces = second.iter_raw()
            opening = next(pieces)
            assert time.monotonic() - begun < 5
            assert b'"role":"assistant"' in opening
            comment = next(pieces)
            assert 8 < time.monotonic() - begun < 20
            assert comment == b": keep-alive\n\n"
    narrow.assert_idle(seconds=1)
