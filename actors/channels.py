"""The channels between the actors, each with the bound that its senders keep to by construction."""

from typing import TypeVar

import msgspec
import trio

from puma.actors.messages import Emitted, Reserve, StepPlan, Submit, ToScheduler, Withdraw
from puma.config.engine import EngineConfig

T = TypeVar("T")

LOOK_AHEAD = 2
"""Plans in flight at most: one that runs, and one that waits at the worker."""

SLACK = 16
"""Room for what is bounded by a small number: a grant, step results, a question."""


class Channels(msgspec.Struct, frozen=True):
    """(send, receive) of each inbox."""

    requests: tuple[trio.MemorySendChannel[Submit | Withdraw], trio.MemoryReceiveChannel[Submit | Withdraw]]
    scheduler: tuple[trio.MemorySendChannel[ToScheduler], trio.MemoryReceiveChannel[ToScheduler]]
    reserves: tuple[trio.MemorySendChannel[Reserve], trio.MemoryReceiveChannel[Reserve]]
    plans: tuple[trio.MemorySendChannel[StepPlan], trio.MemoryReceiveChannel[StepPlan]]
    emitted: tuple[trio.MemorySendChannel[Emitted], trio.MemoryReceiveChannel[Emitted]]


def open_channels(config: EngineConfig) -> Channels:
    """All channels of one engine."""
    # The door lets in no more than may wait and may run. A request has a Submit and a Withdraw, or an Admit and a
    # Cancel, on the way at most, and may be followed by another one before those are read.
    inside = config.max_queued_requests + config.max_batch_size
    return Channels(
        requests=trio.open_memory_channel[Submit | Withdraw](2 * inside),
        scheduler=trio.open_memory_channel[ToScheduler](4 * inside + SLACK),
        reserves=trio.open_memory_channel[Reserve](1),
        plans=trio.open_memory_channel[StepPlan](LOOK_AHEAD),
        emitted=trio.open_memory_channel[Emitted](SLACK),
    )


def post(channel: trio.MemorySendChannel[T], message: T, to: str) -> None:
    """Send without waiting. Raises RuntimeError when the inbox is full, which its bound rules out."""
    try:
        channel.send_nowait(message)
    except trio.WouldBlock:
        bound = channel.statistics().max_buffer_size
        raise RuntimeError(f"the inbox of {to} is full at {bound} messages; its bound is wrong") from None


def drain(channel: trio.MemoryReceiveChannel[T]) -> list[T]:
    """All messages that are there."""
    messages: list[T] = []
    try:
        while True:
            messages.append(channel.receive_nowait())
    except (trio.WouldBlock, trio.EndOfChannel):
        return messages
