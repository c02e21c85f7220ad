"""The four actors on a tiny model, its executor included: answers are what each request gets alone."""

from contextlib import asynccontextmanager

import pytest
import trio

from puma.actors.engine import run_engine
from puma.actors.errors import EngineFailed
from puma.actors.messages import Done, Failed, Piece, Sampling, Started, Submit, Tokens
from puma.actors.reply import Reply
from puma.config.engine import EngineConfig
from puma.config.memory import VALUE_BYTES
from puma.models.model import load_model
from tests.tiny import KV_DTYPES, Tiny

PROMPTS = [[(5 * n + 3 * k) % 250 + 2 for k in range(3 + 9 * n)] for n in range(12)]


@asynccontextmanager
async def engine(tmp_path, **options):
    options = {"memory_pool_bytes": 2 << 20, "threads": 2} | options
    config = EngineConfig(**options)
    model = load_model(Tiny(tmp_path / "tiny.gguf", 3).path, config)
    try:
        async with trio.open_nursery() as nursery:
            yield await nursery.start(run_engine, model, config, model.plan)
            nursery.cancel_scope.cancel()
    finally:
        model.close()


def submit(engine, name, ids, max_tokens=40, **sampling):
    options = {"temperature": 0.8, "seed": len(ids), "logprobs": 3} | sampling
    reply = Reply()
    engine.submit(
        Submit(
            request_id=name,
            prompt=Tokens(tuple(ids)),
            sampling=Sampling(**options),
            max_tokens=max_tokens,
            reply=reply,
        )
    )
    return reply


async def collect(reply):
    """All events of an answer."""
    events = []
    while not events or not isinstance(events[-1], Done | Failed):
        events += await reply.take()
    return events


def answer(events):
    """Everything the client sees, to be compared exactly."""
    pieces = [event for event in events if isinstance(event, Piece)]
    return "".join(piece.text for piece in pieces), [one for piece in pieces for one in piece.logprobs], events[-1]


async def ask(engine, name, ids, **options):
    return answer(await collect(submit(engine, name, ids, **options)))


async def ask_all(engine, prompts, **options):
    answers = [None] * len(prompts)

    async def one(index):
        answers[index] = await ask(engine, f"all-{index}", prompts[index], **options)

    async with trio.open_nursery() as nursery:
        for index in range(len(prompts)):
            nursery.start_soon(one, index)
    return answers


async def nothing_left(engine):
    """Blocks come back once the last step that was planned ahead has ended."""
    with trio.fail_after(5):
        await engine.drained()
        for _ in range(500):
            snapshot = await engine.snapshot()
            if not snapshot.blocks_used:
                break
            await trio.sleep(0.01)
    assert (snapshot.blocks_used, snapshot.sequences) == (0, ())


@pytest.mark.parametrize("temperature", [0.0, 0.8])
@pytest.mark.parametrize("kv_dtype", KV_DTYPES)
async def test_twelve_at_once_get_what_each_gets_alone(tmp_path, temperature, kv_dtype):
    async with engine(tmp_path, kv_dtype=kv_dtype) as running:
        alone = [await ask(running, f"alone-{n}", ids, temperature=temperature) for n, ids in enumerate(PROMPTS)]
        assert await ask_all(running, PROMPTS, temperature=temperature) == alone
        assert len({text for text, _, _ in alone}) > 6


@pytest.mark.parametrize("kv_dtype", KV_DTYPES)
async def test_small_steps_and_a_pool_that_runs_short_change_nothing(tmp_path, kv_dtype):
    async with engine(tmp_path, kv_dtype=kv_dtype) as running:
        expected = await ask_all(running, PROMPTS)
    # 14 blocks: a few of the twelve fit at a time, and those that run outgrow the pool.
    block = 2 * 2 * 2 * 32 * VALUE_BYTES[kv_dtype] * 16
    options = {"memory_pool_bytes": 14 * block, "max_step_tokens": 16, "max_batch_size": 6}
    async with engine(tmp_path, kv_dtype=kv_dtype, **options) as running:
        assert await ask_all(running, PROMPTS) == expected
        await nothing_left(running)


async def test_who_leaves_in_the_middle_leaves_nothing_behind(tmp_path):
    async with engine(tmp_path) as running:
        expected = await ask(running, "expected", PROMPTS[5])
        replies = [submit(running, f"r{n}", ids, max_tokens=300) for n, ids in enumerate(PROMPTS)]
        staying = submit(running, "staying", PROMPTS[5])
        for reply in replies:
            await reply.take()
        for number in range(len(replies)):
            running.withdraw(f"r{number}")
            running.withdraw(f"r{number}")
        assert answer(await collect(staying)) == expected
        await nothing_left(running)


async def test_a_failing_step_fails_its_sequences_and_no_later_ones(tmp_path, monkeypatch, caplog):
    async with engine(tmp_path) as running:
        expected = await ask(running, "before", PROMPTS[3])
        real, broken = running.model.step, []

        def step(batch):
            if broken:
                raise RuntimeError(broken.pop())
            return real(batch)

        monkeypatch.setattr(running.model, "step", step)
        reply = submit(running, "victim", PROMPTS[4], max_tokens=200)
        assert isinstance((await reply.take())[0], Started)
        broken.append("a bit fell over")
        events = await collect(reply)
        assert isinstance(events[-1], Failed)
        assert isinstance(events[-1].error, EngineFailed)
        assert "a bit fell over" in caplog.text
        assert await ask(running, "after", PROMPTS[3]) == expected
        await nothing_left(running)
