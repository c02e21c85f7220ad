"""Who may enter, who waits, who is left."""

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from puma.actors.door import Door
from puma.actors.errors import EngineFailed, QueueFull, ShuttingDown
from puma.actors.messages import Failed, Sampling, Submit, Text
from puma.actors.reply import Reply


def request(name: str) -> Submit:
    return Submit(request_id=name, prompt=Text("hello"), sampling=Sampling(), max_tokens=1, reply=Reply())


def test_one_more_than_may_wait_is_told_to_try_later():
    door = Door(2)
    door.enter(request("a"))
    door.enter(request("b"))
    with pytest.raises(QueueFull, match="2 requests wait already"):
        door.enter(request("c"))


def test_a_request_that_started_or_left_waits_no_longer():
    door = Door(1)
    door.enter(request("a"))
    door.admit(door.guests["a"], 1)
    door.start(1)
    door.start(1)
    door.enter(request("b"))
    door.leave(door.guests["b"])
    door.leave(door.guests["a"])
    door.start(1)
    door.enter(request("c"))
    with pytest.raises(QueueFull):
        door.enter(request("d"))


def test_a_sequence_is_known_by_its_request_until_that_leaves():
    door = Door(1)
    door.enter(request("a"))
    door.admit(door.guests["a"], 7)
    assert door.request_of(7) == "a"
    door.leave(door.guests["a"])
    assert door.request_of(7) == ""


def test_two_requests_of_one_name_cannot_be_inside():
    door = Door(4)
    door.enter(request("a"))
    with pytest.raises(ValueError, match="request a is inside already"):
        door.enter(request("a"))


async def test_empty_waits_for_the_last_to_leave(nursery):
    door = Door(4)
    await door.empty()
    door.enter(request("a"))
    door.enter(request("b"))
    left = trio.Event()

    async def watch():
        await door.empty()
        left.set()

    nursery.start_soon(watch)
    door.leave(door.guests["a"])
    await wait_all_tasks_blocked()
    assert not left.is_set()
    door.leave(door.guests["b"])
    await left.wait()


async def test_when_the_engine_is_gone_everyone_inside_is_told_and_nobody_enters():
    door = Door(4)
    inside = request("a")
    door.enter(inside)
    error = EngineFailed("the engine stopped")
    door.clear(error)
    assert await inside.reply.take() == [Failed(error)]
    await door.empty()
    with pytest.raises(ShuttingDown):
        door.enter(request("b"))
