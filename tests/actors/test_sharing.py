"""Sequences whose prompts begin alike: the scheduler's core with the real pool and a scripted executor."""

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from puma.actors.policy import Limits
from tests.actors.simulation import Simulation

LIMITS = Limits(blocks=64, tokens_per_block=4, max_batch_size=4, max_step_tokens=16, prefix_caching=True)


class Watched(Simulation):
    """Notes where each sequence's first run began."""

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self.begins: dict[int, list[int]] = {}
        receive = self.executor.receive

        def watch(plan):
            sequences = {opened.slot: opened.sequence for opened in plan.opened}
            for run in plan.runs:
                if run.slot in sequences:
                    self.begins.setdefault(sequences[run.slot], []).append(run.start)
            receive(plan)

        self.executor.receive = watch

    def run_to_end(self) -> None:
        self.schedule()
        while self.executor.waiting:
            self.run_step()
            self.schedule()


def limits(**changes) -> Limits:
    return msgspec.structs.replace(LIMITS, **changes)


def test_a_prompt_that_was_answered_is_not_computed_again():
    simulation = Watched(LIMITS)
    first = simulation.admit(11, 3, family=0)
    simulation.run_to_end()
    again, longer = simulation.admit(11, 3, family=0), simulation.admit(15, 3, family=0)
    simulation.run_to_end()
    longest = simulation.admit(19, 3, family=0)
    simulation.finish()
    assert simulation.begins == {first: [0], again: [8], longer: [8], longest: [12]}
    assert simulation.ledger.counts.cached_tokens == 8 + 8 + 12
    assert simulation.ledger.counts.prompt_tokens == 11 + 11 + 15 + 19


def test_blocks_of_one_that_still_runs_are_shared():
    simulation = Watched(LIMITS)
    simulation.admit(11, 40, family=0)
    simulation.schedule()
    simulation.run_step()
    late = simulation.admit(11, 3, family=0)
    simulation.schedule()
    assert simulation.begins[late] == [8]
    assert LIMITS.blocks - simulation.pool.available == 4 + 3 - 2
    assert [one.blocks for one in simulation.ledger.shared] == [2]
    simulation.finish()


def test_within_one_step_nothing_is_shared():
    simulation = Watched(LIMITS)
    simulation.admit(5, 3, family=0), simulation.admit(5, 3, family=0)
    simulation.schedule()
    assert simulation.begins == {0: [0], 1: [0]}
    simulation.finish()


def test_a_chunk_that_was_planned_but_not_computed_is_not_shared():
    simulation = Watched(limits(max_step_tokens=8))
    simulation.admit(8, 30, family=0)
    simulation.schedule()
    late = simulation.admit(9, 3, family=0)
    # Its first step is not done: what a failure would leave there must not be read.
    simulation.run_step(failure="no luck")
    simulation.schedule()
    assert simulation.begins[late] == [0]
    simulation.finish()


def test_what_was_generated_is_found_by_the_next_turn():
    simulation = Watched(LIMITS)
    message = simulation.admitted[simulation.admit(6, 10)]
    simulation.run_to_end()
    conversation = [*message.token_ids.tolist(), *simulation.tokens[0]]
    found = simulation.pool.cache.match(np.array([*conversation, 7], np.int32), 99)
    # The last token was sampled and never computed.
    assert len(found) == (len(conversation) - 1) // 4 > 1


def test_a_failed_step_leaves_nothing_behind_and_spares_what_was_there():
    simulation = Watched(limits(max_step_tokens=8))
    simulation.admit(20, 5, family=0)
    simulation.schedule()
    simulation.run_step()
    simulation.schedule()
    simulation.run_step(failure="no luck")
    simulation.run_to_end()
    assert len(simulation.pool.cache.known()) == 2
    again = simulation.admit(20, 5, family=0)
    simulation.finish()
    assert simulation.begins[again] == [8]


def test_what_yields_no_number_is_forgotten_from_its_beginning():
    simulation = Watched(limits(max_step_tokens=8))
    simulation.admit(9, 2, family=0)
    simulation.run_to_end()
    assert len(simulation.pool.cache.known()) == 2
    bad = simulation.admit(13, 5, family=0)
    simulation.schedule()
    assert simulation.begins[bad] == [8]
    simulation.run_step(not_numbers=(bad,))
    simulation.run_to_end()
    assert simulation.pool.cache.known() == {}
    assert simulation.ended[bad].finish == "failed"


