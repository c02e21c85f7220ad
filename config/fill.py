"""The configuration that uses a given amount of memory well."""

import msgspec

from puma.config.engine import MIB, EngineConfig
from puma.config.errors import ConfigError, Problem
from puma.config.memory import VALUE_BYTES, exactly
from puma.config.nearest import Planner, largest_pool
from puma.config.plan import ModelFacts
from puma.config.sizes import format_size

USUAL_SEQUENCE = 2048
"""Tokens of a sequence that is reckoned with."""

MOST_TOGETHER = 64
"""Sequences in a batch that are proposed; beyond that a CPU gains little."""

PROBE_TOKENS = 4096
"""A pool of so many shows what else is taken; one of any size in use would."""


def fill(config: EngineConfig, facts: ModelFacts, planner: Planner, budget: int) -> EngineConfig:
    """The configuration with which the process takes `budget` bytes. Raises ConfigError when it cannot.

    Besides the pool only what has its default is changed: the batch, so that its sequences fit at once, and the
    context, when the pool holds less than the model's.
    """
    pool = pool_within(config, facts, planner, budget)
    filled = msgspec.structs.replace(config, memory_pool_bytes=pool)
    tokens, context = planner(filled).memory.tokens, filled.context_length or facts.context_length
    if tokens < context:
        filled, context = msgspec.structs.replace(filled, context_length=tokens), tokens
    if config.max_batch_size == EngineConfig().max_batch_size:
        together = tokens // min(context, USUAL_SEQUENCE)
        batch = max(1, min(together, MOST_TOGETHER, config.max_step_tokens))
        filled = msgspec.structs.replace(filled, max_batch_size=batch)
    return filled


def pool_within(config: EngineConfig, facts: ModelFacts, planner: Planner, budget: int) -> int:
    """The memory_pool_bytes that are left of a budget for the whole process. Raises ConfigError."""
    token = facts.geometry(VALUE_BYTES[config.kv_dtype]).token_bytes
    least = max(PROBE_TOKENS, config.tokens_per_block or 0) * token
    probe = planner(
        msgspec.structs.replace(config, memory_pool_bytes=max(least, config.block_size_bytes or 0), context_length=None)
    )
    others, block = probe.total_bytes - probe.memory.pool_bytes, probe.memory.block_bytes
    # The scratch grows a little with the pool and the batch.
    pool = (budget - others - budget // 50) // MIB * MIB
    if pool < block:
        taken = f"weights, scratch and the process itself take {format_size(others)}, one block {exactly(block)}"
        raise ConfigError((Problem(key="--fit", value=format_size(budget), allowed=f"not enough: {taken}"),))
    room = largest_pool(config, planner)
    if pool > room:
        most = f"{format_size(room + others)} at most: the rest is taken by others at the moment"
        raise ConfigError((Problem(key="--fit", value=format_size(budget), allowed=most),))
    return pool
