"""The four actors together, with a scripted executor: bookkeeping from submission to the last event."""

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from puma.actors.engine import Engine, run_engine
from puma.actors.errors import BadRequest, EngineFailed, QueueFull, ShuttingDown
from puma.actors.messages import Done, Failed, Piece, Sampling, Started, Submit, Text, Tokens
from puma.actors.reply import Reply
from puma.config.engine import EngineConfig
from puma.config.memory import KVGeometry, MemoryPlan
from tests.actors.scripted import END, ScriptedActor, lone_run
from tests.actors.simulation import prompt_of
from tests.actors.tiny_text import tiny_text

TEXT = tiny_text()


class Model:
    """As much of a LoadedModel as the engine itself looks at; the scripted executor needs none."""

    name = "scripted"
    text = TEXT
    geometry = KVGeometry(1, 1, 8)
    vocabulary_size = TEXT.tokenizer.vocabulary_size
    context_length = 256


def memory(blocks: int) -> MemoryPlan:
    return MemoryPlan(token_bytes=32, block_bytes=512, tokens_per_block=16, blocks=blocks)


class House:
    """A running engine and its executor."""

    def __init__(self, engine: Engine, executor: ScriptedActor) -> None:
        self.engine = engine
        self.executor = executor
        self.count = 0

    def submit(self, prompt=None, *, max_tokens=10, **fields) -> Submit:
        self.count += 1
        message = Submit(
            request_id=f"r{self.count}",
            prompt=prompt or Tokens(tuple(prompt_of(self.count, 5))),
            sampling=Sampling(),
            max_tokens=max_tokens,
            reply=Reply(),
            **fields,
        )
        self.engine.submit(message)
        return message

    async def used(self) -> int:
        return (await self.engine.snapshot()).blocks_used


@pytest.fixture
def open_house(nursery):
    async def start(*, blocks=64, free_running=True, **config) -> House:
        executor = ScriptedActor(16, free_running=free_running)
        engine = await nursery.start(start_engine, EngineConfig(**config), memory(blocks), executor)
        return House(engine, executor)

    yield start
    nursery.cancel_scope.cancel()


async def start_engine(config, plan, executor, *, task_status):
    await run_engine(Model(), config, plan, executor=executor.run, task_status=task_status)


async def answer(submit: Submit) -> list:
    """All events up to the last."""
    events: list = []
    while not events or not isinstance(events[-1], Done | Failed):
        events += await submit.reply.take()
    return events


def text_of(events: list) -> str:
    return "".join(event.text for event in events if isinstance(event, Piece))


def expected(prompt, max_tokens: int) -> tuple[str, int]:
    """Text and number of tokens of the lone run."""
    tokens = lone_run(prompt, max_tokens)
    return bytes(one for one in tokens if one != END).decode(), len(tokens)


async def test_a_request_is_answered(open_house):
    house = await open_house()
    submit = house.submit(max_tokens=30)
    events = await answer(submit)
    text, count = expected(submit.prompt.token_ids, 30)
    assert events[0] == Started(5)
    assert text_of(events) == text
    assert events[-1] == Done("stop" if count < 30 else "length", 5, count)


async def test_many_at_once_each_get_the_answer_of_the_lone_run_and_no_block_stays_behind(open_house):
    house = await open_house(blocks=8, max_batch_size=4, max_step_tokens=16)
    wanted = [house.submit(Tokens(tuple(prompt_of(place, 3 + place))), max_tokens=40 + place) for place in range(24)]
    for place, submit in enumerate(wanted):
        assert text_of(await answer(submit)) == expected(submit.prompt.token_ids, 40 + place)[0]
    await house.engine.drained()
    await wait_all_tasks_blocked()
    snapshot = await house.engine.snapshot()
    assert (snapshot.blocks_used, snapshot.sequences) == (0, ())
    assert snapshot.prompt_tokens == sum(3 + place for place in range(24))


async def test_a_client_that_leaves_gives_back_its_blocks_within_two_steps(open_house):
    house = await open_house(free_running=False, max_batch_size=1)
    gone, patient = house.submit(max_tokens=100), house.submit(max_tokens=3)
    await wait_all_tasks_blocked()
    assert await house.used() > 0
    for _ in range(2000):
        house.engine.withdraw(gone.request_id)
    for _ in range(2):
        house.executor.step()
        await wait_all_tasks_blocked()
    snapshot = await house.engine.snapshot()
    assert [line.request_id for line in snapshot.sequences] == [patient.request_id]
    house.executor.free_running = True
    house.executor.step()
    assert text_of(await answer(patient)) == expected(patient.prompt.token_ids, 3)[0]


async def test_withdrawing_in_any_state_leaves_nothing_behind(open_house):
    house = await open_house(blocks=8, max_batch_size=2)
    for rounds in range(30):
        submits = [house.submit(max_tokens=60) for _ in range(4)]
        for _ in range(rounds):
            await trio.lowlevel.checkpoint()
        for submit in submits:
            house.engine.withdraw(submit.request_id)
            house.engine.withdraw("nobody")
    await house.engine.drained()
    await wait_all_tasks_blocked()
    assert await house.used() == 0
    assert not house.engine.door.guests


async def test_a_stop_string_ends_the_answer_and_frees_its_blocks(open_house):
    house = await open_house()
    whole = expected(prompt_of(1, 5), 100)[0]
    assert len(whole) > 12
    stop = whole[6:9]
    submit = house.submit(max_tokens=100, stop=(stop,))
    events = await answer(submit)
    assert text_of(events) == whole[: whole.index(stop)]
    assert events[-1].finish == "stop"
    assert events[-1].completion_tokens == whole.index(stop) + 3
    await wait_all_tasks_blocked()
    assert await house.used() == 0


