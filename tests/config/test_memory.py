"""The pool, to the byte."""

from typing import get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from puma.config.engine import EngineConfig, KVDtype
from puma.config.errors import ConfigError
from puma.config.memory import VALUE_BYTES, KVGeometry, plan_memory

SMOLLM2 = KVGeometry(layers=30, kv_heads=3, head_dim=64)


def test_smollm2_by_hand():
    plan = plan_memory(SMOLLM2, EngineConfig())
    assert plan.token_bytes == 30 * 2 * 3 * 64 * 2 == 23_040
    assert plan.block_bytes == 16 * 23_040 == 368_640
    assert plan.blocks == 104_857_600 // 368_640 == 284
    assert plan.tokens == 4_544
    assert plan.pool_bytes == 284 * 368_640


def test_float32_takes_twice_the_memory():
    plan = plan_memory(msgspec.structs.replace(SMOLLM2, value_bytes=VALUE_BYTES["f32"]), EngineConfig())
    assert plan.token_bytes == 30 * 2 * 3 * 64 * 4 == 46_080
    assert plan.blocks == 104_857_600 // (16 * 46_080) == 142


def test_every_dtype_has_a_size():
    assert set(VALUE_BYTES) == set(get_args(KVDtype))


@given(
    st.integers(1, 2**40),
    st.integers(1, 32),
    st.integers(1, 64),
    st.integers(1, 16),
    st.integers(1, 256),
    st.sampled_from(sorted(VALUE_BYTES.values())),
)
def test_pool_is_used_as_far_as_whole_blocks_go(pool, sixteens, layers, heads, width, value_bytes):
    geometry = KVGeometry(layers, heads, width, value_bytes)
    config = EngineConfig(memory_pool_bytes=pool, tokens_per_block=16 * sixteens)
    block = geometry.token_bytes * config.tokens_per_block
    if pool < block:
        with pytest.raises(ConfigError, match=f"at least {block}"):
            plan_memory(geometry, config)
        return
    plan = plan_memory(geometry, config)
    assert plan.pool_bytes <= pool < plan.pool_bytes + plan.block_bytes


@given(st.integers(0, 10_000))
def test_blocks_for_tokens(tokens):
    plan = plan_memory(SMOLLM2, EngineConfig())
    blocks = plan.blocks_for(tokens)
    assert (blocks - 1) * 16 < tokens <= blocks * 16 or blocks == tokens == 0
