"""Who runs in the next step, with how many tokens, and who must make room. Pure: a view in, a decision out.

One rule: every sequence's computed tokens catch up with the tokens it has. Decoding is catching up by one, a prompt
is caught up with in chunks, and a preempted sequence catches up with its prompt and its output.

A step is decided in two halves, with the KV cache's grant between them: `wish` counts blocks, `plan` counts tokens.
Blocks go to the oldest first. When they run out the youngest yields, so the oldest always advances.
"""

from collections.abc import Collection

import msgspec

from puma.actors.messages import Grow, Open, SequenceId
from puma.actors.sequence import Decoding, Prefilling


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What does not change while the engine runs."""

    blocks: int
    tokens_per_block: int
    max_batch_size: int
    max_step_tokens: int
    """At least max_batch_size, so that every decoding sequence can run in every step."""

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


class Share(msgspec.Struct, frozen=True):
    """A sequence computes `count` tokens in this step."""

    sequence: SequenceId
    count: int


class Wish(msgspec.Struct, frozen=True):
    """What a step needs of the KV cache, and who will run if it is granted."""

    yielding: tuple[SequenceId, ...]
    growing: tuple[Grow, ...]
    opening: tuple[Open, ...]
    decoding: tuple[SequenceId, ...]
    prefilling: tuple[Share, ...]
    """With the tokens that each still has to catch up with."""

    @property
    def runs(self) -> bool:
        return bool(self.decoding or self.prefilling or self.opening)


def wish(view: View, limits: Limits) -> Wish:
    """Give blocks to the running sequences, oldest first, then open as many waiting ones as fit."""
    available, returning = view.available, view.returning
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
        while need > available + returning and len(running) >= place:
            victim, held = running.pop()
            yielding.append(victim)
            if held.in_flight:
                returning += held.blocks
            else:
                available += held.blocks
        if len(running) < place:
            break
        if need > available:
            # It waits for blocks that are on their way; nobody younger may have them first.
            returning -= need - available
            available = 0
            continue
        available -= need
        decoding.append(sequence)
        if need:
            growing.append(Grow(sequence, tokens))
    prefilling = tuple(
        Share(sequence, state.length - state.computed) for sequence, state in running if isinstance(state, Prefilling)
    )
    everyone_runs = not yielding and len(decoding) + len(prefilling) == len(running)
    room = limits.max_step_tokens - len(decoding) - sum(share.count for share in prefilling)
    opening = admissions(view, limits, available, room) if everyone_runs else ()
    return Wish(tuple(yielding), tuple(growing), opening, tuple(decoding), prefilling)


def admissions(view: View, limits: Limits, available: int, room: int) -> tuple[Open, ...]:
    """First come, first served: those whose tokens and one more fit, while the step has room for some of them."""
    opening: list[Open] = []
    for candidate in view.waiting:
        need = limits.blocks_for(candidate.length + 1)
        if room <= 0 or need > available:
            break
        available -= need
        room -= candidate.length
        opening.append(Open(candidate.sequence, candidate.length + 1))
    return tuple(opening)


def plan(wish: Wish, refused: Collection[SequenceId], limits: Limits) -> tuple[Share, ...]:
    """Divide the step's tokens: one to each that decodes, the rest to prompts, oldest first."""
    shares = [Share(sequence, 1) for sequence in wish.decoding]
    room = limits.max_step_tokens - len(shares)
    opened = [Share(one.sequence, one.tokens - 1) for one in wish.opening if one.sequence not in refused]
    for wanted in (*wish.prefilling, *opened):
        count = min(wanted.count, room)
        if count == 0:
            break
        shares.append(Share(wanted.sequence, count))
        room -= count
    return tuple(shares)
