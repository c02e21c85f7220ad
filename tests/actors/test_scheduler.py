"""The scheduler actor, with a script that plays the KV cache and the executor."""

import pytest
from trio.testing import wait_all_tasks_blocked

from puma.actors.answer import Answer
from puma.actors.block_pool import BlockPool
from puma.actors.channels import LOOK_AHEAD, open_channels
from puma.actors.ledger import Ledger
from puma.actors.messages import Ask, Begun, Cancel, Emitted, Ended, Grant, NewToken, Sampled, Snapshot, StepResult
from puma.actors.policy import Limits
from puma.actors.scheduler import run_scheduler
from puma.config.engine import EngineConfig
from tests.actors.simulation import admission

LIMITS = Limits(blocks=8, tokens_per_block=4, max_batch_size=2, max_step_tokens=16)


class Stage:
    """Everything around the scheduler."""

    def __init__(self) -> None:
        self.channels = open_channels(EngineConfig())
        self.pool = BlockPool(LIMITS.blocks, LIMITS.tokens_per_block)

    def tell(self, *messages) -> None:
        for message in messages:
            self.channels.scheduler[0].send_nowait(message)

    async def reserve(self):
        """The next Reserve, not answered yet."""
        return await self.channels.reserves[1].receive()

    async def plan(self):
        """The next plan, its Reserve being granted."""
        self.tell(self.pool.serve(await self.reserve()))
        return await self.channels.plans[1].receive()

    async def emitted(self) -> Emitted:
        return await self.channels.emitted[1].receive()

    def quiet(self) -> bool:
        """Whether the scheduler has said nothing more."""
        inboxes = (self.channels.reserves[1], self.channels.plans[1], self.channels.emitted[1])
        return all(inbox.statistics().current_buffer_used == 0 for inbox in inboxes)


@pytest.fixture
async def stage(nursery):
    stage = Stage()
    nursery.start_soon(run_scheduler, stage.channels, Ledger(LIMITS), "a model")
    yield stage
    nursery.cancel_scope.cancel()


def result(step: int, *tokens: tuple[int, int]) -> StepResult:
    return StepResult(step, tuple(Sampled(sequence, token, -0.5, ()) for sequence, token in tokens), 0.25)


def new(sequence: int, token: int) -> NewToken:
    return NewToken(sequence, token, -0.5, ())


async def test_a_sequence_goes_from_admission_to_its_end(stage):
    stage.tell(admission(1, [5, 6, 7], budget=3))
    first, second = await stage.plan(), await stage.plan()
    assert [(run.start, run.count, run.samples) for run in (*first.runs, *second.runs)] == [(0, 3, True), (3, 1, True)]
    assert await stage.emitted() == Emitted((), (), (Begun(1),))
    stage.tell(result(0, (1, 40)))
    third = await stage.plan()
    assert third.runs[0].start == 4
    assert await stage.emitted() == Emitted((new(1, 40),), ())
    stage.tell(result(1, (1, 41)))
    assert await stage.emitted() == Emitted((new(1, 41),), ())
    stage.tell(result(2, (1, 42)))
    assert (await stage.reserve()).release == (1,)
    stage.tell(Grant(3, (), (), 8))
    assert await stage.emitted() == Emitted((new(1, 42),), (Ended(1, "length"),))
    await wait_all_tasks_blocked()
    assert stage.quiet()


async def test_a_sequence_that_ends_is_dropped_from_the_plan_in_flight(stage):
    stage.tell(admission(1, [5, 6], budget=9, stop_ids=(0,)))
    await stage.plan(), await stage.plan(), await stage.emitted()
    stage.tell(result(0, (1, 0)))
    assert await stage.emitted() == Emitted((new(1, 0),), (Ended(1, "stop"),))
    await wait_all_tasks_blocked()
    assert stage.quiet(), "its blocks are not released while a result that mentions it is awaited"
    stage.tell(result(1, (1, 33)))
    assert (await stage.reserve()).release == (1,)
    stage.tell(Grant(2, (), (), 8))
    await wait_all_tasks_blocked()
    assert stage.quiet(), "and the token that came after the end is told to nobody"


