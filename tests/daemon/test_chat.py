"""POST /v1/chat/completions, answered by the real model."""

import pytest

from tests.daemon.streams import chunks_of, content_of

NULLABLE = (
    "model",
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "seed",
    "stop",
    "stream",
    "stream_options",
    "max_completion_tokens",
    "logprobs",
    "top_logprobs",
    "n",
    "presence_penalty",
    "frequency_penalty",
    "repetition_penalty",
    "logit_bias",
    "response_format",
    "tools",
    "tool_choice",
    "functions",
    "function_call",
    "modalities",
    "audio",
    "user",
    "metadata",
    "store",
    "parallel_tool_calls",
    "service_tier",
    "reasoning_effort",
)

CALL = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Paris"}'}}


def test_whole_answer(chat):
    response = chat("Name the capital of France.", max_tokens=24)
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/json"
    body = response.json()
    assert body["id"] == "chatcmpl-" + response.headers["x-request-id"]
    assert body["object"] == "chat.completion"
    assert body["model"] == "smollm2:135m"
    (choice,) = body["choices"]
    assert choice["index"] == 0
    assert choice["logprobs"] is None
    assert choice["message"]["role"] == "assistant"
    assert choice["message"]["refusal"] is None
    assert "Paris" in choice["message"]["content"]
    assert choice["finish_reason"] in ("stop", "length")


def test_usage_is_true(chat):
    for limit in (1, 5):
        body = chat(max_tokens=limit).json()
        usage = body["usage"]
        assert usage["completion_tokens"] == limit
        assert usage["prompt_tokens"] > 0
        assert usage["total_tokens"] == usage["prompt_tokens"] + limit


def test_stream_form(chat):
    chunks = chunks_of(chat(stream=True))
    assert chunks[-1] == "[DONE]"
    first, *middle, last = chunks[:-1]
    assert first["choices"] == [
        {
            "index": 0,
            "delta": {"role": "assistant", "content": "", "refusal": None},
            "logprobs": None,
            "finish_reason": None,
        }
    ]
    assert {chunk["object"] for chunk in chunks[:-1]} == {"chat.completion.chunk"}
    assert len({(chunk["id"], chunk["created"], chunk["model"]) for chunk in chunks[:-1]}) == 1
    assert middle
    assert all(chunk["choices"][0]["finish_reason"] is None for chunk in middle)
    assert last["choices"][0]["delta"] == {}
    assert last["choices"][0]["finish_reason"] == "length"
    assert all("usage" not in chunk for chunk in chunks[:-1])


def test_streamed_text_is_the_whole_text(chat):
    for content in ("Write a poem with emoji: 🎉🌍", "漢字を書いてください", "Count to ten."):
        whole = chat(content, max_tokens=40).json()["choices"][0]["message"]["content"]
        assert content_of(chunks_of(chat(content, max_tokens=40, stream=True))) == whole


def test_usage_chunk_only_when_asked(chat):
    chunks = chunks_of(chat(stream=True, stream_options={"include_usage": True}))
    assert all(chunk["usage"] is None for chunk in chunks[:-2])
    assert chunks[-2]["choices"] == []
    assert chunks[-2]["usage"]["completion_tokens"] == 8
    for options in ({}, None, {"include_usage": None}, {"include_usage": False}, {"other": 1}):
        assert all("usage" not in chunk for chunk in chunks_of(chat(stream=True, stream_options=options))[:-1])


def test_null_equals_omitted(chat):
    plain = chat().json()["choices"]
    nulls = dict.fromkeys(NULLABLE) | {"temperature": 0}
    assert chat(**nulls).json()["choices"] == plain
    assert content_of(chunks_of(chat(**nulls | {"stream": True}))) == plain[0]["message"]["content"]
    # The temperature itself, too.
    assert chat(temperature=None, seed=4).json()["choices"] == chat(temperature=1, seed=4).json()["choices"]


def test_null_limit_falls_back_to_the_default(chat):
    body = chat("Write a very long story about a dragon.", max_tokens=None).json()
    assert body["usage"]["completion_tokens"] <= 100


def test_newer_limit(chat):
    body = chat("Tell me a long story.", max_tokens=None, max_completion_tokens=5).json()
    assert body["usage"]["completion_tokens"] == 5
    assert body["choices"][0]["finish_reason"] == "length"
    assert chat(max_tokens=5, max_completion_tokens=5).status_code == 200


