"""The four actors on a real model, and what a client does with them."""

from contextlib import asynccontextmanager

import msgspec
import trio

from puma.actors.engine import run_engine
from puma.actors.messages import Done, Failed, Piece, Sampling, Submit, Tokens
from puma.actors.reply import Reply
from puma.config.engine import EngineConfig
from puma.models.model import load_model


@asynccontextmanager
async def engine_of(path, **options):
    """A running engine on the model in a file."""
    config = EngineConfig(threads=2, **options)
    model = load_model(path, config)
    try:
        async with trio.open_nursery() as nursery:
            yield await nursery.start(run_engine, model, config, model.plan)
            nursery.cancel_scope.cancel()
    finally:
        model.close()


def submit(engine, name, ids, max_tokens=40, **sampling):
    options = {"temperature": 0.8, "seed": len(ids), "logprobs": 3} | sampling
    reply = Reply()
    engine.submit(
        Submit(
            request_id=name,
            prompt=Tokens(tuple(ids)),
            sampling=Sampling(**options),
            max_tokens=max_tokens,
            reply=reply,
        )
    )
    return reply


async def collect(reply):
    """All events of an answer."""
    events = []
    while not events or not isinstance(events[-1], Done | Failed):
        events += await reply.take()
    return events


def answer(events):
    """Everything the client sees, to be compared exactly; but for how much was found cached."""
    pieces = [event for event in events if isinstance(event, Piece)]
    last = events[-1]
    if isinstance(last, Done):
        last = msgspec.structs.replace(last, cached_tokens=0)
    return "".join(piece.text for piece in pieces), [one for piece in pieces for one in piece.logprobs], last


async def ask(engine, name, ids, **options):
    return answer(await collect(submit(engine, name, ids, **options)))


async def ask_all(engine, prompts, **options):
    answers = [None] * len(prompts)

    async def one(index):
        answers[index] = await ask(engine, f"all-{index}", prompts[index], **options)

    async with trio.open_nursery() as nursery:
        for index in range(len(prompts)):
            nursery.start_soon(one, index)
    return answers


async def nothing_left(engine):
    """Blocks come back once the last step that was planned ahead has ended."""
    with trio.fail_after(5):
        await engine.drained()
        for _ in range(500):
            snapshot = await engine.snapshot()
            if not snapshot.blocks_used:
                break
            await trio.sleep(0.01)
    assert (snapshot.blocks_used, snapshot.sequences) == (0, ())
