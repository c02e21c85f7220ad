"""EngineConfig's ranges, and the rules between its fields."""

import math

import msgspec
import pytest

from puma.config.engine import EngineConfig
from puma.config.errors import ConfigError
from puma.config.options import options_of

OPTIONS = {option.key: option for option in options_of(EngineConfig, "engine")}


def keys(**values):
    with pytest.raises(ConfigError) as caught:
        EngineConfig(**values)
    return [problem.key for problem in caught.value.problems]


def test_defaults_are_valid():
    config = EngineConfig()
    assert (config.memory_pool_bytes, config.tokens_per_block, config.max_batch_size) == (100 * 2**20, None, 32)
    assert (config.default_max_tokens, config.context_length, config.threads) == (100, None, None)
    assert config.kv_dtype == "f16"


@pytest.mark.parametrize("key", EngineConfig.__struct_fields__)
@pytest.mark.parametrize("value", [0, -1, 2**60, 1.5, math.nan, "1", [], b"16"])
def test_values_that_nothing_takes(key, value):
    assert keys(**{key: value}) == [key]


@pytest.mark.parametrize("key", [key for key, option in OPTIONS.items() if option.kind in ("count", "size")])
def test_true_is_no_number(key):
    assert keys(**{key: True}) == [key]


@pytest.mark.parametrize("key", [key for key, option in OPTIONS.items() if option.kind in ("count", "size")])
def test_both_ends_of_a_range(key):
    option = OPTIONS[key]
    for value in (option.low - 1, option.high + 1):
        assert keys(**{key: value}) == [key]
    others = {"max_batch_size": 1} if key == "max_step_tokens" else {}
    others |= {"max_step_tokens": 2048} if key == "max_batch_size" else {}
    others |= {"memory_pool_bytes": 2**50} if key == "block_size_bytes" else {}
    for value in (option.low, option.high):
        EngineConfig(**others, **{key: value})


def test_all_problems_together():
    assert keys(memory_pool_bytes=0, max_batch_size=0, threads=0) == ["memory_pool_bytes", "max_batch_size", "threads"]
    assert keys(threads=0, tokens_per_block=17, max_batch_size=600) == [
        "tokens_per_block",
        "threads",
        "max_step_tokens",
    ]


def test_rules_between_fields():
    assert keys(max_batch_size=64, max_step_tokens=63) == ["max_step_tokens"]
    EngineConfig(max_batch_size=64, max_step_tokens=64)
    assert keys(memory_pool_bytes=1000, block_size_bytes=1001) == ["block_size_bytes"]
    EngineConfig(memory_pool_bytes=1000, block_size_bytes=1000)


def test_words():
    assert EngineConfig(default_max_tokens="context").default_max_tokens == "context"
    assert keys(default_max_tokens="auto") == ["default_max_tokens"]


def test_no_way_round_the_checks():
    with pytest.raises(ConfigError):
        msgspec.structs.replace(EngineConfig(), threads=0)
    with pytest.raises(ValueError, match="threads"):
        msgspec.convert({"threads": 0}, EngineConfig)
    with pytest.raises(ValueError, match="unknown field"):
        msgspec.convert({"thread": 1}, EngineConfig)
    with pytest.raises(AttributeError):
        EngineConfig().threads = 0
