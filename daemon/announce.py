"""What is said once the daemon serves."""

import sys
from contextlib import suppress

from puma.config.engine import EngineConfig
from puma.config.fit import advice
from puma.config.memory import MemoryPlan
from puma.config.sizes import format_size
from puma.daemon.log import log
from puma.daemon.plan_text import plan_lines
from puma.daemon.version import version
from puma.models.model import LoadedModel
from puma.models.plan import available_cores


def announce(name: str, url: str, plan: MemoryPlan) -> None:
    """The one line on stdout: where it listens and with what memory."""
    memory = f"{plan.blocks:,} blocks × {plan.tokens_per_block} tokens = {plan.tokens:,} tokens"
    # Nobody need listen.
    with suppress(OSError):
        size = format_size(plan.pool_bytes)
        print(f"Puma {version()} serves {name} on {url} · KV cache {memory} ({size})", flush=True)
        sys.stdout.flush()


def describe(model: LoadedModel) -> None:
    """Where its memory goes and how it computes, in the log."""
    for line in plan_lines(model.footprint):
        log.info("%s", line)
    log.info("computing with %s instructions on %d threads", model.instructions, model.limits.threads)


def warn(model: LoadedModel, config: EngineConfig) -> None:
    """What a user should know about this model with this configuration."""
    for line in advice(model.plan, config, model.context_length, available_cores()):
        log.warning("%s", line)
