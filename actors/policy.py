"""Who runs in the next step, with how many tokens, and who must make room. Pure: a view in, a decision out.

One rule: every sequence's computed tokens catch up with the tokens it has. Decoding is catching up by one, a prompt
is caught up with in chunks, and a preempted sequence catches up with its prompt and its output.

A step is decided in two halves, with the KV cache's grant between them: `wish` counts blocks, `plan` counts tokens.
Blocks go to the oldest first. When they run out the youngest yields, so the oldest always advances.
"""

from collections.abc import Mapping

import msgspec

from puma.actors.messages import Grow, SequenceId
from puma.actors.sequence import Decoding, Prefilling
from puma.actors.shared_blocks import Departures, Held


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What does not change while the engine runs."""

    blocks: int
    tokens_per_block: int
    max_batch_size: int
    max_step_tokens: int
    """At least max_batch_size, so that every decoding sequence can run in every step."""
    prefix_caching: bool = False
    """Whether an admission may find part of its tokens computed already."""

    def blocks_for(self, tokens: int) -> int:
        """Blocks that hold this many tokens."""
        return -(-tokens // self.tokens_per_block)


class Candidate(msgspec.Struct, frozen=True):
    """A sequence that holds nothing and waits to be computed."""

    sequence: SequenceId
    length: int


class View(msgspec.Struct, frozen=True, kw_only=True):
    """The sequences between two steps."""

    running: tuple[tuple[SequenceId, Prefilling | Decoding], ...]
    """Oldest first; without those whose last token is in flight."""
    waiting: tuple[Candidate, ...]
    """First come, first; no more than there are free slots."""
    available: int
    """Blocks free once the releases of this step are done."""
    returning: int
    """Blocks that come back without anyone yielding, when results in flight have arrived."""
    shared: tuple[Held, ...] = ()
    """Blocks that more than one sequence holds, or held until others left: free when all have left."""


class Share(msgspec.Struct, frozen=True):
    """A sequence computes `count` tokens in this step."""

    sequence: SequenceId
    count: int


class Wish(msgspec.Struct, frozen=True):
    """What a step needs of the KV cache, and who will run if it is granted."""

    yielding: tuple[SequenceId, ...]
    growing: tuple[Grow, ...]
    opening: tuple[Candidate, ...]
    """Their blocks are there, but for the last one's it may be; whoever comes after `room` is used up is refused."""
    room: int
    """Tokens of those opened that the step can compute."""
    decoding: tuple[SequenceId, ...]
    prefilling: tuple[Share, ...]
    """With the tokens that each still has to catch up with."""

    @property
    def runs(self) -> bool:
        return bool(self.decoding or self.prefilling or self.opening)


def wish(view: View, limits: Limits) -> Wish:
    """Give blocks to the running sequences, oldest first, then open as many waiting ones as fit."""
    pool = Departures(view.available, view.returning, view.shared)
    running = list(view.running)
    yielding: list[SequenceId] = []
    growing: list[Grow] = []
    decoding: list[SequenceId] = []
    place = 0
    while place < len(running):
        sequence, state = running[place]
        place += 1
        if isinstance(state, Prefilling):
            continue
        tokens = state.computed + 1
        need = limits.blocks_for(tokens) - state.blocks
        while need > pool.available + pool.returning and len(running) >= place:
            victim, held = running.pop()
            yielding.append(victim)
            pool.leave(victim, held.blocks, late=held.in_flight > 0)
        if len(running) < place:
            break
        if need > pool.available:
            # It waits for blocks that are on their way; nobody younger may have them first.
            pool.returning -= need - pool.available
            pool.available = 0
            continue
        pool.available -= need
        decoding.append(sequence)
        if need:
            growing.append(Grow(sequence, tokens))
    prefilling = tuple(
        Share(sequence, state.length - state.computed) for sequence, state in running if isinstance(state, Prefilling)
    )
    everyone_runs = not yielding and len(decoding) + len(prefilling) == len(running)
    room = limits.max_step_tokens - len(decoding) - sum(share.count for share in prefilling)
    opening = admissions(view, limits, pool.available) if everyone_runs and room > 0 else ()
    return Wish(tuple(yielding), tuple(growing), opening, max(0, room), tuple(decoding), prefilling)


def admissions(view: View, limits: Limits, available: int) -> tuple[Candidate, ...]:
    """First come, first served: those whose tokens and one more fit.

    How many of their tokens are left to compute, and so how many of them the step has room for, only the KV cache can
    tell. It may even hold so much of one that does not fit by this count that it does; so that one is tried, too. But
    not when nobody runs: then its turn comes, and a step in which nothing happens must not be asked for.
    """
    opening: list[Candidate] = []
    for candidate in view.waiting:
        need = limits.blocks_for(candidate.length + 1)
        if need > available:
            if limits.prefix_caching and view.running:
                opening.append(candidate)
            break
        available -= need
        opening.append(candidate)
    return tuple(opening)


def plan(wish: Wish, cached: Mapping[SequenceId, int], limits: Limits) -> tuple[Share, ...]:
    """Divide the step's tokens: one to each that decodes, the rest to prompts, oldest first.

    `cached` has all that were opened, with how many of their tokens are computed already.
    """
    shares = [Share(sequence, 1) for sequence in wish.decoding]
    room = limits.max_step_tokens - len(shares)
    opened = [Share(one.sequence, one.length - cached[one.sequence]) for one in wish.opening if one.sequence in cached]
    for wanted in (*wish.prefilling, *opened):
        count = min(wanted.count, room)
        if count == 0:
            break
        shares.append(Share(wanted.sequence, count))
        room -= count
    return tuple(shares)
