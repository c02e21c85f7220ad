"""From a model's outline and a configuration to its memory plan, before any of it is allocated."""

import os

import msgspec

from puma.config.engine import EngineConfig
from puma.config.errors import ConfigError
from puma.config.fit import check_fit
from puma.config.machine import resident_bytes, usable_bytes
from puma.config.memory import VALUE_BYTES, plan_memory
from puma.config.plan import ModelFacts, ModelPlan, process_bytes
from puma.models.outline import Outline
from puma.models.sizes import Limits, machine_sizes


def plan_model(outline: Outline, facts: ModelFacts, config: EngineConfig, available: int) -> ModelPlan:
    """Where the memory goes. Raises ConfigError when the configuration does not fit the model, or `available` bytes."""
    geometry = facts.geometry(VALUE_BYTES[config.kv_dtype])
    process = process_bytes(facts.vocabulary_size)
    # That of the largest pool there can be, where more is asked for than there is.
    possible = msgspec.structs.replace(config, memory_pool_bytes=max(1, min(config.memory_pool_bytes, available)))
    scratch = scratch_bytes(outline, facts, possible)
    # This process will be the one that the model is loaded into: part of what it needs it has already.
    missing = max(0, process - resident_bytes())
    others = facts.weight_bytes + scratch + missing
    memory, context = check_fit(geometry, config, facts.context_length, others, available)
    return ModelPlan(
        facts=facts,
        memory=memory,
        kv_dtype=config.kv_dtype,
        memory_pool_bytes=config.memory_pool_bytes,
        context_length=context,
        scratch_bytes=scratch,
        process_bytes=process,
        available_bytes=available,
        usable_bytes=usable_bytes(),
    )


def scratch_bytes(outline: Outline, facts: ModelFacts, config: EngineConfig) -> int:
    """What a machine takes besides weights and pool; 0 while the pool cannot be divided into blocks."""
    try:
        memory = plan_memory(facts.geometry(VALUE_BYTES[config.kv_dtype]), config)
    except ConfigError:
        return 0
    limits = limits_of(config, min(config.context_length or facts.context_length, facts.context_length))
    return machine_sizes(outline.program.buffers, outline.shape, memory, limits).scratch_bytes


def limits_of(config: EngineConfig, context: int) -> Limits:
    """The largest step of a configuration."""
    return Limits(
        rows=config.max_step_tokens,
        samples=config.max_batch_size,
        threads=config.threads or available_cores(),
        context=context,
        sharing=config.prefix_caching,
    )


def available_cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
