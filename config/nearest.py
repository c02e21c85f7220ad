"""The nearest configurations that fit, for one that does not."""

from collections.abc import Callable, Iterator
from itertools import product

import msgspec

from puma.config.engine import LARGEST_POOL, MIB, EngineConfig
from puma.config.errors import ConfigError
from puma.config.memory import DEFAULT_TOKENS_PER_BLOCK, VALUE_BYTES
from puma.config.plan import ModelFacts, ModelPlan
from puma.config.sections import options_in

Planner = Callable[[EngineConfig], ModelPlan]
"""The plan of a configuration. Raises ConfigError when it does not fit."""

MOST = 3


def flags_of(config: EngineConfig) -> str:
    """The flags that give this configuration, where nothing else is set."""
    options = options_in(["engine"])
    changed = [option for option in options if getattr(config, option.key) != option.default]
    return " ".join(f"{option.flag} {option.spell(getattr(config, option.key))}" for option in changed)


def nearest(config: EngineConfig, facts: ModelFacts, planner: Planner) -> list[EngineConfig]:
    """Up to three configurations that fit, those with the fewest and the smallest changes first."""
    # What is available now is a little less in a moment.
    room = largest_pool(config, planner) * 9 // 10
    fitting: dict[EngineConfig, tuple[int, float]] = {}
    for changes in _changes(config, facts, room):
        try:
            candidate = msgspec.structs.replace(config, **changes)
            planner(candidate)
        except ConfigError:
            continue
        fitting[candidate] = _distance(config, candidate)
    return sorted(fitting, key=lambda candidate: fitting[candidate])[:MOST]


def largest_pool(config: EngineConfig, planner: Planner) -> int:
    """The largest pool for which there is memory; 0 when there is none."""
    try:
        planner(EngineConfig(memory_pool_bytes=LARGEST_POOL, kv_dtype=config.kv_dtype))
    except ConfigError as error:
        return next((problem.high or 0 for problem in error.problems if problem.key == "memory_pool_bytes"), 0)
    return LARGEST_POOL


def _changes(config: EngineConfig, facts: ModelFacts, room: int) -> Iterator[dict[str, object]]:
    """Sets of changes that may make it fit: each key as it is, or as one of the others would have it."""
    token = facts.geometry(VALUE_BYTES[config.kv_dtype]).token_bytes
    context = min(config.context_length or facts.context_length, facts.context_length)
    block = max(config.block_size_bytes or 0, (config.tokens_per_block or DEFAULT_TOKENS_PER_BLOCK) * token)
    whole = -(-context * token // block) * block
    pools = (config.memory_pool_bytes, block, -(-whole // MIB) * MIB, room // MIB * MIB)
    contexts = (config.context_length, None, context, min(config.memory_pool_bytes, room) // block * (block // token))
    shapes = (
        (config.block_size_bytes, config.tokens_per_block),
        (None, config.tokens_per_block),
        (config.block_size_bytes, None),
        (block, config.tokens_per_block),
        (None, None),
    )
    for pool, length, (size, tokens), dtype in product(pools, contexts, shapes, (config.kv_dtype, "f16")):
        yield {
            "memory_pool_bytes": pool,
            "context_length": length,
            "block_size_bytes": size,
            "tokens_per_block": tokens,
            "kv_dtype": dtype,
        }


def _distance(config: EngineConfig, candidate: EngineConfig) -> tuple[int, float]:
    """How many keys differ, and by how much."""
    count, amount = 0, 0.0
    for key in config.__struct_fields__:
        before, after = getattr(config, key), getattr(candidate, key)
        if before == after:
            continue
        count += 1
        comparable = isinstance(before, int) and isinstance(after, int)
        amount += abs(before - after) / max(before, after) if comparable else 1
    return count, amount
