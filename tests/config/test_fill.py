"""A given amount of memory is used, and not exceeded."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from puma.config.engine import EngineConfig
from puma.config.errors import ConfigError
from puma.config.fill import fill
from tests.config.planning import GIB, MIB, SCRATCH, SMOLLM2, planner


@given(st.integers(200 * MIB, 64 * GIB), st.none() | st.integers(1, 8192))
def test_a_share_is_filled_but_not_exceeded(budget, context):
    plan = planner(64 * GIB)
    config = EngineConfig(context_length=context)
    assume(budget * 0.98 - SMOLLM2.weight_bytes - SCRATCH > max(MIB, (context or 0) * 23_040 + 368_640))
    filled = fill(config, SMOLLM2, plan, budget)
    total = plan(filled).total_bytes
    assert budget * 0.9 - 2 * MIB <= total <= budget
    assert filled.context_length in (context, plan(filled).memory.tokens)


def test_a_share_that_holds_no_block_is_refused():
    with pytest.raises(ConfigError, match="not enough: weights, scratch and the process itself take"):
        fill(EngineConfig(), SMOLLM2, planner(64 * GIB), 100 * MIB)


def test_a_share_that_is_not_available_is_refused():
    with pytest.raises(ConfigError, match=r"--fit = '8 GiB': 4 GiB at most: the rest is taken by others"):
        fill(EngineConfig(), SMOLLM2, planner(4 * GIB), 8 * GIB)


def test_what_was_set_is_kept():
    config = EngineConfig(block_size_bytes=90 * MIB, max_batch_size=5, kv_dtype="f32", max_step_tokens=64)
    filled = fill(config, SMOLLM2, planner(64 * GIB), 8 * GIB)
    assert (filled.block_size_bytes, filled.max_batch_size, filled.kv_dtype) == (90 * MIB, 5, "f32")
    assert 7 * GIB < filled.memory_pool_bytes < 8 * GIB
    with pytest.raises(ConfigError, match="block_size_bytes = 512: must be 368640 to"):
        fill(EngineConfig(block_size_bytes=512), SMOLLM2, planner(64 * GIB), 8 * GIB)
