"""What model and machine allow: every bound that a message names works, and the next value beyond it does not."""

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from puma.config.engine import EngineConfig
from puma.config.errors import ConfigError
from puma.config.fit import advice, check_fit, memory_refused
from puma.config.memory import KVGeometry

SMOLLM2 = KVGeometry(layers=30, kv_heads=3, head_dim=64)
CONTEXT = 8192
GIB = 2**30


def fit(config, *, others=GIB, available=8 * GIB, context=CONTEXT, geometry=SMOLLM2):
    return check_fit(geometry, config, context, others, available)


def problems(config, **options):
    with pytest.raises(ConfigError) as caught:
        fit(config, **options)
    return caught.value.problems


def test_the_default():
    plan, context = fit(EngineConfig())
    assert (plan.tokens, context) == (4544, CONTEXT)


def test_a_pool_larger_than_the_memory_that_is_left():
    (problem,) = problems(EngineConfig(memory_pool_bytes=8 * GIB))
    assert (problem.key, problem.low, problem.high) == ("memory_pool_bytes", 368_640, 7 * GIB)
    fit(EngineConfig(memory_pool_bytes=7 * GIB))
    (problem,) = problems(EngineConfig(), others=8 * GIB)
    assert (problem.low, problem.high) == (None, None)
    assert "there is no memory for a KV cache" in str(problem)


def test_a_context_longer_than_the_models():
    (problem,) = problems(EngineConfig(context_length=8193))
    assert (problem.key, problem.low, problem.high) == ("context_length", 1, 8192)


def test_a_context_longer_than_the_pool():
    (problem,) = problems(EngineConfig(context_length=4545))
    assert (problem.key, problem.low, problem.high) == ("context_length", 1, 4544)
    assert "memory_pool_bytes = 105062400 would hold 4,545 tokens" in str(problem)
    fit(EngineConfig(context_length=4544))
    fit(EngineConfig(context_length=4545, memory_pool_bytes=105_062_400))


def test_all_that_does_not_fit_is_told_together():
    keys = [problem.key for problem in problems(EngineConfig(context_length=9000, memory_pool_bytes=8 * GIB))]
    assert keys == ["context_length", "memory_pool_bytes"]


GEOMETRIES = st.builds(KVGeometry, st.integers(1, 80), st.integers(1, 16), st.sampled_from([32, 64, 128]))
POOLS = st.integers(1, 16 * GIB)
BLOCKS = st.none() | st.integers(1, 2**26)
TOKENS = st.none() | st.integers(1, 256).map(lambda sixteens: 16 * sixteens)
CONTEXTS = st.none() | st.integers(1, 200_000)


@given(GEOMETRIES, POOLS, BLOCKS, TOKENS, CONTEXTS)
def test_every_bound_that_is_named_works(geometry, pool, block, tokens, context):
    assume((block or 0) <= pool)
    config = EngineConfig(
        memory_pool_bytes=pool, block_size_bytes=block, tokens_per_block=tokens, context_length=context
    )
    try:
        plan, _ = fit(config, geometry=geometry)
    except ConfigError as error:
        first, *others = error.problems
        for bound, beyond in ((first.low, -1), (first.high, 1)):
            if bound is not None and not others:
                assert not complains(config, geometry, first.key, bound)
                assert complains(config, geometry, first.key, bound + beyond)
        return
    assert plan.pool_bytes <= pool
    assert plan.block_bytes == plan.padding_bytes + plan.tokens_per_block * geometry.token_bytes
    assert plan.tokens_per_block % 16 == 0
    assert tokens is None or plan.tokens_per_block == tokens
    assert block is None or plan.block_bytes == block
    assert context is None or context <= min(plan.tokens, CONTEXT)


def complains(config, geometry, key, value):
    """Whether this key is refused when it has this value."""
    try:
        fit(msgspec.structs.replace(config, **{key: value}), geometry=geometry)
    except ConfigError as error:
        return any(problem.key == key for problem in error.problems)
    return False


def warnings(**values):
    config = EngineConfig(**values)
    plan, context = fit(config)
    return list(advice(plan, config, context, cores=2))


def test_what_works_but_not_as_one_may_think():
    assert warnings(memory_pool_bytes=GIB) == []
    (words,) = warnings()
    assert "the context is 8,192 tokens, the KV cache holds 4,544" in words
    assert "memory_pool_bytes = 188743680 holds one full context" in words
    (words,) = warnings(memory_pool_bytes=GIB, threads=3)
    assert "threads is 3, but this process may use 2 cores" in words
    words = warnings(memory_pool_bytes=10 * 368_640, max_batch_size=11)
    assert any("max_batch_size is 11, the KV cache has 10 blocks" in word for word in words)
    (words,) = warnings(memory_pool_bytes=GIB, block_size_bytes=400_000)
    assert "31,360 bytes (30.6 KiB) of each block, 8 %, are padding" in words
    assert "block_size_bytes = 368640 has none" in words


def test_memory_that_the_system_refuses():
    error = memory_refused(EngineConfig(), 8 * GIB)
    assert "memory_pool_bytes = 104857600: the system gives this process less memory, of 8 GiB" in str(error)
