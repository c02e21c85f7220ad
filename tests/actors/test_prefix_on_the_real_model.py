"""SmolLM2: an answer has the same bits whether its prompt's beginning came from the cache or was computed."""

import pytest
import trio

from tests.actors.real_engine import answer, ask, ask_all, collect, engine_of, nothing_left, submit

SYSTEM = [(37 * n + 11) % 40000 + 20 for n in range(150)]
"""Longer than one span of attention, and no whole number of blocks."""
QUESTIONS = [[(91 * n + 7 * k) % 40000 + 20 for k in range(1 + 5 * n)] for n in range(5)]
PROMPTS = [SYSTEM + question for question in QUESTIONS]
BLOCK_BYTES = 16 * 23_040


@pytest.fixture(scope="module")
def expected(smollm2_path):
    """Each answered alone by an engine that caches nothing."""

    async def all_alone():
        async with engine_of(smollm2_path, prefix_caching=False, context_length=1024) as engine:
            answers = []
            for n, ids in enumerate(PROMPTS):
                events = await collect(submit(engine, f"r{n}", ids, max_tokens=20))
                assert events[-1].cached_tokens == 0
                answers.append(answer(events))
            snapshot = await engine.snapshot()
            assert (snapshot.blocks_cached, snapshot.cached_tokens) == (0, 0)
            return answers

    return trio.run(all_alone)


async def test_with_the_prefix_from_the_cache(smollm2_path, expected):
    async with engine_of(smollm2_path, context_length=1024) as engine:
        cached = []
        for turn in range(2):
            for n, ids in enumerate(PROMPTS):
                events = await collect(submit(engine, f"r{turn}-{n}", ids, max_tokens=20))
                assert answer(events) == expected[n]
                cached.append(events[-1].cached_tokens)
        # First only the common beginning, then all full blocks that leave a token to compute.
        assert cached[:5] == [0, 144, 144, 144, 144]
        assert cached[5:] == [(len(ids) - 1) // 16 * 16 for ids in PROMPTS]
        await nothing_left(engine)
        snapshot = await engine.snapshot()
        assert snapshot.cached_tokens == sum(cached)
        assert snapshot.prompt_tokens == 2 * sum(map(len, PROMPTS))
        assert snapshot.blocks_cached > 9


async def test_with_others_that_share_it_running_beside(smollm2_path, expected):
    async with engine_of(smollm2_path, context_length=1024, max_step_tokens=64) as engine:
        first = submit(engine, "first", PROMPTS[0], max_tokens=200)
        events = await first.take()
        while len(events) < 3:
            events += await first.take()
        assert await ask_all(engine, PROMPTS, max_tokens=20) == expected
        snapshot = await engine.snapshot()
        assert snapshot.cached_tokens == 5 * 144
        assert "first" in {line.request_id for line in snapshot.sequences}, "it ran all the time"
        await collect(first)
        await nothing_left(engine)


async def test_after_preemption_in_a_pool_that_is_short(smollm2_path, expected, monkeypatch):
    from puma.actors import ledger

    yielded = []
    real = ledger.Yielded
    monkeypatch.setattr(ledger, "Yielded", lambda: yielded.append(1) or real())
    # The common beginning takes 9 blocks; five answers of 20 tokens need 13 more at least.
    pool = {"memory_pool_bytes": 17 * BLOCK_BYTES, "max_step_tokens": 32}
    async with engine_of(smollm2_path, **pool) as engine:
        await ask(engine, "warm", SYSTEM, max_tokens=1)
        for _ in range(2):
            assert await ask_all(engine, PROMPTS, max_tokens=20) == expected
        await nothing_left(engine)
    assert yielded
