"""The limits of context, pool and vocabulary, with the numbers that a refusal must tell."""

import pytest

from puma.actors.admission import Bounds, budget, check_ids, check_size
from puma.actors.errors import BadRequest
from puma.config.memory import MemoryPlan

CONTEXT = 64
BOUNDS = Bounds(
    context_length=CONTEXT,
    memory=MemoryPlan(token_bytes=10, block_bytes=160, tokens_per_block=16, blocks=8),
    default_max_tokens=20,
    vocabulary_size=100,
    longest_token_bytes=5,
)
SMALL_POOL = Bounds(
    context_length=CONTEXT,
    memory=MemoryPlan(token_bytes=10, block_bytes=160, tokens_per_block=16, blocks=2),
    default_max_tokens=20,
    vocabulary_size=100,
    longest_token_bytes=5,
)


@pytest.mark.parametrize(
    ("prompt", "max_tokens", "expected"),
    [
        (10, 7, 7),
        (10, None, 20),
        (10, 30, 30),
        (CONTEXT - 1, 1, 1),
        (CONTEXT - 1, 2, 1),
        (CONTEXT - 1, None, 1),
        (CONTEXT - 5, None, 5),
        (CONTEXT - 5, 2**62, 5),
        (1, CONTEXT - 1, CONTEXT - 1),
        (1, CONTEXT, CONTEXT - 1),
    ],
)
def test_the_budget_is_what_was_asked_for_or_the_default_or_the_room(prompt, max_tokens, expected):
    assert budget(prompt, max_tokens, BOUNDS, "prompt") == expected


@pytest.mark.parametrize(("prompt", "max_tokens"), [(30, None), (30, 10), (30, 2)])
def test_what_the_pool_holds_is_the_room_too(prompt, max_tokens):
    assert budget(prompt, max_tokens, SMALL_POOL, "prompt") == 2


@pytest.mark.parametrize("max_tokens", [None, 1, 5])
@pytest.mark.parametrize("prompt", [CONTEXT, CONTEXT + 1])
def test_a_prompt_that_leaves_no_room_is_refused_with_the_arithmetic(prompt, max_tokens):
    with pytest.raises(BadRequest) as refusal:
        budget(prompt, max_tokens, BOUNDS, "messages")
    assert (refusal.value.code, refusal.value.param) == ("context_length_exceeded", "messages")
    assert refusal.value.message == (
        f"the prompt has {prompt} tokens; the context holds 64 tokens, prompt and answer together, so a prompt may "
        "have 63 at most, to leave room for one token of the answer"
    )


def test_a_prompt_that_the_pool_cannot_hold_is_refused_with_a_way_out():
    with pytest.raises(BadRequest) as refusal:
        budget(32, None, SMALL_POOL, "prompt")
    assert refusal.value.param == "prompt"
    assert refusal.value.message == (
        "the prompt has 32 tokens; the KV cache holds 32 tokens (2 blocks of 16), prompt and answer together, so a "
        "prompt may have 31 at most, to leave room for one token of the answer; memory_pool_bytes = 480 would hold it"
    )


@pytest.mark.parametrize("max_tokens", [0, -1])
def test_less_than_one_token_is_refused(max_tokens):
    with pytest.raises(BadRequest, match=f"max_tokens is {max_tokens}; at least 1") as refusal:
        budget(3, max_tokens, BOUNDS, "prompt")
    assert refusal.value.param == "max_tokens"


def test_a_text_that_cannot_fit_is_refused_before_it_is_tokenised():
    check_size(64 * 5, BOUNDS, "prompt")
    with pytest.raises(BadRequest, match=r"321 characters; the context of 64 tokens holds 320 bytes") as refusal:
        check_size(64 * 5 + 1, BOUNDS, "prompt")
    assert (refusal.value.param, refusal.value.code) == ("prompt", "context_length_exceeded")


def test_tokens_become_an_array():
    ids = check_ids([0, 99], BOUNDS, "prompt")
    assert ids.dtype == "int32"
    assert ids.tolist() == [0, 99]


@pytest.mark.parametrize("token", [-1, 100, 2**40])
def test_a_token_outside_the_vocabulary_is_refused(token):
    with pytest.raises(BadRequest, match=rf"token 1 of the prompt is {token}; .* 0 to 99") as refusal:
        check_ids([5, token], BOUNDS, "prompt")
    assert refusal.value.param == "prompt"


def test_a_prompt_without_tokens_is_refused():
    with pytest.raises(BadRequest, match="no tokens"):
        check_ids([], BOUNDS, "messages")
