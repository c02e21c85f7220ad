"""The end of serving: running requests get their grace, and after it a clean error."""

import trio

from puma.actors.errors import ShuttingDown
from puma.daemon.lifecycle import Lifecycle
from puma.daemon.live import LiveRequests
from puma.daemon.log import log
from puma.daemon.service import Service

TELLING_SECONDS = 1.0
"""For the handlers of requests that were ended to tell their clients."""


async def drain(service: Service, life: Lifecycle, grace_seconds: float) -> None:
    """Refuse new requests and wait for the running ones; returns when none is left, or all were told to end."""
    service.refuse_new()
    if service.live:
        log.info("%d running requests have up to %g s to finish", len(service.live), grace_seconds)
    with trio.move_on_after(grace_seconds):
        async with trio.open_nursery() as waiting:
            waiting.start_soon(_hurry, life, waiting.cancel_scope)
            await service.live.none_left()
            waiting.cancel_scope.cancel()
    if service.live:
        log.warning("%d running requests are ended", len(service.live))
        service.cut(ShuttingDown("the daemon stops; the answer was ended before it was complete"))
        await tell(service.live)


async def tell(live: LiveRequests) -> None:
    """Wait a moment for the handlers of requests that have failed."""
    with trio.CancelScope(shield=True, deadline=trio.current_time() + TELLING_SECONDS):
        await live.none_left()


async def _hurry(life: Lifecycle, scope: trio.CancelScope) -> None:
    await life.now.wait()
    scope.cancel()
