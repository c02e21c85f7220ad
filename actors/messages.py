"""Every message, in the order in which a request meets them.

Frozen structs; arrays are handed over and never written afterwards.
Intake knows text, the scheduler knows ids, the KV cache knows blocks, the executor knows tensors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from puma.actors.answer import Answer

if TYPE_CHECKING:
    from puma.actors.errors import RequestError
    from puma.actors.reply import Reply

SequenceId = int
"""Unique for the life of the engine, given by intake."""

TokenIds = NDArray[np.int32]

FinishReason = Literal["stop", "length"]
CancelReason = Literal["client left", "stop string", "shutdown"]


class Sampling(msgspec.Struct, frozen=True, kw_only=True):
    """How the next token is chosen. Defaults are OpenAI's."""

    temperature: float = 1.0
    """0 is greedy."""
    top_k: int = 0
    """0: off."""
    top_p: float = 1.0
    min_p: float = 0.0
    seed: int = 0
    """With the index of the generated token, the key of the counter-based random numbers."""
    logprobs: int = -1
    """-1: none; 0: the chosen token's; n: also the n most likely tokens'."""


class Chat(msgspec.Struct, frozen=True):
    """Messages as the chat template takes them: plain dicts with role, content, ..."""

    messages: tuple[dict[str, Any], ...]


class Text(msgspec.Struct, frozen=True):
    """A raw prompt."""

    text: str


class Tokens(msgspec.Struct, frozen=True):
    """A prompt that is tokenised already."""

    token_ids: tuple[int, ...]


# handler -> intake


class Submit(msgspec.Struct, frozen=True, kw_only=True):
    """One sequence wanted. The answer arrives through `reply`."""

    request_id: str
    prompt: Chat | Text | Tokens
    sampling: Sampling
    max_tokens: int | None
    """None: the engine's default_max_tokens. More than there is room for means: as many as there is room for."""
    stop: tuple[str, ...] = ()
    reply: Reply


class Withdraw(msgspec.Struct, frozen=True):
    """The handler ended; whatever its request still holds is given back. Harmless when it has finished."""

    request_id: str
    reason: CancelReason = "client left"


# intake -> scheduler


class Admit(msgspec.Struct, frozen=True, kw_only=True):
    """A sequence that fits the context and the pool."""

    sequence: SequenceId
    token_ids: TokenIds
    sampling: Sampling
    budget: int
    """Tokens to generate at most, at least 1; len(token_ids) + budget <= context_length."""
    stop_ids: frozenset[int]


class Cancel(msgspec.Struct, frozen=True):
    """End a sequence in whatever state it is; unknown ones are ignored."""

    sequence: SequenceId
    reason: CancelReason


# scheduler -> KV cache, once per step; applied in this order: filled, distrusted, release, open, grow


class Filled(msgspec.Struct, frozen=True):
    """Whole blocks of a table have been computed: whoever begins with the same tokens may read them."""

    sequence: SequenceId
    start: int
    """Position of the first token, where a block begins."""
    token_ids: TokenIds
    """The tokens of one block or several."""


class Open(msgspec.Struct, frozen=True):
    """Start a block table that holds `tokens` tokens: an admission, which may be refused."""

    sequence: SequenceId
    tokens: int
    token_ids: TokenIds
    """Those known, fewer than `tokens`; at least the last of them is computed, whatever is found cached."""


class Grow(msgspec.Struct, frozen=True):
    """Lengthen a table until it holds `tokens` tokens in all; never refused, the scheduler has counted."""

    sequence: SequenceId
    tokens: int


class Reserve(msgspec.Struct, frozen=True):
    """Everything the scheduler gives back and wants for one step."""

    step: int
    release: tuple[SequenceId, ...] = ()
    grow: tuple[Grow, ...] = ()
    open: tuple[Open, ...] = ()
    room: int = 0
    """Tokens of those opened that the step can compute; once they are used up, the others are refused."""
    filled: tuple[Filled, ...] = ()
    distrusted: tuple[SequenceId, ...] = ()
    """Sequences whose blocks may hold what is no number: their content, and all that follows it, is forgotten."""


# KV cache -> scheduler


class Appended(msgspec.Struct, frozen=True):
    """Blocks added to the end of a sequence's table."""

    sequence: SequenceId
    block_ids: tuple[int, ...]
    cached_tokens: int = 0
    """Tokens in the first of these blocks that are computed already."""


class Shared(msgspec.Struct, frozen=True):
    """Blocks that exactly these sequences hold, two at least; free only when all of them have released theirs."""

    sequences: frozenset[SequenceId]
    blocks: int


class Grant(msgspec.Struct, frozen=True):
    """The answer to one Reserve. `refused` holds admissions only."""

    step: int
    appended: tuple[Appended, ...]
    refused: tuple[SequenceId, ...]
    available: int
    """Blocks that no sequence holds after this grant."""
    cached: int = 0
    """How many of those still hold tokens that a sequence may begin with."""
    shared: tuple[Shared, ...] = ()
    """All that are shared after this grant; whatever is not named here has one holder."""


