"""The ledger: the steps in flight, and what they did to the sequences. The scheduler's plain core.

Between two messages the scheduler calls admit, cancel and settle. Then, while there is something to plan: wish, which
it sends as a Reserve, and plan with the Grant; nothing may come between those two.
"""

import logging
from collections import deque

import msgspec

from puma.actors import policy
from puma.actors.channels import LOOK_AHEAD
from puma.actors.messages import (
    Admit,
    Begun,
    Emitted,
    Ended,
    Grant,
    NewToken,
    Open,
    Opened,
    Reserve,
    Run,
    Sampled,
    SequenceId,
    Shared,
    SlotBlocks,
    StepPlan,
    StepResult,
)
from puma.actors.policy import Limits, Share, Wish
from puma.actors.roster import Roster
from puma.actors.sequence import (
    Aborted,
    Decoding,
    Finished,
    Planned,
    Prefilling,
    Returned,
    Sequence,
    Stopped,
    Waiting,
    Yielded,
)

logger = logging.getLogger(__name__)

NOT_A_NUMBER = -1
"""Sampled.token_id of a sequence whose logits were not numbers."""


class Flight(msgspec.Struct, frozen=True):
    """A plan whose result has not arrived, and who is in it."""

    step: int
    riders: tuple[tuple[Sequence, Run], ...]


class Counts(msgspec.Struct):
    """Totals since boot."""

    steps: int = 0
    busy_seconds: float = 0.0
    generated_tokens: int = 0
    prompt_tokens: int = 0
    """Of prompts read to their end."""
    cached_tokens: int = 0
    """How many of those were found cached."""


