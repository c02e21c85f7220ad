"""The KV-cache actor: one Reserve in, one Grant out, over the block pool. It knows blocks, and what they hold."""

import trio

from puma.actors.block_pool import BlockPool
from puma.actors.channels import post
from puma.actors.messages import Reserve, ToScheduler


async def run_kv_cache(
    inbox: trio.MemoryReceiveChannel[Reserve],
    scheduler: trio.MemorySendChannel[ToScheduler],
    pool: BlockPool,
) -> None:
    """Serve for ever. Raises PoolError when the scheduler asks for what it cannot have."""
    async for reserve in inbox:
        post(scheduler, pool.serve(reserve), "the scheduler")
