"""Does a configuration fit a model and a machine: what can be told once the model's header has been read."""

from collections.abc import Iterator

from puma.config.engine import EngineConfig
from puma.config.errors import ConfigError, Problem
from puma.config.memory import KVGeometry, MemoryPlan, exactly, plan_memory
from puma.config.sizes import format_size


def check_fit(
    geometry: KVGeometry, config: EngineConfig, model_context: int, others: int, available: int
) -> tuple[MemoryPlan, int]:
    """The plan of the pool, and the context length to serve.

    `model_context` is the longest context of the model; `others` are the bytes that weights and scratch take,
    `available` those that there are for them and the pool. Raises ConfigError with all that does not fit.
    """
    problems: list[Problem] = []
    if config.context_length is not None and config.context_length > model_context:
        problems.append(_context(config, model_context, "the model's own context"))
    room = available - others
    try:
        plan = plan_memory(geometry, config, room if room > 0 else None)
    except ConfigError as error:
        raise ConfigError((*problems, *error.problems)) from None
    if config.memory_pool_bytes > room:
        problems.append(_too_large(config, plan, others, available))
    context = config.context_length or model_context
    if config.context_length is not None and plan.tokens < context <= model_context:
        pool = f"memory_pool_bytes = {plan.pool_for(context)} would hold {context:,} tokens"
        problems.append(_context(config, plan.tokens, f"the KV cache holds no more; {pool}"))
    if problems:
        raise ConfigError(tuple(problems))
    return plan, context


def advice(plan: MemoryPlan, config: EngineConfig, context: int, cores: int) -> Iterator[str]:
    """What a user should know about a configuration that works, but not as they may think."""
    if context > plan.tokens:
        yield (
            f"the context is {context:,} tokens, the KV cache holds {plan.tokens:,}: longer requests will be refused "
            f"(memory_pool_bytes = {plan.pool_for(context)} holds one full context)"
        )
    if config.max_batch_size > plan.blocks:
        yield (
            f"max_batch_size is {config.max_batch_size}, the KV cache has {plan.blocks} blocks, and every sequence "
            f"takes at least one: {plan.blocks} at most will be computed together"
        )
    if plan.padding_bytes:
        share = 100 * plan.padding_bytes / plan.block_bytes
        yield (
            f"{exactly(plan.padding_bytes)} of each block, {share:.0f} %, are padding and hold no token "
            f"(block_size_bytes = {plan.block_bytes - plan.padding_bytes} has none)"
        )
    if config.threads is not None and config.threads > cores:
        yield f"threads is {config.threads}, but this process may use {cores} cores: more threads than cores are slower"


def memory_refused(config: EngineConfig, available: int) -> ConfigError:
    """The error for a pool for which the system has refused memory that seemed to be there."""
    allowed = (
        f"the system gives this process less memory, of {format_size(available)} that seem available; "
        "a limit of its own may be lower (ulimit -v)"
    )
    return ConfigError((Problem(key="memory_pool_bytes", value=config.memory_pool_bytes, allowed=allowed),))


def _context(config: EngineConfig, high: int, reason: str) -> Problem:
    return Problem(key="context_length", value=config.context_length, low=1, high=high, allowed=reason)


def _too_large(config: EngineConfig, plan: MemoryPlan, others: int, available: int) -> Problem:
    room = available - others
    taken = f"{format_size(available)} of memory are available, and the model takes {format_size(others)}"
    if room >= plan.block_bytes:
        return Problem(
            key="memory_pool_bytes", value=config.memory_pool_bytes, low=plan.block_bytes, high=room, allowed=taken
        )
    allowed = f"there is no memory for a KV cache: {taken}; it needs a smaller model, or a larger machine"
    return Problem(key="memory_pool_bytes", value=config.memory_pool_bytes, allowed=allowed)