class Ledger:
    """Everything the scheduler knows, and how each message changes it."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.available = limits.blocks
        """Blocks in the pool that no sequence holds: exact, since no one else asks the pool."""
        self.cached = 0
        """How many of those still hold what a sequence may begin with."""
        self.shared: tuple[Shared, ...] = ()
        self.roster = Roster(limits)
        self.counts = Counts()
        self.flights: deque[Flight] = deque()
        self._step = 0
        self._asked: tuple[Reserve, Wish] | None = None
        self._tokens: list[NewToken] = []
        self._ended: list[Ended] = []
        self._begun: list[Begun] = []
        self._distrusted: list[SequenceId] = []

    def admit(self, message: Admit) -> None:
        """Take in a sequence."""
        self.roster.enter(message)

    def cancel(self, sequence_id: SequenceId) -> None:
        """End a sequence in whatever state it is; one that has ended already, or is unknown, is left alone."""
        sequence = self.roster.sequences.get(sequence_id)
        if sequence is not None and not sequence.has_ended:
            self._stop(sequence, Ended(sequence_id, "cancelled"))

    def settle(self, result: StepResult) -> None:
        """Take in the result of the oldest plan in flight."""
        if not self.flights or self.flights[0].step != result.step:
            expected = f"step {self.flights[0].step}" if self.flights else "none"
            raise RuntimeError(f"the result of step {result.step} arrived, expected was {expected}")
        flight = self.flights.popleft()
        self.counts.steps += 1
        self.counts.busy_seconds += result.seconds
        if result.failure is not None:
            logger.error("step %d failed: %s", result.step, result.failure)
        sampled = {one.sequence: one for one in result.sampled}
        for sequence, run in flight.riders:
            sequence.advance(Returned())
            if result.failure is None:
                self._confirm(sequence, run, sampled.get(sequence.id))
            if sequence.has_ended:
                continue
            if result.failure is not None:
                self._stop(sequence, Ended(sequence.id, "failed", result.failure))
            elif run.samples:
                self._take(sequence, sampled[sequence.id])

    def wish(self) -> Reserve | None:
        """What the next step gives back and wants; None when there is nothing to plan, or enough is planned."""
        if len(self.flights) == LOOK_AHEAD:
            return None
        wish = policy.wish(self.roster.view(self.available, self.shared), self.limits)
        for sequence_id in wish.yielding:
            self.roster.sequences[sequence_id].advance(Yielded())
        release = self.roster.releasable()
        if not release and not wish.runs:
            return None
        opening = tuple(self._open(one.sequence) for one in wish.opening)
        filled = self.roster.filled() if self.limits.prefix_caching else ()
        distrusted, self._distrusted = tuple(self._distrusted), []
        reserve = Reserve(self._step, release, wish.growing, opening, wish.room, filled, distrusted)
        self._asked = (reserve, wish)
        return reserve

    def plan(self, grant: Grant) -> StepPlan | None:
        """The step that the grant allows; None when no one runs in it."""
        if self._asked is None or self._asked[0].step != grant.step:
            raise RuntimeError(f"a grant for step {grant.step} arrived, which was not asked for")
        (reserve, wish), self._asked = self._asked, None
        self.available, self.cached, self.shared = grant.available, grant.cached, grant.shared
        for sequence_id in reserve.release:
            self.roster.release(sequence_id)
        blocks = {one.sequence: one.block_ids for one in grant.appended}
        granted = {one.sequence for one in wish.opening} - {*grant.refused}
        cached = {one.sequence: one.cached_tokens for one in grant.appended if one.sequence in granted}
        opened = tuple(self._seat(one, len(blocks[one]), found) for one, found in cached.items())
        shares = policy.plan(wish, cached, self.limits)
        if not shares:
            return None
        appended = tuple(SlotBlocks(self.roster.slot_of(one), ids) for one, ids in blocks.items())
        grown = {one.sequence: len(blocks[one.sequence]) for one in wish.growing}
        riders = tuple(self._board(share, grown.get(share.sequence, 0)) for share in shares)
        runs = tuple(run for _, run in riders)
        self.flights.append(Flight(self._step, riders))
        plan = StepPlan(self._step, self.roster.take_closed(), opened, appended, runs)
        self._step += 1
        return plan

    def take_emitted(self) -> Emitted | None:
        """What has happened since the last call; None when nothing has."""
        if not (self._tokens or self._ended or self._begun):
            return None
        emitted = Emitted(tuple(self._tokens), tuple(self._ended), tuple(self._begun))
        self._tokens, self._ended, self._begun = [], [], []
        return emitted

    def _open(self, sequence_id: SequenceId) -> Open:
        sequence = self.roster.sequences[sequence_id]
        return Open(sequence_id, sequence.length + 1, sequence.token_ids())

    def _seat(self, sequence_id: SequenceId, blocks: int, cached: int) -> Opened:
        sequence = self.roster.sequences[sequence_id]
        if isinstance(sequence.state, Waiting):
            sequence.cached = cached
            self._begun.append(Begun(sequence_id, cached))
        return self.roster.seat(sequence_id, blocks, cached)

    def _board(self, share: Share, grown: int) -> tuple[Sequence, Run]:
        """Plan a sequence's part of the next step, its table having grown by `grown` blocks."""
        sequence = self.roster.sequences[share.sequence]
        before = sequence.state
        sequence.advance(Planned(share.count, grown))
        if not isinstance(before, Prefilling | Decoding):
            raise RuntimeError(f"sequence {sequence.id} was planned in state {before}")
        run = Run(before.slot, before.computed, share.count, isinstance(sequence.state, Decoding))
        return sequence, run

    def _confirm(self, sequence: Sequence, run: Run, sampled: Sampled | None) -> None:
        """What a step wrote may be read by others; unless what it yielded says that it is no good."""
        if sampled is not None and sampled.token_id == NOT_A_NUMBER:
            sequence.written.distrust()
            self._distrusted.append(sequence.id)
        else:
            sequence.written.confirm(run.start, run.count, sequence.length)

    def _take(self, sequence: Sequence, sampled: Sampled) -> None:
        """A new token: the sequence goes on, or that was its last."""
        if sampled.token_id == NOT_A_NUMBER:
            logger.error("sequence %d failed: its logits are not numbers", sequence.id)
            self._stop(sequence, Ended(sequence.id, "failed", "the model's output is not a number"))
            return
        sequence.generated.append(sampled.token_id)
        self.counts.generated_tokens += 1
        if len(sequence.generated) == 1:
            self.counts.prompt_tokens += len(sequence.admit.token_ids)
            self.counts.cached_tokens += sequence.cached
        self._tokens.append(NewToken(sequence.id, sampled.token_id, sampled.logprob, sampled.top))
        if sampled.token_id in sequence.admit.stop_ids:
            self._stop(sequence, Ended(sequence.id, "stop"))
        elif len(sequence.generated) == sequence.admit.budget:
            self._stop(sequence, Ended(sequence.id, "length"))

    def _stop(self, sequence: Sequence, ended: Ended) -> None:
        held_nothing = sequence.slot is None
        finish = ended.finish
        then = Finished(finish) if finish == "stop" or finish == "length" else Aborted(finish)
        sequence.advance(Stopped(then))
        self._ended.append(ended)
        if held_nothing:
            self.roster.leave(sequence)
