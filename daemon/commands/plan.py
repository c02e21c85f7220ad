"""`puma plan`: where the memory of a model will go, before anything is started."""

import argparse
import re
import shlex
import sys
from collections.abc import Sequence

import msgspec

from puma.config.configuration import locating
from puma.config.engine import EngineConfig
from puma.config.errors import ConfigError, Problem
from puma.config.fill import fill
from puma.config.fit import advice
from puma.config.machine import available_bytes, usable_bytes
from puma.config.nearest import Planner, flags_of, nearest
from puma.config.plan import ModelFacts, ModelPlan
from puma.config.setting import COMMAND_LINE
from puma.config.sizes import parse_share, parse_size
from puma.daemon.commands.arguments import configuration, model_name
from puma.daemon.exits import Exit
from puma.daemon.plan_text import bar_lines, facts_lines, plan_lines


def run(arguments: argparse.Namespace, unread: Sequence[str]) -> int:
    problems: list[Problem] = []
    budget, length = _budget(arguments, problems), _length(arguments.length, problems)
    config = configuration(arguments, unread, ("engine", "log"), problems)
    from puma.models.plan import available_cores, plan_model
    from puma.models.store.outline import outline_of

    outline, source, remote = outline_of(arguments.model)
    facts = outline.facts(model_name(arguments.model), source, remote=remote)

    def planner(engine: EngineConfig) -> ModelPlan:
        return plan_model(outline, facts, engine, available_bytes())

    with locating(config):
        engine = config.engine if budget is None else fill(config.engine, facts, planner, budget)
    try:
        with locating(config):
            plan = planner(engine)
    except ConfigError as error:
        return _does_not_fit(arguments.model, config.engine, facts, error, planner)
    if arguments.json:
        print(msgspec.json.encode(plan_values(plan)).decode(), flush=True)
        return Exit.OK
    lengths = [length] if length else []
    print(*plan_lines(plan, lengths), "", *bar_lines(plan), sep="\n", flush=True)
    for words in advice(plan.memory, engine, plan.context_length, available_cores()):
        print(f"\nnote: {words}", flush=True)
    if budget is not None:
        print(f"\n{command_line(arguments.model, engine)}", flush=True)
    return Exit.OK


def plan_values(plan: ModelPlan) -> dict[str, object]:
    """Every number of a plan, for programs."""
    memory = plan.memory
    return msgspec.to_builtins(plan.facts) | {
        "kv_dtype": plan.kv_dtype,
        "token_bytes": memory.token_bytes,
        "block_bytes": memory.block_bytes,
        "tokens_per_block": memory.tokens_per_block,
        "padding_bytes": memory.padding_bytes,
        "blocks": memory.blocks,
        "tokens": memory.tokens,
        "memory_pool_bytes": plan.memory_pool_bytes,
        "pool_bytes": memory.pool_bytes,
        "unused_bytes": plan.unused_bytes,
        "served_context_length": plan.context_length,
        "context_bytes": memory.blocks_for(plan.context_length) * memory.tokens_per_block * memory.token_bytes,
        "full_contexts": plan.sequences_of(plan.context_length),
        "scratch_bytes": plan.scratch_bytes,
        "process_bytes": plan.process_bytes,
        "total_bytes": plan.total_bytes,
        "available_bytes": plan.available_bytes,
        "usable_bytes": plan.usable_bytes,
    }


def command_line(model: str, engine: EngineConfig) -> str:
    """The line that serves this model with this configuration."""
    return f"puma serve {shlex.quote(model)} {flags_of(engine)}".rstrip()


def _does_not_fit(model: str, config: EngineConfig, facts: ModelFacts, error: ConfigError, planner: Planner) -> int:
    """What is known without a pool, what is wrong, and the nearest configurations that fit, as lines to paste."""
    print(*facts_lines(facts), sep="\n", flush=True)
    for line in str(error).splitlines():
        print(f"puma: {line}", file=sys.stderr, flush=True)
    found = nearest(config, facts, planner)
    if not found:
        print("\nNo configuration fits this model into the memory that is available.", flush=True)
        return Exit.USAGE
    print("\nThese fit:", *(command_line(model, each) for each in found), sep="\n  ", flush=True)
    return Exit.USAGE


def _budget(arguments: argparse.Namespace, problems: list[Problem]) -> int | None:
    """Bytes, from "60%" of the memory or a size; None when the configuration is to be taken as it is."""
    text: str | None = arguments.fit
    if text is None:
        return None
    if arguments.memory_pool_bytes:
        allowed = "chooses memory_pool_bytes itself: leave out --memory-pool-bytes"
        problems.append(Problem(key="--fit", value=text, allowed=allowed, source=COMMAND_LINE))
    try:
        share = parse_share(text)
        return parse_size(text) if share is None else int(share * usable_bytes())
    except ValueError as error:
        problems.append(Problem(key="--fit", value=text, allowed=f"{error}, or a share", source=COMMAND_LINE))
        return None


def _length(text: str | None, problems: list[Problem]) -> int | None:
    if text is None:
        return None
    if re.fullmatch(r"[1-9][0-9]{0,8}", text, re.ASCII):
        return int(text)
    allowed = "must be a whole number of tokens, 1 and more"
    problems.append(Problem(key="--length", value=text, allowed=allowed, source=COMMAND_LINE))
    return None
