"""Wrong bodies: each a 400 that names the field, and the daemon serves on."""

import pytest

USER = [{"role": "user", "content": "Hi"}]

WRONG_FIELDS = [
    # (field, value, param)
    *(("messages", value, "messages") for value in ([], None, "text", [None], {}, [[]], 3)),
    ("messages", [{}], "messages[0].role"),
    ("messages", [{"role": "robot", "content": "x"}], "messages[0].role"),
    ("messages", [{"role": "function", "content": "x"}], "messages[0].role"),
    ("messages", [{"role": "user"}], "messages[0].content"),
    ("messages", [{"role": "user", "content": None}], "messages[0].content"),
    ("messages", [{"role": "assistant", "content": None}], "messages[0].content"),
    ("messages", [*USER, {"role": "user", "content": 3}], "messages[1].content"),
    ("messages", [{"role": "user", "content": [{"type": "text"}]}], "messages[0].content[0].text"),
    (
        "messages",
        [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]}],
        "messages[0].content[0].type",
    ),
    ("messages", [{"role": "assistant", "tool_calls": [{"id": "1"}]}], "messages[0].tool_calls[0].function"),
    *(("max_tokens", value, "max_tokens") for value in (0, -1, "5", 2.0, 1.5, True, 2**63, 2**70)),
    *(("max_completion_tokens", value, "max_completion_tokens") for value in (0, -1, 3.0, 9)),
    *(("temperature", value, "temperature") for value in (-0.1, 2.1, "1", True, [])),
    *(("top_p", value, "top_p") for value in (-0.1, 1.1, "1")),
    *(("top_k", value, "top_k") for value in (-2, 1.0, "1", 2**63)),
    *(("min_p", value, "min_p") for value in (-0.1, 1.1)),
    *(("stop", value, "stop") for value in ("", [""], [None], ["a"] * 17, 5)),
    *(("stream", value, "stream") for value in (1, "true")),
    ("stream_options", {"include_usage": 1}, "stream_options.include_usage"),
    ("stream_options", True, "stream_options"),
    *(("logprobs", value, "logprobs") for value in (1, 5, "true")),
    *(("top_logprobs", value, "top_logprobs") for value in (21, -1, 2)),
    ("model", 5, "model"),
    # Known, would change the answer, not supported.
    *(("n", value, "n") for value in (0, 2, "1", 1.0, True)),
    ("best_of", 2, "best_of"),
    ("presence_penalty", 0.5, "presence_penalty"),
    ("frequency_penalty", -1, "frequency_penalty"),
    *(("repetition_penalty", value, "repetition_penalty") for value in (0, 1.1, "1")),
    *(("logit_bias", value, "logit_bias") for value in ({"5": 1}, {"49152": 1}, {"-1": 1}, {"x": 1}, [])),
    ("response_format", {"type": "json_object"}, "response_format"),
    ("tools", [{"type": "function", "function": {"name": "f"}}], "tools"),
    ("tool_choice", "required", "tool_choice"),
    ("functions", [{"name": "f"}], "functions"),
    ("echo", True, "echo"),
    ("suffix", "x", "suffix"),
    ("guided_regex", "a+", "guided_regex"),
    ("modalities", ["text", "audio"], "modalities"),
    ("audio", {"voice": "x"}, "audio"),
]

NEUTRAL = {
    "n": 1,
    "best_of": 1,
    "presence_penalty": 0,
    "frequency_penalty": 0.0,
    "repetition_penalty": 1.0,
    "logit_bias": {},
    "response_format": {"type": "text"},
    "tools": [],
    "tool_choice": "auto",
    "echo": False,
    "modalities": ["text"],
}


@pytest.mark.parametrize(("field", "value", "param"), WRONG_FIELDS)
def test_wrong_field(chat, field, value, param):
    response = chat(**{field: value})
    assert response.status_code == 400, response.text
    error = response.json()["error"]
    assert error["param"] == param
    assert param in error["message"]
    assert error["type"] == "invalid_request_error"


def test_values_that_ask_for_nothing(chat):
    assert chat(**NEUTRAL).status_code == 200


def test_missing_field(client):
    assert client.post("/v1/chat/completions", json={}).json()["error"]["param"] == "messages"
    assert client.post("/v1/completions", json={}).json()["error"]["param"] == "prompt"


@pytest.mark.parametrize("prompt", [None, [], {}, 5, [-1], [1.5], [2**40], [None], [[]], [49152], ""])
def test_wrong_prompt(complete, prompt):
    response = complete(prompt)
    assert response.status_code == 400, response.text
    assert response.json()["error"]["param"] == "prompt"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "empty"),
        (b"  \n", "empty"),
        (b"\xef\xbb\xbf", "empty"),
        (b"[]", "expected `object`"),
        (b"null", "expected `object`"),
        (b'"text"', "expected `object`"),
        (b"{", "ends too early"),
        (b"{]", "not valid JSON"),
        (b'{"model": "x",}', "not valid JSON"),
        (b'{"temperature": NaN}', "not valid JSON"),
        (b'{"temperature": Infinity}', "not valid JSON"),
        (b'{"temperature": 1e999}', "out of range"),
        (b'{"a": "\xff"}', "UTF-8"),
        ('{"messages": []}'.encode("utf-16"), "UTF-16"),
        ('{"messages": []}'.encode("utf-16-be"), "UTF-16"),
        ('{"messages": []}'.encode("utf-32"), "UTF-16"),
        (b'{"a":' + b"[" * 100_000, "too deeply"),
        (rb'{"messages":[{"role":"user","content":"cut \ud83d"}]}', r"\ud83d at byte"),
        (rb'{"messages":[{"role":"user","content":"cut \ude00 here"}]}', r"\ude00 at byte"),
        (rb'{"messages":[],"stop":"\ud83d"}', r"\ud83d at byte"),
        (rb'{"model":"\ud83d\ud83d\ude00","messages":[]}', r"\ud83d at byte"),
        (b"a=1&b=2", "not valid JSON"),
    ],
)
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/completions"])
def test_what_is_no_json_object(client, path, body, words):
    response = client.post(path, content=body)
    assert response.status_code == 400, response.text
    assert words in response.json()["error"]["message"]


def test_prompt_longer_than_the_context(chat):
    response = chat("word " * 20_000)
    assert response.status_code == 400
    error = response.json()["error"]
    assert error["code"] == "context_length_exceeded"
    assert error["param"] == "messages"


def test_longer_text_than_any_context(chat):
    response = chat("word " * 2_000_000)
    assert response.status_code == 400
    assert response.json()["error"]["code"] == "context_length_exceeded"


def test_body_too_large(client):
    for options in ({"content": b" " * (16 * 1024 * 1024 + 1)}, {"content": iter([b" " * 1_000_000] * 20)}):
        response = client.post("/v1/chat/completions", **options)
        assert response.status_code == 413
        assert response.json()["error"]["code"] == "request_too_large"


def test_errors_before_the_first_byte_of_a_stream_have_their_status(chat):
    assert chat(stream=True, max_tokens=-1).status_code == 400
    assert chat("word " * 20_000, stream=True).status_code == 400
    assert chat(stream=True, model="other").status_code == 404
