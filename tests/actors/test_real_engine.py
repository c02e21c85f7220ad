"""The four actors on a tiny model, its executor included: answers are what each request gets alone."""

import pytest

from puma.actors.errors import EngineFailed
from puma.actors.messages import Failed, Started
from puma.config.memory import VALUE_BYTES
from tests.actors.real_engine import answer, ask, ask_all, collect, engine_of, nothing_left, submit
from tests.tiny import KV_DTYPES, Tiny

PROMPTS = [[(5 * n + 3 * k) % 250 + 2 for k in range(3 + 9 * n)] for n in range(12)]


def engine(tmp_path, **options):
    return engine_of(Tiny(tmp_path / "tiny.gguf", 3).path, **({"memory_pool_bytes": 2 << 20} | options))


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
