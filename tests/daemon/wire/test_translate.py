"""Requests to Submits."""

import msgspec
import pytest

from puma.actors.errors import BadRequest
from puma.actors.messages import Text, Tokens
from puma.actors.reply import Reply
from puma.daemon.wire.fields import NEUTRAL, WITHOUT_EFFECT, refuse_unsupported, unknown
from puma.daemon.wire.openai import ChatRequest, CompletionRequest
from puma.daemon.wire.translate import chat_submit, completion_submits, prompts

USER = [{"role": "user", "content": "Hi"}]


def chat(**fields):
    return chat_submit(msgspec.convert({"messages": USER} | fields, ChatRequest), "id", Reply(), 1000)


def test_defaults():
    submit = chat()
    sampling = submit.sampling
    assert (sampling.temperature, sampling.top_k, sampling.top_p, sampling.min_p, sampling.logprobs) == (1, 0, 1, 0, -1)
    assert (submit.max_tokens, submit.stop) == (None, ())
    assert submit.prompt.messages == tuple(USER)


def test_sampling_fields():
    sampling = chat(temperature=0, top_k=5, top_p=0, min_p=0.5, seed=7, logprobs=True, top_logprobs=3).sampling
    assert (sampling.temperature, sampling.top_k, sampling.top_p, sampling.min_p) == (0, 5, 0, 0.5)
    assert (sampling.seed, sampling.logprobs) == (7, 3)
    assert chat(logprobs=True).sampling.logprobs == 0


def test_top_k_that_leaves_every_token_is_off():
    assert [chat(top_k=k).sampling.top_k for k in (-1, 0, 999, 1000, 1001, 2**31)] == [0, 0, 999, 0, 0, 0]


def test_seeds_fit_into_sixty_three_bits():
    for seed in (0, 1, 2**63 - 1, -2, -(2**63)):
        assert 0 <= chat(seed=seed).sampling.seed < 2**63
    assert chat(seed=2**63 - 1).sampling.seed == 2**63 - 1
    for none in (None, -1):
        assert len({chat(seed=none).sampling.seed for _ in range(4)}) == 4


def test_limits():
    assert chat(max_tokens=5).max_tokens == 5
    assert chat(max_completion_tokens=6).max_tokens == 6
    assert chat(max_completion_tokens=6, max_tokens=6).max_tokens == 6


def test_stops():
    assert chat(stop="a").stop == ("a",)
    assert chat(stop=["a", "b"]).stop == ("a", "b")
    assert chat(stop=[]).stop == ()


def test_messages_keep_only_what_was_given():
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    turns = [
        {"role": "system", "content": "s", "name": "n", "other": 1},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "content": [{"type": "text", "text": "x"}], "tool_call_id": "1"},
    ]
    assert chat(messages=turns).prompt.messages == (
        {"role": "system", "content": "s", "name": "n"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "content": [{"type": "text", "text": "x"}], "tool_call_id": "1"},
    )


def test_prompt_forms():
    def of(prompt):
        return prompts(msgspec.convert({"prompt": prompt}, CompletionRequest))

    assert of("a") == (Text("a"),)
    assert of(["a", "b"]) == (Text("a"), Text("b"))
    assert of([1, 2]) == (Tokens((1, 2)),)
    assert of([[1], [2, 3]]) == (Tokens((1,)), Tokens((2, 3)))
    with pytest.raises(BadRequest):
        of(["a", 1])


def test_several_prompts_have_ids_of_their_own():
    request = msgspec.convert({"prompt": ["a", "b"], "seed": 3}, CompletionRequest)
    submits = completion_submits(request, "id", (Reply(), Reply()), 1000)
    assert [submit.request_id for submit in submits] == ["id", "id-1"]
    assert [submit.sampling.seed for submit in submits] == [3, 3]


def raw(**fields):
    return {name: msgspec.Raw(msgspec.json.encode(value)) for name, value in fields.items()}


def test_every_neutral_value_is_accepted_and_another_refused():
    for name, allowed in NEUTRAL.items():
        for value in (None, *allowed):
            refuse_unsupported(raw(**{name: value}))
        with pytest.raises(BadRequest) as caught:
            refuse_unsupported(raw(**{name: {"something": "else"}}))
        assert caught.value.param == name


def test_no_field_is_in_two_tables():
    known = set(ChatRequest.__struct_fields__) | set(CompletionRequest.__struct_fields__)
    assert not known & NEUTRAL.keys()
    assert not known & WITHOUT_EFFECT
    assert not NEUTRAL.keys() & WITHOUT_EFFECT


def test_unknown_fields():
    assert unknown(raw(messages=[], n=1, user="x", odd=1), ChatRequest) == {"odd"}