async def test_one_too_many_is_told_at_once(open_house):
    house = await open_house(free_running=False, max_batch_size=1, max_queued_requests=2)
    house.submit()
    await wait_all_tasks_blocked()
    house.submit()
    house.submit()
    with pytest.raises(QueueFull, match="2 requests wait already"):
        house.submit()
    house.engine.withdraw("r2")
    await wait_all_tasks_blocked()
    house.submit()


async def test_a_wrong_request_fails_alone(open_house):
    house = await open_house()
    wrong, right = house.submit(Text("a" * 300)), house.submit()
    (event,) = await answer(wrong)
    assert isinstance(event.error, BadRequest)
    assert isinstance((await answer(right))[-1], Done)


async def test_what_the_pool_can_never_hold_is_refused_and_the_next_is_answered(open_house):
    house = await open_house(blocks=2)
    too_much, little = house.submit(Tokens(tuple(prompt_of(1, 32)))), house.submit(max_tokens=40)
    (event,) = await answer(too_much)
    assert "the KV cache holds 32 tokens (2 blocks of 16)" in event.error.message
    assert isinstance((await answer(little))[-1], Done)


async def test_a_step_that_fails_fails_those_in_it_and_the_others_are_answered(open_house):
    house = await open_house(max_batch_size=1)
    house.executor.failures.append("the step failed")
    first, second = house.submit(), house.submit()
    error = (await answer(first))[-1].error
    assert isinstance(error, EngineFailed)
    assert error.message == "the step failed"
    assert text_of(await answer(second)) == expected(second.prompt.token_ids, 10)[0]
    await wait_all_tasks_blocked()
    assert await house.used() == 0


async def test_a_client_that_does_not_read_holds_up_nobody(open_house):
    house = await open_house()
    sleepy, awake = house.submit(max_tokens=200), house.submit(max_tokens=200)
    await answer(awake)
    await house.engine.drained()
    events = await sleepy.reply.take()
    assert isinstance(events[-1], Done)
    assert len(events) <= 202


async def test_stopping_lets_those_inside_finish(open_house):
    house = await open_house()
    submit = house.submit()
    house.engine.stop_admitting()
    with pytest.raises(ShuttingDown):
        house.submit()
    await house.engine.drained()
    assert isinstance((await answer(submit))[-1], Done)


async def test_the_state_of_the_engine_names_requests(open_house):
    house = await open_house(free_running=False)
    house.submit(max_tokens=100)
    await wait_all_tasks_blocked()
    snapshot = await house.engine.snapshot()
    (line,) = snapshot.sequences
    assert (snapshot.model, snapshot.blocks_total, snapshot.blocks_used) == ("scripted", 64, 1)
    assert (line.request_id, line.state, line.prompt_tokens, line.generated, line.blocks) == ("r1", "decoding", 5, 0, 1)


async def test_the_handle_knows_its_engine(open_house):
    engine = (await open_house(max_batch_size=3)).engine
    assert (engine.model.name, engine.config.max_batch_size, engine.plan.blocks) == ("scripted", 3, 64)
    assert engine.context_length == 256
    assert engine.created > 1_600_000_000


async def test_an_idle_engine_does_nothing(open_house, autojump_clock):
    house = await open_house()
    await answer(house.submit())
    await wait_all_tasks_blocked()
    counter = StepCounter()
    trio.lowlevel.add_instrument(counter)
    await trio.sleep(3600)
    trio.lowlevel.remove_instrument(counter)
    assert counter.steps < 5


class StepCounter(trio.abc.Instrument):
    steps = 0

    def before_task_step(self, task):
        self.steps += 1


async def test_whoever_is_inside_is_told_when_the_engine_is_cancelled(nursery):
    executor = ScriptedActor(16, free_running=False)
    engines = trio.CancelScope()

    async def serve(*, task_status):
        with engines:
            await start_engine(EngineConfig(), memory(64), executor, task_status=task_status)

    house = House(await nursery.start(serve), executor)
    submit = house.submit()
    await wait_all_tasks_blocked()
    engines.cancel()
    assert isinstance((await answer(submit))[-1].error, ShuttingDown)
    with pytest.raises(ShuttingDown):
        house.submit()
    with pytest.raises(ShuttingDown):
        await house.engine.snapshot()
    house.engine.withdraw(submit.request_id)
    await house.engine.drained()


async def test_an_actor_that_cannot_go_on_ends_the_engine_and_everyone_is_told():
    async def crash(plans, *_):
        await plans.receive()
        raise OSError("the weights are gone")

    submits = []

    async def use(engine: Engine):
        house = House(engine, ScriptedActor(16))
        submits.extend([house.submit(), house.submit()])

    with pytest.RaisesGroup(pytest.RaisesExc(OSError, match="weights"), flatten_subgroups=True):
        async with trio.open_nursery() as nursery:
            engine = await nursery.start(lambda *, task_status: run_with(crash, task_status))
            await use(engine)
    for submit in submits:
        error = (await answer(submit))[-1].error
        assert isinstance(error, EngineFailed)
        assert "the weights are gone" in error.message


async def run_with(executor, task_status):
    await run_engine(Model(), EngineConfig(), memory(64), executor=executor, task_status=task_status)
