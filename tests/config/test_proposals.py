"""Proposals fit, and lead as little as possible away from what was asked for."""

import argparse

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from puma.config.configuration import configure
from puma.config.engine import EngineConfig
from puma.config.errors import ConfigError
from puma.config.fit import check_fit
from puma.config.flags import add_flags, settings_from_flags
from puma.config.memory import VALUE_BYTES
from puma.config.plan import ModelFacts, ModelPlan
from puma.config.proposals import fill, flags_of, nearest

MIB, GIB = 2**20, 2**30
SMOLLM2 = ModelFacts(
    name="smollm2:135m",
    architecture="llama",
    source="/models/smollm2.gguf",
    remote=False,
    stored_bytes=97_000_000,
    weight_bytes=98_000_000,
    layers=30,
    kv_heads=3,
    head_dim=64,
    context_length=8192,
    vocabulary_size=49152,
)
SCRATCH = 20 * MIB


def planner(available):
    """The plan of a configuration where so much memory is available."""

    def plan(config):
        geometry = SMOLLM2.geometry(VALUE_BYTES[config.kv_dtype])
        others = SMOLLM2.weight_bytes + SCRATCH
        memory, context = check_fit(geometry, config, SMOLLM2.context_length, others, available)
        return ModelPlan(
            facts=SMOLLM2,
            memory=memory,
            kv_dtype=config.kv_dtype,
            memory_pool_bytes=config.memory_pool_bytes,
            context_length=context,
            scratch_bytes=SCRATCH,
            process_bytes=0,
            available_bytes=available,
            usable_bytes=available,
        )

    return plan


def room(available):
    return available - SMOLLM2.weight_bytes - SCRATCH


def near(config, available=4 * GIB):
    return nearest(config, SMOLLM2, planner(available))


def test_the_nearest_change_one_thing():
    config = EngineConfig(context_length=8192)
    assert [flags_of(found) for found in near(config)][:2] == [
        "--memory-pool-bytes 180MiB --context-length 8192",
        "--context-length 4544",
    ]
    assert (
        flags_of(near(EngineConfig(memory_pool_bytes=8 * GIB))[0])
        == f"--memory-pool-bytes {room(4 * GIB) * 9 // 10 // MIB}MiB"
    )
    assert flags_of(near(EngineConfig(block_size_bytes=512))[0]) == "--block-size-bytes 360KiB"


def test_no_configuration_fits_where_the_model_does_not():
    assert near(EngineConfig(), available=100_000_000) == []


CONFIGS = st.builds(
    EngineConfig,
    memory_pool_bytes=st.integers(1, 2**34),
    block_size_bytes=st.none() | st.just(1),
    tokens_per_block=st.none() | st.sampled_from([16, 64, 4096]),
    context_length=st.none() | st.integers(1, 10_000),
    kv_dtype=st.sampled_from(["f16", "f32"]),
)


@given(CONFIGS, st.integers(GIB // 2, 8 * GIB))
def test_whatever_is_proposed_fits(config, available):
    plan = planner(available)
    found = near(config, available)
    assert 1 <= len(found) <= 3
    assert len(set(found)) == len(found)
    for proposed in found:
        plan(proposed)
    try:
        plan(config)
    except ConfigError:
        assert config not in found
    else:
        assert found[0] == config


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


@given(CONFIGS)
def test_flags_give_the_configuration_again(config):
    parser = argparse.ArgumentParser()
    add_flags(parser, ["engine"])
    settings, problems = settings_from_flags(parser.parse_args(flags_of(config).split()))
    assert not problems
    assert configure(settings, environment={}).engine == config
