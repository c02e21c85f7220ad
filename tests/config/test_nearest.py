"""Proposals fit, and lead as little as possible away from what was asked for."""

import argparse

from hypothesis import given
from hypothesis import strategies as st

from puma.config.configuration import configure
from puma.config.engine import EngineConfig
from puma.config.errors import ConfigError
from puma.config.flags import add_flags, settings_from_flags
from puma.config.nearest import flags_of, nearest
from tests.config.planning import GIB, MIB, SMOLLM2, planner, room


def near(config, available=4 * GIB):
    return nearest(config, SMOLLM2, planner(available))


def test_the_nearest_change_one_thing():
    config = EngineConfig(context_length=8192)
    assert [flags_of(found) for found in near(config)][:2] == [
        "--memory-pool-bytes 180MiB --context-length 8192",
        "--context-length 4544",
    ]
    largest = f"--memory-pool-bytes {room(4 * GIB) * 9 // 10 // MIB}MiB"
    assert flags_of(near(EngineConfig(memory_pool_bytes=8 * GIB))[0]) == largest
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


@given(CONFIGS)
def test_flags_give_the_configuration_again(config):
    parser = argparse.ArgumentParser()
    add_flags(parser, ["engine"])
    settings, problems = settings_from_flags(parser.parse_args(flags_of(config).split()))
    assert not problems
    assert configure(settings, environment={}).engine == config