# scheduler -> executor


class Opened(msgspec.Struct, frozen=True):
    """A slot is taken by a sequence: its known tokens (prompt, and output so far after a preemption)."""

    slot: int
    sequence: SequenceId
    token_ids: TokenIds
    sampling: Sampling
    generated: int
    """Tokens of token_ids that this sequence itself generated: the index of its next random number."""


class SlotBlocks(msgspec.Struct, frozen=True):
    """Blocks appended to the table of a slot."""

    slot: int
    block_ids: tuple[int, ...]


class Run(msgspec.Struct, frozen=True):
    """Compute positions [start, start + count) of a slot.

    A position beyond the slot's known tokens takes the token that the slot sampled last.
    """

    slot: int
    start: int
    count: int
    samples: bool
    """Whether the last position's logits yield the next token."""


class StepPlan(msgspec.Struct, frozen=True):
    """One step: differences to what the executor knows, then the runs. Applied in this order."""

    step: int
    closed: tuple[int, ...]
    opened: tuple[Opened, ...]
    appended: tuple[SlotBlocks, ...]
    runs: tuple[Run, ...]


# executor -> scheduler


class Sampled(msgspec.Struct, frozen=True):
    """One sequence's next token. token_id is -1 when its logits were not numbers: that sequence failed."""

    sequence: SequenceId
    token_id: int
    logprob: float
    top: tuple[tuple[int, float], ...]
    """The most likely tokens, best first, as many as Sampling.logprobs asks for."""


class StepResult(msgspec.Struct, frozen=True):
    """What one step yielded. `failure` is set when it failed as a whole; then nothing was sampled."""

    step: int
    sampled: tuple[Sampled, ...]
    seconds: float
    failure: str | None = None


# scheduler -> intake, one per step


class NewToken(msgspec.Struct, frozen=True):
    sequence: SequenceId
    token_id: int
    logprob: float
    top: tuple[tuple[int, float], ...]


class Ended(msgspec.Struct, frozen=True):
    """A sequence generates no more. `failure` is for the client when finish is "failed"."""

    sequence: SequenceId
    finish: FinishReason | Literal["cancelled", "failed"]
    failure: str = ""


class Begun(msgspec.Struct, frozen=True):
    """A sequence waits no longer: said once, when it first gets blocks."""

    sequence: SequenceId
    cached_tokens: int = 0
    """How many of its prompt's tokens need not be computed."""


class Emitted(msgspec.Struct, frozen=True):
    """Read in this order: begun, tokens, ended."""

    tokens: tuple[NewToken, ...]
    ended: tuple[Ended, ...]
    begun: tuple[Begun, ...] = ()


# intake -> handler, through Reply


class TokenLogprob(msgspec.Struct, frozen=True):
    """Log-probability of one token, with the bytes it stands for."""

    token_id: int
    token: bytes
    logprob: float
    top: tuple[tuple[int, bytes, float], ...]


class Started(msgspec.Struct, frozen=True):
    """The request was admitted."""

    prompt_tokens: int


class Piece(msgspec.Struct, frozen=True):
    """Text that is final: whole characters, free of stop strings. May be empty while logprobs are not."""

    text: str
    logprobs: tuple[TokenLogprob, ...] = ()


class Done(msgspec.Struct, frozen=True):
    """The last event of an answered request."""

    finish: FinishReason
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int = 0
    """Tokens of the prompt that were not computed for this request, but found in the prefix cache."""


class Failed(msgspec.Struct, frozen=True):
    """The last event of a request that got no, or only part of an, answer."""

    error: RequestError


ReplyEvent = Started | Piece | Done | Failed


# control -> engine


class SequenceState(msgspec.Struct, frozen=True):
    """One line of `pumactl status`."""

    sequence: SequenceId
    request_id: str
    state: str
    prompt_tokens: int
    generated: int
    blocks: int


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The engine between two steps."""

    model: str
    blocks_total: int
    blocks_used: int
    """Held by sequences."""
    blocks_cached: int
    """Held by none, and kept for prompts that begin alike; they are given to whoever needs memory."""
    sequences: tuple[SequenceState, ...]
    steps: int
    busy_seconds: float
    """Time spent in compiled steps since boot."""
    generated_tokens: int
    prompt_tokens: int
    """Of prompts read to their end."""
    cached_tokens: int
    """How many of those were found in the prefix cache."""


class Ask(msgspec.Struct, frozen=True):
    """The engine's state is wanted; the scheduler answers between two steps. It leaves out request ids."""

    answer: Answer[Snapshot]


ToScheduler = Admit | Cancel | Grant | StepResult | Ask
"""The scheduler's one inbox."""
