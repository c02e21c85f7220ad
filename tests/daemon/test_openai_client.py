"""The official client, streamed and not, and the errors it raises."""

import openai
import pytest


@pytest.fixture
def official(daemon):
    with openai.OpenAI(base_url=daemon.url + "/v1", api_key="none", max_retries=0) as client:
        yield client


MESSAGES = [{"role": "user", "content": "What is the capital of France?"}]
"""Float32 begins with "The" by a margin of 0.08: eight bits of activation everywhere would miss it."""


def test_chat(official):
    answer = official.chat.completions.create(
        model="smollm2:135m", messages=MESSAGES, temperature=0, max_completion_tokens=24
    )
    assert "Paris" in answer.choices[0].message.content
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens


def test_chat_stream(official):
    stream = official.chat.completions.create(
        model="smollm2:135m",
        messages=MESSAGES,
        temperature=0,
        max_tokens=24,
        stream=True,
        stream_options={"include_usage": True},
    )
    chunks = list(stream)
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert "Paris" in text
    assert chunks[0].choices[0].delta.role == "assistant"
    assert chunks[-1].usage.completion_tokens > 0


def test_logprobs(official):
    answer = official.chat.completions.create(
        model="smollm2:135m", messages=MESSAGES, temperature=0, max_tokens=4, logprobs=True, top_logprobs=2
    )
    assert len(answer.choices[0].logprobs.content) == 4


def test_completion(official):
    answer = official.completions.create(
        model="smollm2:135m", prompt="The capital of France is", temperature=0, max_tokens=8, logprobs=1
    )
    assert "Paris" in answer.choices[0].text
    stream = official.completions.create(
        model="smollm2:135m", prompt="The capital of France is", temperature=0, max_tokens=8, stream=True
    )
    assert "".join(chunk.choices[0].text for chunk in stream) == answer.choices[0].text


def test_models(official):
    assert [model.id for model in official.models.list()] == ["smollm2:135m"]
    assert official.models.retrieve("smollm2:135m").owned_by == "puma"


def test_errors(official):
    with pytest.raises(openai.NotFoundError) as missing:
        official.chat.completions.create(model="gpt-4o", messages=MESSAGES)
    assert missing.value.code == "model_not_found"
    with pytest.raises(openai.BadRequestError) as bad:
        official.chat.completions.create(model="smollm2:135m", messages=MESSAGES, temperature=5)
    assert bad.value.param == "temperature"
    assert "temperature" in bad.value.message