async def test_messages_that_arrive_while_a_grant_is_awaited_are_kept_in_order(stage):
    stage.tell(admission(1, [5, 6], budget=9))
    reserve = await stage.reserve()
    stage.tell(admission(2, [7], budget=9), Cancel(2, "client left"), admission(3, [8], budget=9))
    await wait_all_tasks_blocked()
    stage.tell(stage.pool.serve(reserve))
    assert [opened.sequence for opened in (await stage.channels.plans[1].receive()).opened] == [1]
    assert [opened.sequence for opened in (await stage.plan()).opened] == [3]
    assert await stage.emitted() == Emitted((), (Ended(2, "cancelled"),), (Begun(1), Begun(3)))


async def test_all_that_has_happened_is_seen_by_one_plan(stage):
    stage.tell(admission(1, [5], budget=9), admission(2, [6], budget=9), admission(3, [7], budget=9))
    assert [opened.sequence for opened in (await stage.plan()).opened] == [1, 2]


async def test_no_more_than_two_plans_are_in_flight(stage):
    stage.tell(admission(1, [5], budget=20))
    for _ in range(LOOK_AHEAD):
        await stage.plan()
    await stage.emitted()
    stage.tell(admission(2, [6], budget=20))
    await wait_all_tasks_blocked()
    assert stage.quiet()


async def test_a_failed_step_is_told_with_its_message(stage):
    stage.tell(admission(1, [5], budget=20))
    await stage.plan(), await stage.plan(), await stage.emitted()
    stage.tell(StepResult(0, (), 0.25, "out of memory"))
    assert await stage.emitted() == Emitted((), (Ended(1, "failed", "out of memory"),))


async def test_a_token_that_is_no_number_fails_its_sequence_alone(stage):
    stage.tell(admission(1, [5], budget=20), admission(2, [6], budget=20))
    await stage.plan(), await stage.plan(), await stage.emitted()
    stage.tell(result(0, (1, -1), (2, 9)))
    await stage.plan()
    ended = Ended(1, "failed", "the model's output is not a number")
    assert await stage.emitted() == Emitted((new(2, 9),), (ended,))


async def test_a_slot_is_closed_in_the_plan_that_follows_its_release(stage):
    stage.tell(admission(1, [5], budget=1))
    await stage.plan(), await stage.emitted()
    stage.tell(result(0, (1, 9)))
    stage.tell(stage.pool.serve(await stage.reserve()))
    await stage.emitted()
    stage.tell(admission(2, [6], budget=1))
    plan = await stage.plan()
    assert plan.closed == (0,)
    assert [opened.slot for opened in plan.opened] == [0]


async def test_it_says_how_things_stand_between_two_steps(stage):
    stage.tell(admission(1, [5, 6, 7, 8], budget=20), admission(2, [6], budget=20), admission(3, [6], budget=1))
    await stage.plan(), await stage.plan()
    stage.tell(result(0, (1, 9), (2, 9)))
    await stage.plan()
    answer = Answer[Snapshot]()
    stage.tell(Ask(answer))
    snapshot = await answer.get()
    assert (snapshot.model, snapshot.blocks_total, snapshot.blocks_used) == ("a model", 8, 3)
    assert (snapshot.steps, snapshot.busy_seconds) == (1, 0.25)
    assert (snapshot.generated_tokens, snapshot.prompt_tokens) == (2, 5)
    assert [(one.sequence, one.state, one.prompt_tokens, one.generated, one.blocks) for one in snapshot.sequences] == [
        (1, "decoding", 4, 1, 2),
        (2, "decoding", 1, 1, 1),
        (3, "waiting", 1, 0, 0),
    ]


async def test_an_unknown_sequence_is_not_missed(stage):
    stage.tell(Cancel(99, "client left"))
    await wait_all_tasks_blocked()
    assert stage.quiet()


@pytest.mark.parametrize(
    ("message", "complaint"),
    [
        (Grant(0, (), (), 8), "a grant for step 0 arrived"),
        (StepResult(4, (), 0.0), "the result of step 4 arrived, expected was none"),
    ],
)
async def test_a_broken_protocol_ends_the_actor(message, complaint):
    channels = open_channels(EngineConfig())
    channels.scheduler[0].send_nowait(message)
    with pytest.raises(RuntimeError, match=complaint):
        await run_scheduler(channels, Ledger(LIMITS), "a model")
