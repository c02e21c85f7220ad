"""EngineConfig's ranges, and the rules between its fields."""

import pytest

from puma.config.engine import EngineConfig
from puma.config.errors import ConfigError


def keys(**values):
    with pytest.raises(ConfigError) as caught:
        EngineConfig(**values)
    return [problem.key for problem in caught.value.problems]


def test_defaults_are_valid():
    config = EngineConfig()
    assert (config.memory_pool_bytes, config.tokens_per_block, config.max_batch_size) == (100 * 2**20, 16, 32)
    assert (config.default_max_tokens, config.context_length, config.threads) == (100, None, None)


@pytest.mark.parametrize("key", EngineConfig.__struct_fields__)
@pytest.mark.parametrize("value", [0, -1, 2**60, 1.5, "1", True])
def test_values_out_of_range(key, value):
    assert keys(**{key: value}) == [key]


def test_all_problems_together():
    assert keys(memory_pool_bytes=0, max_batch_size=0, threads=0) == ["memory_pool_bytes", "max_batch_size", "threads"]
    assert keys(threads=0, tokens_per_block=17, max_batch_size=600) == [
        "threads",
        "tokens_per_block",
        "max_step_tokens",
    ]


def test_rules_between_fields():
    assert keys(tokens_per_block=17) == ["tokens_per_block"]
    assert keys(max_batch_size=64, max_step_tokens=63) == ["max_step_tokens"]
    EngineConfig(max_batch_size=64, max_step_tokens=64)
