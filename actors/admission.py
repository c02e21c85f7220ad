"""May a prompt enter: the limits of context, pool and vocabulary, and the arithmetic of a refusal. Pure."""

from collections.abc import Sequence

import msgspec
import numpy as np

from puma.actors.errors import BadRequest
from puma.actors.messages import TokenIds
from puma.config.memory import MemoryPlan

TOO_LONG = "context_length_exceeded"
"""The code by which OpenAI's clients know that a shorter prompt would do."""


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """What a request is measured against."""

    context_length: int
    """Longest prompt plus answer, in tokens."""
    memory: MemoryPlan
    default_max_tokens: int
    vocabulary_size: int
    longest_token_bytes: int
    """Bytes of text that one token stands for at most."""


def check_size(characters: int, bounds: Bounds, param: str) -> None:
    """Refuse, before any work is spent on it, a text that no tokenisation fits into the context."""
    most = bounds.context_length * bounds.longest_token_bytes
    if characters > most:
        raise BadRequest(
            f"the prompt has {characters} characters; the context of {bounds.context_length} tokens holds "
            f"{most} bytes at most, since no token stands for more than {bounds.longest_token_bytes}",
            param=param,
            code=TOO_LONG,
        )


def check_ids(token_ids: Sequence[int], bounds: Bounds, param: str) -> TokenIds:
    """The prompt as int32[n]; refuses an empty one and ids that are not in the vocabulary."""
    if not token_ids:
        raise BadRequest("the prompt is empty: it has no tokens", param=param)
    for place, token_id in enumerate(token_ids):
        if not 0 <= token_id < bounds.vocabulary_size:
            raise BadRequest(
                f"token {place} of the prompt is {token_id}; the model has the tokens 0 to "
                f"{bounds.vocabulary_size - 1}",
                param=param,
            )
    return np.asarray(token_ids, dtype=np.int32)


def budget(prompt: int, max_tokens: int | None, bounds: Bounds, param: str) -> int:
    """Tokens to generate at most, for a prompt of `prompt` tokens: what was asked for, or else the default.

    More than there is room for becomes the room: an answer that reaches its end says "length" in either case. Refuses
    a prompt that leaves no room for one token.
    """
    if max_tokens is not None and max_tokens < 1:
        raise BadRequest(f"max_tokens is {max_tokens}; at least 1 is allowed", param="max_tokens")
    memory = bounds.memory
    for holds, room, advice in (
        (f"the context holds {bounds.context_length} tokens", bounds.context_length - prompt, ""),
        (
            f"the KV cache holds {memory.tokens} tokens ({memory.blocks} blocks of {memory.tokens_per_block})",
            memory.tokens - prompt,
            f"; memory_pool_bytes = {memory.pool_for(prompt + 1)} would hold it",
        ),
    ):
        if room < 1:
            raise BadRequest(
                f"the prompt has {prompt} tokens; {holds}, prompt and answer together, so a prompt may have "
                f"{prompt + room - 1} at most, to leave room for one token of the answer{advice}",
                param=param,
                code=TOO_LONG,
            )
    wanted = bounds.default_max_tokens if max_tokens is None else max_tokens
    return min(wanted, bounds.context_length - prompt, memory.tokens - prompt)
