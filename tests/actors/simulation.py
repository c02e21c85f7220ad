"""Ledger, policy and pool in a loop with the scripted executor: the engine without actors, checked all along."""

import numpy as np

from puma.actors.block_pool import BlockPool
from puma.actors.ledger import Ledger
from puma.actors.messages import Admit, Ended, Grant, Reserve, Sampling, SequenceId
from puma.actors.policy import Limits
from puma.actors.sequence import Leaving, Preempted, Sequence
from tests.actors.scripted import END, ScriptedExecutor, lone_run


def admission(sequence: SequenceId, prompt: list[int], budget: int, stop_ids: tuple[int, ...] = (END,)) -> Admit:
    return Admit(
        sequence=sequence,
        token_ids=np.array(prompt, np.int32),
        sampling=Sampling(),
        budget=budget,
        stop_ids=frozenset(stop_ids),
    )


def prompt_of(family: int, length: int) -> list[int]:
    """Prompts of one family begin alike; no other family has their tokens."""
    return [1 + (family * 31 + place * 7) % 50 for place in range(length)]


class Simulation:
    """One method per message; `schedule` does what the scheduler does between two messages."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.ledger = Ledger(limits)
        self.pool = BlockPool(limits.blocks, limits.tokens_per_block)
        self.executor = ScriptedExecutor(limits.tokens_per_block)
        self.admitted: dict[SequenceId, Admit] = {}
        self.tokens: dict[SequenceId, list[int]] = {}
        self.ended: dict[SequenceId, Ended] = {}
        self.started: list[SequenceId] = []
        self.preemptions = 0
        self.cached_tokens = 0
        """Found cached by all that were opened."""
        self._idle_results = 0

    def admit(self, prompt_length: int, budget: int, family: int | None = None) -> SequenceId:
        """One more; its prompt is its own unless a family is given."""
        sequence = len(self.admitted)
        message = admission(sequence, prompt_of(sequence if family is None else family, prompt_length), budget)
        self.admitted[sequence] = message
        self.tokens[sequence] = []
        self.ledger.admit(message)
        return sequence

    def run_step(self, **how) -> None:
        self.ledger.settle(self.executor.run(**how))

    def schedule(self) -> None:
        ledger = self.ledger
        before = set(self.yielded())
        while (reserve := ledger.wish()) is not None:
            self.check_yielding(set(self.yielded()) - before)
            in_flight = {sequence.id for flight in ledger.flights for sequence, _ in flight.riders}
            assert not in_flight & set(reserve.release), "released while a result that mentions it is awaited"
            grant = self.pool.serve(reserve)
            self.check_refused(reserve, grant)
            plan = ledger.plan(grant)
            before = set(self.yielded())
            assert ledger.available == self.pool.available, "the scheduler's count of free blocks is exact"
            if plan is not None:
                self.check_order([opened.sequence for opened in plan.opened])
                assert sum(run.count for run in plan.runs) <= self.limits.max_step_tokens
                self.executor.receive(plan)
        self.check_yielding(set(self.yielded()) - before)
        self.pool.check_integrity()
        self.check_blocks()
        self.check_cache()
        self.take_emitted()

    def living(self) -> list[Sequence]:
        """Those that still generate, oldest first."""
        return sorted(
            (one for one in self.ledger.roster.sequences.values() if not one.has_ended), key=lambda one: one.arrival
        )

    def yielded(self) -> list[SequenceId]:
        roster = self.ledger.roster.sequences.values()
        return [one.id for one in roster if isinstance(one.state, Leaving) and isinstance(one.state.then, Preempted)]

    def check_yielding(self, victims: set[SequenceId]) -> None:
        """Whoever yields is younger than all that keep running, and the oldest never does.

        One whose last token is in flight keeps running no longer: it gives its blocks back without being asked.
        """
        self.preemptions += len(victims)
        seated = [one for one in self.living() if one.slot is not None and not isinstance(one.state, Leaving)]
        running = [one.id for one in seated if not one.last_token_planned]
        assert not victims or not running or max(running) < min(victims)
        assert not victims or min(one.id for one in seated) < min(victims), "the oldest yields"

    def check_order(self, opened: list[SequenceId]) -> None:
        """First come, first served: whoever enters has nobody older waiting."""
        waiting = [one.id for one in self.living() if one.slot is None] + self.yielded()
        assert not opened or not waiting or max(opened) < min(waiting)

    def check_refused(self, reserve: Reserve, grant: Grant) -> None:
        """The scheduler knows what fits: who is refused came too late for this step.

        Only the last one it opens may not fit, in the hope that the cache holds a part of it.
        """
        granted = {one.sequence: one.cached_tokens for one in grant.appended}
        room = reserve.room
        for one in reserve.open:
            fits = room > 0 and self.limits.blocks_for(one.tokens) <= grant.available
            assert one.sequence in granted or not fits
            assert one.sequence in granted or room <= 0 or (self.limits.prefix_caching and one is reserve.open[-1])
            room -= len(one.token_ids) - granted.get(one.sequence, 0)
        for one in grant.appended:
            self.cached_tokens += one.cached_tokens

    def check_cache(self) -> None:
        """What is cached was computed, and has not been overwritten."""
        size = self.limits.tokens_per_block
        for block, contents in self.pool.cache.known().items():
            tokens = np.frombuffer(contents[-1], np.int32).tolist()
            assert [self.executor.memory.get((block, place)) for place in range(size)] == tokens
        assert self.limits.prefix_caching or not self.pool.cache.known()
        assert self.ledger.cached == self.pool.cache.idle

    def check_blocks(self) -> None:
        """Each sequence holds what the scheduler thinks, and never a slot with another."""
        seated = [one for one in self.ledger.roster.sequences.values() if one.slot is not None]
        assert len({one.slot for one in seated}) == len(seated) <= self.limits.max_batch_size
        assert {one.id: one.state.blocks for one in seated} == {
            sequence: len(table) for sequence, table in self.pool.tables.items()
        }

    def take_emitted(self) -> None:
        emitted = self.ledger.take_emitted()
        if emitted is None:
            return
        for token in emitted.tokens:
            assert token.sequence not in self.ended
            self.tokens[token.sequence].append(token.token_id)
        for ended in emitted.ended:
            assert ended.sequence not in self.ended, "ended twice"
            self.ended[ended.sequence] = ended
        for begun in emitted.begun:
            assert begun.sequence not in self.started, "started twice"
            self.started.append(begun.sequence)

    def check_progress(self) -> None:
        """The oldest is in a step at least once in three: blocks that others give back are two results away."""
        living = self.living()
        in_flight = {sequence.id for flight in self.ledger.flights for sequence, _ in flight.riders}
        self._idle_results = self._idle_results + 1 if living and living[0].id not in in_flight else 0
        assert self._idle_results <= 2, f"sequence {living[0].id} does not advance"

    def finish(self) -> None:
        """Run until nobody is left, and check every answer against its lone run."""
        self.schedule()
        while self.executor.waiting:
            self.run_step()
            self.schedule()
            self.check_progress()
        assert set(self.ended) == set(self.admitted), "every sequence ends"
        assert not self.ledger.roster.sequences
        assert not self.executor.slots or self.ledger.roster.take_closed()
        assert self.pool.available == self.ledger.available == self.limits.blocks, "every block is back"
        for sequence, message in self.admitted.items():
            alone = lone_run(message.token_ids.tolist(), message.budget)
            tokens = self.tokens[sequence]
            assert tokens == alone[: len(tokens)]
            match self.ended[sequence].finish:
                case "stop":
                    assert tokens == alone
                    assert tokens[-1] == END
                case "length":
                    assert tokens == alone
                    assert len(tokens) == message.budget
