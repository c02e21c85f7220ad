"""The intake actor: text comes in and goes out here. It knows text, and neither slots nor blocks.

`accept` renders, tokenises and checks each request and admits it; `publish` turns new tokens into text and fills each
reply. They take turns on the event loop, so that a burst of requests holds up no running answer for long.
"""

import trio

from puma.actors.desk import Desk
from puma.actors.messages import Emitted, Submit, Withdraw
from puma.actors.prompt import size

LONG_TEXT = 8192
"""Characters beyond which tokenising moves to a thread, where it holds up nobody."""

TOKENISING_THREADS = 2


async def run_intake(
    requests: trio.MemoryReceiveChannel[Submit | Withdraw],
    emitted: trio.MemoryReceiveChannel[Emitted],
    desk: Desk,
) -> None:
    """Serve until both inboxes are closed."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(accept, requests, desk)
        nursery.start_soon(publish, emitted, desk)


async def accept(requests: trio.MemoryReceiveChannel[Submit | Withdraw], desk: Desk) -> None:
    """Take in requests one after the other; those with long texts side by side, in threads."""
    limiter = trio.CapacityLimiter(TOKENISING_THREADS)
    async with trio.open_nursery() as tokenising:
        async for message in requests:
            match message:
                case Withdraw():
                    desk.withdraw(message)
                case Submit() if not desk.expects(message):
                    pass
                case Submit() if size(message.prompt) > LONG_TEXT:
                    tokenising.start_soon(accept_long, message, desk, limiter)
                case Submit():
                    desk.admit(message, desk.encode(message))


async def accept_long(submit: Submit, desk: Desk, limiter: trio.CapacityLimiter) -> None:
    """Take in one request with a long text."""
    desk.admit(submit, await trio.to_thread.run_sync(desk.encode, submit, limiter=limiter))


async def publish(emitted: trio.MemoryReceiveChannel[Emitted], desk: Desk) -> None:
    """Hand on what each step yielded."""
    async for message in emitted:
        desk.publish(message)