def test_what_a_cancelled_one_computed_without_a_number_is_forgotten_too():
    simulation = Watched(LIMITS)
    simulation.admit(9, 5)
    simulation.schedule()
    simulation.ledger.cancel(0)
    simulation.run_step(not_numbers=(0,))
    simulation.run_to_end()
    assert simulation.pool.cache.known() == {}


@pytest.mark.parametrize("prompt", range(5, 13))
def test_a_cancelled_one_leaves_what_it_computed_as_far_as_its_tokens_are_known(prompt):
    simulation = Watched(LIMITS)
    simulation.admit(prompt, 20)
    simulation.schedule()
    simulation.ledger.cancel(0)
    simulation.run_to_end()
    assert len(simulation.pool.cache.known()) == prompt // 4
    simulation.finish()


def test_one_that_had_to_yield_goes_on_from_its_own_blocks():
    simulation = Watched(limits(blocks=9, tokens_per_block=2, max_batch_size=2))
    simulation.admit(4, 12), simulation.admit(4, 12)
    simulation.finish()
    assert simulation.preemptions
    assert any(begin > 0 for begin in simulation.begins[1][1:])


def test_all_who_share_what_is_cached_enter_together():
    simulation = Watched(limits(max_step_tokens=8))
    simulation.admit(21, 3, family=0)
    simulation.run_to_end()
    for _ in range(4):
        simulation.admit(21, 3, family=0)
    simulation.schedule()
    # One token of each is left to compute.
    assert [run.count for run in simulation.executor.waiting[0].plan.runs] == [1, 1, 1, 1]
    simulation.finish()


def test_those_who_begin_alike_enter_one_after_the_other_while_nothing_is_cached():
    simulation = Watched(limits(max_step_tokens=8))
    for _ in range(3):
        simulation.admit(21, 3, family=0)
    simulation.schedule()
    assert list(simulation.begins) == [0]
    simulation.finish()
    assert min(simulation.begins[1] + simulation.begins[2]) >= 8


def test_more_fit_than_would_without_sharing():
    simulation = Watched(limits(blocks=10))
    simulation.admit(25, 12, family=0)
    simulation.schedule()
    while not simulation.tokens[0]:
        simulation.run_step()
        simulation.schedule()
    # It needs seven blocks, three are available, and six are found.
    late = simulation.admit(26, 2, family=0)
    simulation.run_step()
    simulation.schedule()
    assert simulation.begins[late] == [24]
    simulation.finish()


def test_with_prefix_caching_off_nothing_is_cached_or_shared():
    simulation = Watched(limits(prefix_caching=False))
    for _ in range(3):
        simulation.admit(11, 8, family=0)
        simulation.run_to_end()
    simulation.finish()
    assert simulation.begins == {0: [0], 1: [0], 2: [0]}
    assert simulation.pool.cache.known() == {}
    assert simulation.ledger.counts.cached_tokens == 0


@settings(max_examples=150, deadline=None)
@given(
    blocks=st.integers(4, 12),
    tokens_per_block=st.integers(1, 2),
    beginning=st.floats(0.2, 0.9),
    batch=st.integers(2, 5),
    more=st.lists(st.tuples(st.floats(0, 1), st.integers(0, 4)), min_size=2, max_size=12),
)
def test_many_that_begin_alike_in_a_pool_that_is_short(blocks, tokens_per_block, beginning, batch, more):
    """What is shared does not come back when one yields: the scheduler has to count that before it asks."""
    tokens = blocks * tokens_per_block
    simulation = Watched(
        limits(blocks=blocks, tokens_per_block=tokens_per_block, max_batch_size=batch, max_step_tokens=batch + 8)
    )
    prompt = max(1, int(tokens * beginning))
    for budget, steps in more:
        simulation.admit(prompt, max(1, int((tokens - prompt) * budget)), family=0)
        for _ in range(steps):
            simulation.schedule()
            if simulation.executor.waiting:
                simulation.run_step()
    simulation.finish()
