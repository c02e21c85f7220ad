"""The scheduler's core with the real pool and a scripted executor: any workload, any order of events."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from puma.actors.ledger import Ledger
from puma.actors.messages import Grant, StepResult
from puma.actors.policy import Limits
from tests.actors.scripted import lone_run
from tests.actors.simulation import Simulation


def limits_strategy():
    return st.builds(
        lambda blocks, tokens_per_block, batch, more, caching: Limits(
            blocks=blocks,
            tokens_per_block=tokens_per_block,
            max_batch_size=batch,
            max_step_tokens=batch + more,
            prefix_caching=caching,
        ),
        st.integers(2, 14),
        st.sampled_from([1, 2, 4]),
        st.integers(1, 5),
        st.integers(0, 8),
        st.booleans(),
    )


def lengths(data, limits):
    """Prompt and budget that fit in the pool, which is all that intake promises; and whose prompts it is like."""
    tokens = limits.blocks * limits.tokens_per_block
    prompt = data.draw(st.integers(1, tokens - 1), "prompt")
    return prompt, data.draw(st.integers(1, tokens - prompt), "budget"), data.draw(st.integers(0, 2), "family")


class LedgerMachine(RuleBasedStateMachine):
    """Arrivals, results, cancellations, failed steps and answers that are no numbers, in any order.

    The simulation checks at each turn: no block leaked, none owned twice, the count of free blocks exact, no growth
    refused, no release too early, the youngest yields, first come first served, nothing cached that was not computed,
    nothing written where another reads. At the end: everyone ended, and got exactly the tokens of the lone run.
    """

    simulation: Simulation

    @initialize(limits=limits_strategy())
    def start(self, limits):
        self.simulation = Simulation(limits)

    @rule(data=st.data())
    def admit(self, data):
        self.simulation.admit(*lengths(data, self.simulation.limits))

    @rule()
    def schedule(self):
        self.simulation.schedule()

    @precondition(lambda self: self.simulation.executor.waiting)
    @rule()
    def step(self):
        self.simulation.run_step()
        self.simulation.schedule()

    @precondition(lambda self: self.simulation.executor.waiting)
    @rule()
    def fail(self):
        riders = {one for one in self.simulation.executor.riders() if self.generates(one)}
        self.simulation.run_step(failure="out of luck")
        self.simulation.schedule()
        assert all(self.simulation.ended[one].finish == "failed" for one in riders)
        assert all(self.simulation.ended[one].failure == "out of luck" for one in riders)

    @precondition(lambda self: self.simulation.executor.waiting)
    @rule(data=st.data())
    def not_a_number(self, data):
        victim = data.draw(st.sampled_from(self.simulation.executor.riders()))
        before = self.simulation.living()
        self.simulation.run_step(not_numbers=(victim,))
        self.simulation.schedule()
        failed = {one.id for one in before if self.failed(one.id)}
        assert failed <= {victim}

    @precondition(lambda self: self.simulation.admitted)
    @rule(data=st.data())
    def cancel(self, data):
        sequence = data.draw(st.sampled_from(sorted(self.simulation.admitted)))
        generated = self.generates(sequence)
        self.simulation.ledger.cancel(sequence)
        self.simulation.take_emitted()
        assert not generated or self.simulation.ended[sequence].finish == "cancelled"

    def generates(self, sequence):
        return sequence in {one.id for one in self.simulation.living()}

    def failed(self, sequence):
        return sequence in self.simulation.ended and self.simulation.ended[sequence].finish == "failed"

    def teardown(self):
        if hasattr(self, "simulation"):
            self.simulation.finish()


TestLedgerMachine = LedgerMachine.TestCase
TestLedgerMachine.settings = settings(
    max_examples=150, stateful_step_count=40, deadline=None, report_multiple_bugs=False
)


@settings(max_examples=40, deadline=None)
@given(data=st.data(), limits=limits_strategy(), count=st.integers(1, 25))
def test_everyone_who_comes_at_once_gets_the_tokens_of_the_lone_run(data, limits, count):
    simulation = Simulation(limits)
    for _ in range(count):
        simulation.admit(*lengths(data, limits))
    simulation.finish()
    assert all(ended.finish in ("stop", "length") for ended in simulation.ended.values())
    assert simulation.started == sorted(simulation.started)


LIMITS = Limits(blocks=64, tokens_per_block=4, max_batch_size=4, max_step_tokens=16)


def test_a_pool_that_is_short_preempts_and_still_answers_exactly():
    simulation = Simulation(Limits(blocks=12, tokens_per_block=2, max_batch_size=4, max_step_tokens=8))
    for _ in range(8):
        simulation.admit(4, 18)
    simulation.finish()
    assert simulation.preemptions > 0


def test_one_yields_while_a_younger_one_computes_its_last_token():
    simulation = Simulation(Limits(blocks=8, tokens_per_block=2, max_batch_size=3, max_step_tokens=5))
    for prompt, budget in ((5, 5), (4, 4), (1, 2)):
        simulation.admit(prompt, budget)
    simulation.finish()
    assert simulation.preemptions == 1


def test_two_plans_are_in_flight_while_there_is_something_to_run():
    simulation = Simulation(LIMITS)
    simulation.admit(3, 10)
    simulation.schedule()
    assert len(simulation.executor.waiting) == 2
    simulation.run_step()
    simulation.schedule()
    assert len(simulation.executor.waiting) == 2


def test_nothing_is_planned_beyond_the_budget():
    simulation = Simulation(LIMITS)
    simulation.admit(3, 1)
    simulation.schedule()
    assert len(simulation.executor.waiting) == 1
    simulation.run_step()
    simulation.schedule()
    assert not simulation.executor.waiting
    assert simulation.ended[0].finish == "length"
    assert simulation.pool.available == LIMITS.blocks


def test_who_arrives_while_others_decode_joins_the_next_step_that_is_planned():
    simulation = Simulation(LIMITS)
    simulation.admit(3, 40)
    simulation.schedule()
    late = simulation.admit(5, 4)
    simulation.run_step()
    simulation.schedule()
    newest = simulation.executor.waiting[-1]
    assert [slot.sequence for slot in newest.slots.values()] == [0, late]
    assert [run.count for run in newest.plan.runs] == [1, 5]


def test_a_long_prompt_is_read_in_chunks_beside_those_that_decode():
    simulation = Simulation(LIMITS)
    simulation.admit(2, 30)
    simulation.admit(50, 2)
    simulation.schedule()
    for _ in range(6):
        counts = [run.count for run in simulation.executor.waiting[0].plan.runs]
        assert sum(counts) <= 16
        assert simulation.executor.waiting[0].plan.runs[0].slot == 0
        simulation.run_step()
        simulation.schedule()
    assert len(simulation.tokens[0]) == 6
    assert len(simulation.tokens[1]) == 2


def test_a_cancelled_sequence_gives_back_its_blocks_when_the_steps_in_flight_are_done():
    simulation = Simulation(LIMITS)
    simulation.admit(3, 100)
    simulation.schedule()
    simulation.run_step()
    simulation.schedule()
    simulation.ledger.cancel(0)
    used = []
    while simulation.executor.waiting:
        simulation.schedule()
        used.append(LIMITS.blocks - simulation.pool.available)
        simulation.run_step()
    simulation.schedule()
    assert len(used) == 2
    assert simulation.pool.available == LIMITS.blocks


def test_nobody_yields_while_the_blocks_of_one_that_left_are_on_their_way():
    simulation = Simulation(Limits(blocks=4, tokens_per_block=2, max_batch_size=3, max_step_tokens=8))
    for _ in range(3):
        simulation.admit(1, 6 if len(simulation.admitted) < 2 else 2)
    simulation.schedule()
    simulation.run_step()
    simulation.ledger.cancel(1)
    simulation.schedule()
    simulation.run_step()
    simulation.schedule()
    assert simulation.preemptions == 0


def test_a_failed_step_fails_those_in_it_and_the_others_go_on():
    simulation = Simulation(Limits(blocks=64, tokens_per_block=4, max_batch_size=1, max_step_tokens=16))
    simulation.admit(3, 10)
    waiting = simulation.admit(4, 10)
    simulation.schedule()
    simulation.run_step(failure="no luck")
    simulation.finish()
    assert simulation.ended[0].failure == "no luck"
    assert simulation.ended[waiting].finish in ("stop", "length")


def test_a_result_out_of_order_is_an_error():
    simulation = Simulation(LIMITS)
    simulation.admit(3, 10)
    simulation.schedule()
    with pytest.raises(RuntimeError, match="the result of step 1 arrived, expected was step 0"):
        simulation.ledger.settle(StepResult(1, (), 0.0))


def test_a_grant_that_nobody_asked_for_is_an_error():
    with pytest.raises(RuntimeError, match="grant for step 3"):
        Ledger(LIMITS).plan(Grant(3, (), (), 64))


def test_counts_are_true():
    simulation = Simulation(LIMITS)
    simulation.admit(3, 10)
    simulation.admit(20, 5)
    simulation.finish()
    counts = simulation.ledger.counts
    assert counts.generated_tokens == sum(map(len, simulation.tokens.values()))
    assert counts.prompt_tokens == 23
    assert counts.busy_seconds == counts.steps * 0.25


def test_a_resumed_sequence_says_how_many_tokens_it_has_generated_itself():
    simulation = Simulation(Limits(blocks=8, tokens_per_block=2, max_batch_size=2, max_step_tokens=16))
    opened = []
    receive = simulation.executor.receive
    simulation.executor.receive = lambda plan: (opened.extend(plan.opened), receive(plan))
    simulation.admit(2, 14)
    simulation.admit(3, 13)
    simulation.finish()
    assert simulation.preemptions
    resumed = [one for one in opened if one.generated]
    assert resumed
    for one in resumed:
        message = simulation.admitted[one.sequence]
        output = lone_run(message.token_ids.tolist(), message.budget)[: one.generated]
        assert one.token_ids.tolist() == [*message.token_ids.tolist(), *output]
