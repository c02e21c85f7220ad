"""What is said once the daemon serves."""

import sys
from contextlib import suppress

from puma.config.memory import MemoryPlan
from puma.config.sizes import format_size
from puma.daemon.log import log
from puma.daemon.version import version
from puma.models.model import LoadedModel


def announce(name: str, url: str, plan: MemoryPlan) -> None:
    """The one line on stdout: where it listens and with what memory."""
    memory = f"{plan.blocks:,} blocks × {plan.tokens_per_block} tokens = {plan.tokens:,} tokens"
    # Nobody need listen.
    with suppress(OSError):
        size = format_size(plan.pool_bytes)
        print(f"Puma {version()} serves {name} on {url} · KV cache {memory} ({size})", flush=True)
        sys.stdout.flush()


def describe(model: LoadedModel) -> None:
    """How it computes, in the log."""
    log.info("computing with %s instructions on %d threads", model.instructions, model.limits.threads)


def warn(model: LoadedModel, plan: MemoryPlan) -> None:
    """What a user should know about this model with this configuration."""
    if model.context_length > plan.tokens:
        log.warning(
            "one request may need %s tokens, the context; the KV cache holds %s: longer requests will be refused "
            "(memory_pool_bytes = %s holds one full context)",
            f"{model.context_length:,}",
            f"{plan.tokens:,}",
            f"{plan.blocks_for(model.context_length) * plan.block_bytes:,}",
        )