def test_roles(chat):
    question = {"role": "user", "content": "Hello"}
    system = chat(messages=[{"role": "system", "content": "Be brief."}, question]).json()
    developer = chat(messages=[{"role": "developer", "content": "Be brief."}, question]).json()
    assert developer["choices"] == system["choices"]
    assert developer["usage"]["prompt_tokens"] == system["usage"]["prompt_tokens"]


def test_text_parts_equal_a_string(chat):
    plain = chat("Hello there").json()
    parts = chat([{"type": "text", "text": "Hello there"}]).json()
    assert parts["choices"] == plain["choices"]
    assert parts["usage"]["prompt_tokens"] == plain["usage"]["prompt_tokens"]


@pytest.mark.parametrize("message", [{"content": None}, {}], ids=["null", "absent"])
def test_tool_call_is_replayed(chat, message):
    turns = [
        {"role": "user", "content": "How is the weather in Paris?"},
        {"role": "assistant", "tool_calls": [CALL]} | message,
        {"role": "tool", "tool_call_id": "call_1", "content": "Sunny, 21 degrees."},
    ]
    assert chat(messages=turns).status_code == 200


def test_stop_string_never_appears(chat):
    whole = chat("Name the capital of France.", max_tokens=24).json()["choices"][0]["message"]["content"]
    stop = whole[6:13]
    before = whole[: whole.index(stop)]
    for given in (stop, [stop], ["never in the answer", stop]):
        (choice,) = chat("Name the capital of France.", max_tokens=24, stop=given).json()["choices"]
        assert choice["message"]["content"] == before
        assert choice["finish_reason"] == "stop"
    chunks = chunks_of(chat("Name the capital of France.", max_tokens=24, stop=stop, stream=True))
    assert content_of(chunks) == before
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks[:-1] if chunk["choices"][0]["finish_reason"]] == [
        "stop"
    ]


def test_stream_with_no_visible_text(chat):
    whole = chat(max_tokens=4).json()["choices"][0]["message"]["content"]
    chunks = chunks_of(chat(max_tokens=4, stream=True, stop=whole[0]))
    assert content_of(chunks) == ""
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks[:-1]] == [None, "stop"]


def test_logprobs(chat):
    for stream in (False, True):
        response = chat(logprobs=True, top_logprobs=3, stream=stream)
        if stream:
            listed = [chunk["choices"][0]["logprobs"] for chunk in chunks_of(response)[:-1]]
            entries = [entry for one in listed if one for entry in one["content"]]
        else:
            entries = response.json()["choices"][0]["logprobs"]["content"]
        assert len(entries) == 8
        for entry in entries:
            assert entry["logprob"] <= 0
            assert bytes(entry["bytes"]).decode(errors="replace") == entry["token"]
            assert len(entry["top_logprobs"]) == 3
            # Greedy: the chosen token is the likeliest.
            assert entry["top_logprobs"][0]["token"] == entry["token"]


def test_logprobs_without_a_count(chat):
    entries = chat(logprobs=True).json()["choices"][0]["logprobs"]["content"]
    assert len(entries) == 8
    assert all(entry["top_logprobs"] == [] and entry["bytes"] for entry in entries)


def test_unknown_fields_are_ignored_and_named_once(daemon, chat):
    plain = chat().json()["choices"]
    for _ in range(3):
        assert chat(frobnicate=1).json()["choices"] == plain
    assert daemon.log().count("frobnicate") == 1


def test_repeated_key_the_last_one_counts(client):
    body = b'{"messages":[{"role":"user","content":"Hi"}],"temperature":0,"max_tokens":2,"max_tokens":3}'
    assert client.post("/v1/chat/completions", content=body).json()["usage"]["completion_tokens"] == 3


def test_byte_order_mark_is_skipped(client):
    body = b'\xef\xbb\xbf{"messages":[{"role":"user","content":"Hi"}],"max_tokens":2}'
    assert client.post("/v1/chat/completions", content=body).status_code == 200


def test_whole_surrogate_pair(client):
    body = rb'{"messages":[{"role":"user","content":"\ud83d\ude00 and \\ud83d"}],"max_tokens":2}'
    assert client.post("/v1/chat/completions", content=body).status_code == 200
