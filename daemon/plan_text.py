"""A plan for people: the lines of `puma plan`, of the log at boot, and of `pumactl config`."""

from collections.abc import Iterator, Sequence
from itertools import chain

from puma.config.memory import exactly
from puma.config.plan import ModelFacts, ModelPlan
from puma.config.sizes import format_size

LABEL = 11
"""Columns of the name of a line."""

LENGTHS = (1024, 4096, 16384)
"""Tokens of the sequences that are counted, beside the full context."""

BAR = 60
"""Columns."""

SHARES = (("weights", "█"), ("KV cache", "▓"), ("scratch and process", "▒"), ("taken by others", "·"), ("free", " "))


def facts_lines(facts: ModelFacts) -> list[str]:
    """About the model alone."""
    shape = f"{facts.layers} layers, {facts.kv_heads} KV heads of {facts.head_dim}"
    origin = [_line("source", f"not fetched; its header was read from {facts.source}")] if facts.remote else []
    return [
        *origin,
        _line("model", f"{facts.name}: {facts.architecture}, {shape}, context {facts.context_length:,} tokens"),
        _line("weights", f"{format_size(facts.stored_bytes)} stored, {format_size(facts.weight_bytes)} loaded"),
    ]


def plan_lines(plan: ModelPlan, lengths: Sequence[int] = ()) -> list[str]:
    """Where the memory goes."""
    memory = plan.memory
    share = 100 * plan.total_bytes / plan.usable_bytes
    padding = "none"
    if memory.padding_bytes:
        part = 100 * memory.padding_bytes / memory.block_bytes
        padding = f"{memory.padding_bytes:,} bytes of each block ({part:.0f} %), not allocated"
    full = memory.blocks_for(plan.context_length) * memory.tokens_per_block * memory.token_bytes
    return [
        *facts_lines(plan.facts),
        _line("KV token", f"{exactly(memory.token_bytes)} in {plan.kv_dtype}"),
        _line("KV block", f"{exactly(memory.block_bytes)} for {memory.tokens_per_block} tokens"),
        _line("KV context", f"{exactly(full)} for {plan.context_length:,} tokens"),
        _line("pool", f"{exactly(plan.memory_pool_bytes)}: {memory.blocks:,} blocks, {memory.tokens:,} tokens"),
        _line("at once", ", ".join(_counts(plan, lengths))),
        _line("padding", padding),
        _line("unused", f"{exactly(plan.unused_bytes)} of the pool"),
        _line("scratch", format_size(plan.scratch_bytes)),
        _line("process", f"about {format_size(plan.process_bytes)}"),
        _line(
            "total",
            f"{format_size(plan.total_bytes)}, {share:.1f} % of the {format_size(plan.usable_bytes)} that this process "
            f"may use ({format_size(plan.available_bytes)} available now)",
        ),
    ]


def bar_lines(plan: ModelPlan) -> list[str]:
    """The memory as a bar, and what its parts mean."""
    taken = max(0, plan.usable_bytes - plan.available_bytes)
    parts = [plan.facts.weight_bytes, plan.memory.pool_bytes, plan.scratch_bytes + plan.process_bytes, taken]
    whole = max(plan.usable_bytes, sum(parts))
    ends = [round(BAR * sum(parts[: index + 1]) / whole) for index in range(len(parts))] + [BAR]
    starts = [0, *ends[:-1]]
    cells = (sign * (end - start) for (_, sign), start, end in zip(SHARES, starts, ends, strict=True))
    legend = "  ".join(f"{sign} {name}" for name, sign in SHARES[:-1])
    return [f"[{''.join(cells)}]", f" {legend}"]


def _counts(plan: ModelPlan, lengths: Sequence[int]) -> Iterator[str]:
    shown = sorted(
        {*(length for length in chain(lengths, LENGTHS) if length <= plan.context_length), plan.context_length}
    )
    for length in shown:
        count = plan.sequences_of(length)
        yield f"{count:,} {'sequence' if count == 1 else 'sequences'} of {length:,} tokens"


def _line(label: str, words: str) -> str:
    return f"{label:<{LABEL}}{words}"
