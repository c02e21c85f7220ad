"""The KV-cache actor over its two channels."""

import numpy as np
import pytest
import trio

from puma.actors.block_pool import BlockPool, PoolError
from puma.actors.kv_cache import run_kv_cache
from puma.actors.messages import Appended, Filled, Grant, Grow, Open, Reserve, Shared

ROOM = 10**6


def tokens(token: int, count: int):
    return np.full(count, token, np.int32)


async def test_each_reserve_is_answered_by_one_grant(nursery):
    reserves, inbox = trio.open_memory_channel[Reserve](1)
    scheduler, grants = trio.open_memory_channel(1)
    nursery.start_soon(run_kv_cache, inbox, scheduler, BlockPool(4, 16))
    reserves.send_nowait(Reserve(0, room=ROOM, open=(Open(7, 20, tokens(7, 19)), Open(8, 40, tokens(8, 39)))))
    assert await grants.receive() == Grant(0, (Appended(7, (0, 1)),), (8,), 2)
    reserves.send_nowait(Reserve(1, grow=(Grow(7, 33),)))
    assert await grants.receive() == Grant(1, (Appended(7, (2,)),), (), 1)
    reserves.send_nowait(Reserve(2, release=(7,), room=ROOM, open=(Open(8, 64, tokens(8, 63)),)))
    assert await grants.receive() == Grant(2, (Appended(8, (0, 1, 2, 3)),), (), 0)
    nursery.cancel_scope.cancel()


async def test_a_grant_says_what_was_found_cached_and_what_is_shared(nursery):
    reserves, inbox = trio.open_memory_channel[Reserve](1)
    scheduler, grants = trio.open_memory_channel(1)
    nursery.start_soon(run_kv_cache, inbox, scheduler, BlockPool(8, 16))
    reserves.send_nowait(Reserve(0, room=ROOM, open=(Open(7, 41, tokens(7, 40)),)))
    await grants.receive()
    filled = (Filled(7, 0, tokens(7, 32)),)
    reserves.send_nowait(Reserve(1, room=ROOM, open=(Open(8, 34, tokens(7, 33)),), filled=filled))
    shared = (Shared(frozenset({7, 8}), 2),)
    assert await grants.receive() == Grant(1, (Appended(8, (0, 1, 5), 32),), (), 4, 0, shared)
    reserves.send_nowait(Reserve(2, release=(7, 8)))
    assert await grants.receive() == Grant(2, (), (), 8, 2)
    nursery.cancel_scope.cancel()


async def test_a_request_that_cannot_be_ends_the_actor():
    reserves, inbox = trio.open_memory_channel[Reserve](1)
    scheduler, _ = trio.open_memory_channel(1)
    reserves.send_nowait(Reserve(0, release=(7,)))
    with pytest.raises(PoolError, match="sequence 7 has no table"):
        await run_kv_cache(inbox, scheduler, BlockPool(4, 16))


async def test_a_scheduler_that_does_not_read_its_grants_is_noticed():
    reserves, inbox = trio.open_memory_channel[Reserve](2)
    scheduler, _ = trio.open_memory_channel(1)
    reserves.send_nowait(Reserve(0))
    reserves.send_nowait(Reserve(1))
    with pytest.raises(RuntimeError, match="the inbox of the scheduler is full at 1 messages"):
        await run_kv_cache(inbox, scheduler, BlockPool(4, 16))
