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
        (CONTEXT - 1, 1, 1),
        (CONTEXT - 1, None, 1),
        (CONTEXT - 5, None, 5),
        (1, CONTEXT - 1, CONTEXT - 1),
    ],
)
def test_the_budget_is_what_was_asked_for_or_the_default_or_the_room(prompt, max_tokens, expected):
    assert budget(prompt, max_tokens, BOUNDS, "prompt") == expected


@pytest.mark.parametrize(
    ("prompt", "max_tokens", "param", "numbers"),
    [
        (CONTEXT - 1, 2, "max_tokens", ["64 tokens", "63 tokens and 2 more", "65 in all", "max_tokens up to 1"]),
        (CONTEXT, 1, "messages", ["64 tokens", "64 tokens and 1 more", "65 in all", "leaves no room"]),
        (CONTEXT, None, "messages", ["64 tokens", "64 tokens and 1 more", "65 in all"]),
        (CONTEXT + 1, 2, "messages", ["64 tokens", "65 tokens and 2 more", "67 in all"]),
        (CONTEXT + 1, None, "messages", ["65 tokens and 1 more", "66 in all"]),
    ],
)
def test_what_exceeds_the_context_is_refused_with_the_arithmetic(prompt, max_tokens, param, numbers):
    with pytest.raises(BadRequest) as refusal:
        budget(prompt, max_tokens, BOUNDS, "messages")
    assert refusal.value.code == "context_length_exceeded"
    assert refusal.value.param == param
    for number in ("the context holds", *numbers):
        assert number in refusal.value.message


def test_what_exceeds_the_pool_is_refused_with_the_arithmetic_and_a_way_out():
    with pytest.raises(BadRequest) as refusal:
        budget(30, 10, SMALL_POOL, "prompt")
    assert refusal.value.param == "max_tokens"
    assert refusal.value.message == (
        "the KV cache holds 32 tokens (2 blocks of 16), prompt and answer together; the prompt has 30 tokens and "
        "10 more may be generated, 40 in all; max_tokens up to 2 would fit; memory_pool_bytes = 480 would hold it"
    )
    with pytest.raises(BadRequest, match="leaves no room") as refusal:
        budget(32, None, SMALL_POOL, "prompt")
    assert refusal.value.param == "prompt"


def test_an_omitted_limit_is_lowered_to_what_the_pool_holds():
    assert budget(30, None, SMALL_POOL, "prompt") == 2


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
