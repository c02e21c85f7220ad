"""The buffer between the engine and one HTTP request."""

import pytest
import trio

from puma.actors.errors import BadRequest, EngineFailed
from puma.actors.messages import Done, Failed, Piece, Started
from puma.daemon.answers import Answers


async def test_pieces_pile_up_into_one():
    answers = Answers(2)
    for index, reply in enumerate(answers.replies):
        reply.put(Started(10 + index))
        reply.put(Piece("a"))
        reply.put(Piece("b"))
    await answers.admitted()
    answers.replies[1].put(Done("stop", 11, 2))
    assert await answers.take() == [(0, Piece("ab")), (1, Piece("ab")), (1, Done("stop", 11, 2))]
    assert not answers.finished
    answers.replies[0].put(Done("length", 10, 2))
    answers.replies[0].put(Piece("after the end"))
    assert await answers.take() == [(0, Done("length", 10, 2))]
    assert answers.finished
    assert [choice.completion_tokens for choice in answers.choices] == [2, 2]


async def test_refusal_is_raised_before_anything_is_answered():
    answers = Answers(2)
    answers.replies[0].put(Started(3))
    answers.replies[1].put(Failed(BadRequest("no")))
    with pytest.raises(BadRequest):
        await answers.admitted()


async def test_failure_comes_after_what_was_there_before_it():
    answers = Answers(1)
    answers.replies[0].put(Started(3))
    answers.replies[0].put(Piece("so far"))
    answers.replies[0].put(Failed(EngineFailed("step")))
    assert await answers.take() == [(0, Piece("so far"))]
    assert not answers.finished
    with pytest.raises(EngineFailed):
        await answers.take()


async def test_cancelled_take_loses_nothing(autojump_clock):
    answers = Answers(1)
    with trio.move_on_after(5) as scope:
        await answers.take()
    assert scope.cancelled_caught
    answers.replies[0].put(Piece("x"))
    assert await answers.take() == [(0, Piece("x"))]


async def test_collecting(autojump_clock):
    answers = Answers(2)

    async def produce():
        for text in "abc":
            for reply in answers.replies:
                await trio.sleep(1)
                reply.put(Piece(text))
        for reply in answers.replies:
            reply.put(Done("stop", 1, 3))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(produce)
        choices = await answers.collect()
    assert [choice.text for choice in choices] == ["abc", "abc"]
