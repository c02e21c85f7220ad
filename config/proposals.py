"""Configurations that fit: the nearest ones to one that does not, and one that uses a share of the memory well."""

from collections.abc import Callable, Iterator
from itertools import product

import msgspec

from puma.config.engine import LARGEST_POOL, MIB, EngineConfig
from puma.config.errors import ConfigError, Problem
from puma.config.memory import VALUE_BYTES, exactly
from puma.config.plan import ModelFacts, ModelPlan
from puma.config.sections import options_in
from puma.config.sizes import format_size

Planner = Callable[[EngineConfig], ModelPlan]
"""The plan of a configuration. Raises ConfigError when it does not fit."""

NEAREST = 3

USUAL_SEQUENCE = 2048
"""Tokens of a sequence that a proposal reckons with."""

MOST_TOGETHER = 64
"""Sequences in a batch that a proposal goes up to; beyond that a CPU gains little."""


def flags_of(config: EngineConfig) -> str:
    """The flags that give this configuration, whatever else is set."""
    options = options_in(["engine"])
    changed = [option for option in options if getattr(config, option.key) != option.default]
    return " ".join(f"{option.flag} {option.spell(getattr(config, option.key))}" for option in changed)


def nearest(config: EngineConfig, facts: ModelFacts, planner: Planner) -> list[EngineConfig]:
    """Up to three configurations that fit, those with the fewest and the smallest changes first."""
    # What is available now is a little less in a moment.
    room = largest_pool(config, planner) * 9 // 10
    fitting: list[tuple[tuple[int, float], EngineConfig]] = []
    for changes in _changes(config, facts, room):
        try:
            candidate = msgspec.structs.replace(config, **changes)
            planner(candidate)
        except ConfigError:
            continue
        if all(candidate != other for _, other in fitting):
            fitting.append((_distance(config, candidate), candidate))
    fitting.sort(key=lambda pair: pair[0])
    return [candidate for _, candidate in fitting[:NEAREST]]


def largest_pool(config: EngineConfig, planner: Planner) -> int:
    """The largest pool for which there is memory, or nearly so; 0 when there is none."""
    try:
        planner(EngineConfig(memory_pool_bytes=LARGEST_POOL, kv_dtype=config.kv_dtype))
    except ConfigError as error:
        return next((problem.high or 0 for problem in error.problems if problem.key == "memory_pool_bytes"), 0)
    return LARGEST_POOL


def fill(config: EngineConfig, facts: ModelFacts, planner: Planner, budget: int) -> EngineConfig:
    """The configuration with which the process takes `budget` bytes. Raises ConfigError when no block fits.

    Of the rest of the configuration only what has its default is changed: the batch, so that its sequences fit at
    once, and the context, when the pool holds less than the model's.
    """
    token = facts.geometry(VALUE_BYTES[config.kv_dtype]).token_bytes
    probe = planner(msgspec.structs.replace(config, memory_pool_bytes=token * 4096, context_length=None))
    others = probe.total_bytes - probe.memory.pool_bytes
    # The scratch grows a little with the pool and the batch.
    pool = (budget - others - budget // 50) // MIB * MIB
    if pool < probe.memory.block_bytes:
        allowed = (
            f"not enough: weights, scratch and the process itself take {format_size(others)}, "
            f"and one block {exactly(probe.memory.block_bytes)}"
        )
        raise ConfigError((Problem(key="--fit", value=format_size(budget), allowed=allowed),))
    pool = min(pool, LARGEST_POOL)
    plan = planner(msgspec.structs.replace(config, memory_pool_bytes=pool, context_length=None))
    tokens, changes = plan.memory.tokens, dict[str, int]()
    if config.context_length is None and tokens < facts.context_length:
        changes["context_length"] = tokens
    context = changes.get("context_length", config.context_length or facts.context_length)
    if config.max_batch_size == EngineConfig().max_batch_size:
        together = tokens // min(context, USUAL_SEQUENCE)
        changes["max_batch_size"] = max(1, min(together, MOST_TOGETHER, config.max_step_tokens))
    return msgspec.structs.replace(config, memory_pool_bytes=pool, **changes)


def _changes(config: EngineConfig, facts: ModelFacts, room: int) -> Iterator[dict[str, object]]:
    """Sets of changes that may make it fit; each key as it is, or as it would have to be for one of the others."""
    token = facts.geometry(VALUE_BYTES[config.kv_dtype]).token_bytes
    context = min(config.context_length or facts.context_length, facts.context_length)
    block = max(config.block_size_bytes or 0, (config.tokens_per_block or 16) * token)
    whole = -(-context * token // block) * block
    pools = {config.memory_pool_bytes, block, -(-whole // MIB) * MIB, room // MIB * MIB}
    contexts = {config.context_length, None, context, min(config.memory_pool_bytes, room) // block * (block // token)}
    shapes = {
        (config.block_size_bytes, config.tokens_per_block),
        (None, config.tokens_per_block),
        (config.block_size_bytes, None),
        (None, None),
        (block, config.tokens_per_block),
    }
    for pool, length, (size, tokens), dtype in product(pools, contexts, shapes, {config.kv_dtype, "f16"}):
        if pool > 0 and length != 0:
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
        if isinstance(before, int) and isinstance(after, int):
            amount += abs(before - after) / max(before, after)
        else:
            amount += 1
    return count, amount
