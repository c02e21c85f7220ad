"""How long an answer may be: the configured budget on every path, and the room there is."""

import pytest

from tests.daemon.daemons import MODEL, RunningDaemon, puma
from tests.daemon.streams import chunks_of

CONTEXT = 64
TELL = {"messages": [{"role": "user", "content": "Tell me a very long story."}], "temperature": 0}
ONCE = {"prompt": "Once upon a time", "temperature": 0}
PATHS = [("/v1/chat/completions", TELL), ("/v1/completions", ONCE)]


@pytest.fixture(scope="module")
def daemon():
    with RunningDaemon("--default-max-tokens", "7") as running:
        yield running


@pytest.fixture(scope="module")
def narrow():
    """A daemon whose context is short, and whose budget is whatever that leaves."""
    with RunningDaemon("--default-max-tokens", "context", "--context-length", str(CONTEXT)) as running:
        yield running


def ask(daemon, path, body, *, stream=False):
    """Completion tokens, prompt tokens and finish reason."""
    with daemon.client() as client:
        if not stream:
            answer = client.post(path, json=body).json()
            return answer["usage"]["completion_tokens"], answer["usage"]["prompt_tokens"], reason(answer)
        response = client.post(path, json=body | {"stream": True, "stream_options": {"include_usage": True}})
        *chunks, last, _ = chunks_of(response)
        return last["usage"]["completion_tokens"], last["usage"]["prompt_tokens"], reason(chunks[-1])


def reason(answer):
    return answer["choices"][0]["finish_reason"]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("path", "body"), PATHS)
def test_the_configured_budget_on_every_path(daemon, path, body, stream):
    for limits, expected in (({}, 7), ({"max_tokens": None}, 7), ({"max_tokens": 3}, 3), ({"max_tokens": 12}, 12)):
        made, _, finish = ask(daemon, path, body | limits, stream=stream)
        assert (made, finish) == (expected, "length"), limits
    if "messages" in body:
        for limits, expected in (({"max_completion_tokens": None}, 7), ({"max_completion_tokens": 3}, 3)):
            assert ask(daemon, path, body | limits, stream=stream)[0] == expected


def test_the_configured_budget_of_run():
    answers = [
        puma("run", MODEL, "Tell me a very long story.", "--temperature", "0", "--default-max-tokens", limit)
        for limit in ("3", "7")
    ]
    assert [answer.returncode for answer in answers] == [0, 0]
    assert answers[1].stdout.startswith(answers[0].stdout.rstrip("\n"))
    assert len(answers[1].stdout) > len(answers[0].stdout)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("path", "body"), PATHS)
@pytest.mark.parametrize("limits", [{}, {"max_tokens": 10**9}, {"max_tokens": CONTEXT}])
def test_beyond_the_room_an_answer_ends_there(narrow, path, body, stream, limits):
    made, prompt, finish = ask(narrow, path, body | limits, stream=stream)
    assert (made + prompt, finish) == (CONTEXT, "length")


@pytest.mark.parametrize("stream", [False, True])
def test_a_prompt_must_leave_room_for_one_token(narrow, stream):
    with narrow.client() as client:
        for length in (CONTEXT - 1, CONTEXT):
            body = {"prompt": [1] * length, "max_tokens": 5, "stream": stream}
            response = client.post("/v1/completions", json=body)
            if length < CONTEXT:
                assert response.status_code == 200
                continue
            assert response.status_code == 400
            error = response.json()["error"]
            assert error["code"] == "context_length_exceeded"
            assert "the prompt has 64 tokens; the context holds 64 tokens" in error["message"]
            assert "may have 63 at most" in error["message"]
