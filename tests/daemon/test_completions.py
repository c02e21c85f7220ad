"""POST /v1/completions, answered by the real model."""

import pytest

from tests.daemon.streams import chunks_of, text_of


def test_whole_answer(complete):
    body = complete().json()
    assert body["object"] == "text_completion"
    assert body["id"].startswith("cmpl-")
    (choice,) = body["choices"]
    assert " Paris" in choice["text"]
    assert choice["logprobs"] is None
    assert choice["finish_reason"] == "length"
    usage = body["usage"]
    assert usage["completion_tokens"] == 8
    assert usage["total_tokens"] == usage["prompt_tokens"] + 8


def test_stream(complete):
    chunks = chunks_of(complete(stream=True))
    assert chunks[-1] == "[DONE]"
    assert text_of(chunks) == complete().json()["choices"][0]["text"]
    reasons = [chunk["choices"][0]["finish_reason"] for chunk in chunks[:-1]]
    assert reasons[-1] == "length"
    assert set(reasons[:-1]) == {None}


def test_usage_chunk(complete):
    chunks = chunks_of(complete(stream=True, stream_options={"include_usage": True}))
    assert chunks[-2]["choices"] == []
    assert chunks[-2]["usage"]["completion_tokens"] == 8


def test_prompt_forms(complete):
    one = complete("Hello").json()
    assert complete(["Hello"]).json()["choices"] == one["choices"]
    ids = complete([1, 2, 3]).json()
    assert ids["usage"]["prompt_tokens"] == 3
    assert complete([[1, 2, 3]]).json()["choices"] == ids["choices"]


def test_several_prompts(complete):
    prompts = ["The capital of France is", "Once upon a time"]
    alone = [complete(prompt).json() for prompt in prompts]
    body = complete(prompts).json()
    assert [choice["index"] for choice in body["choices"]] == [0, 1]
    assert [choice["text"] for choice in body["choices"]] == [one["choices"][0]["text"] for one in alone]
    assert body["usage"]["prompt_tokens"] == sum(one["usage"]["prompt_tokens"] for one in alone)
    chunks = chunks_of(complete(prompts, stream=True))
    assert [text_of(chunks, index) for index in (0, 1)] == [choice["text"] for choice in body["choices"]]
    ends = [choice["index"] for chunk in chunks[:-1] for choice in chunk["choices"] if choice["finish_reason"]]
    assert sorted(ends) == [0, 1]


def test_one_bad_prompt_of_several_fails_the_request(complete):
    response = complete([[1, 2], [99_999_999]])
    assert response.status_code == 400
    assert response.json()["error"]["param"] == "prompt"


def test_mixture_is_refused(complete):
    for prompt in (["text", 1], [1, [2]], ["text", [1]]):
        response = complete(prompt)
        assert response.status_code == 400
        assert response.json()["error"]["param"] == "prompt"


def test_logprobs(complete):
    (choice,) = complete(logprobs=2).json()["choices"]
    listed = choice["logprobs"]
    assert {len(values) for values in listed.values()} == {8}
    assert "".join(listed["tokens"]) == choice["text"]
    for place, (token, logprob, top, offset) in enumerate(zip(*listed.values(), strict=True)):
        assert top[token] == logprob
        assert len(top) == 2
        assert offset == len("".join(listed["tokens"][:place]))
    chosen_only = complete(logprobs=0).json()["choices"][0]["logprobs"]["top_logprobs"]
    assert all(len(top) == 1 for top in chosen_only)


def test_streamed_logprobs_equal_the_whole_ones(complete):
    whole = complete(logprobs=1).json()["choices"][0]["logprobs"]
    chunks = chunks_of(complete(logprobs=1, stream=True))[:-1]
    parts = [chunk["choices"][0]["logprobs"] for chunk in chunks if chunk["choices"][0]["logprobs"]]
    assert {key: [entry for part in parts for entry in part[key]] for key in whole} == whole


@pytest.mark.parametrize("field", ["max_tokens", "max_completion_tokens"])
def test_limits(complete, field):
    for wrong in (0, -1):
        error = complete(**{"max_tokens": None, field: wrong}).json()["error"]
        assert error["param"] == field
        assert ">= 1" in error["message"]
    answer = complete(**{"max_tokens": None, field: 2}).json()
    assert (answer["usage"]["completion_tokens"], answer["choices"][0]["finish_reason"]) == (2, "length")


def test_echo_is_refused(complete):
    assert complete(echo=True).json()["error"]["param"] == "echo"


def test_an_error_names_its_prompt(complete):
    error = complete(["a", "b", ""]).json()["error"]
    assert error["param"] == "prompt"
    assert error["message"].startswith("prompt[2]: ")


def test_more_prompts_than_can_ever_wait(complete):
    response = complete(["x"] * 300, max_tokens=1)
    assert (response.status_code, response.json()["error"]["param"]) == (400, "prompt")
    assert "256" in response.json()["error"]["message"]
