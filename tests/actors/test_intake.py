"""The intake actor: texts in threads, requests that are withdrawn while they are there."""

import threading

import msgspec
import pytest
import trio

from puma.actors.channels import open_channels
from puma.actors.desk import Desk
from puma.actors.door import Door
from puma.actors.intake import LONG_TEXT, run_intake
from puma.actors.messages import Admit, Emitted, NewToken, Piece, Sampling, Started, Submit, Text, Withdraw
from puma.actors.reply import Reply
from puma.config.engine import EngineConfig
from puma.config.memory import MemoryPlan
from tests.actors.tiny_text import BOUNDS, TEXT

ROOMY = msgspec.structs.replace(BOUNDS, context_length=4 * LONG_TEXT, memory=MemoryPlan(10, 160, 16, 9999))


class SlowText:
    """The real text, behind a gate for long prompts."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.threads: list[threading.Thread] = []
        self.tokenizer = self

    def encode_prompt(self, text: str) -> list[int]:
        self.threads.append(threading.current_thread())
        if len(text) > LONG_TEXT:
            self.gate.wait(10)
        return TEXT.tokenizer.encode_prompt(text)

    def __getattr__(self, name):
        return getattr(TEXT.tokenizer, name)


class Intake:
    def __init__(self) -> None:
        self.channels = open_channels(EngineConfig())
        self.finished = trio.Event()
        self.text = SlowText()
        self.door = Door(100)
        self.desk = Desk(self.text, ROOMY, self.door, self.channels.scheduler[0])

    def submit(self, name: str, text: str) -> Submit:
        message = Submit(request_id=name, prompt=Text(text), sampling=Sampling(), max_tokens=1, reply=Reply())
        self.door.enter(message)
        self.channels.requests[0].send_nowait(message)
        return message

    def withdraw(self, name: str) -> None:
        self.channels.requests[0].send_nowait(Withdraw(name))

    async def run(self) -> None:
        await run_intake(self.channels.requests[1], self.channels.emitted[1], self.desk)
        self.finished.set()

    async def finish(self) -> None:
        """Open the gate, close the door, and wait until all that is in threads has come back."""
        self.text.gate.set()
        self.channels.requests[0].close()
        self.channels.emitted[0].close()
        await self.finished.wait()

    async def admitted(self) -> Admit:
        return await self.channels.scheduler[1].receive()

    def nobody_is_admitted(self) -> bool:
        return self.channels.scheduler[1].statistics().current_buffer_used == 0


@pytest.fixture
async def intake(nursery):
    intake = Intake()
    nursery.start_soon(intake.run)
    yield intake
    intake.text.gate.set()
    nursery.cancel_scope.cancel()


async def test_a_long_text_is_tokenised_in_a_thread_and_holds_up_nobody(intake):
    intake.submit("long", "a" * (LONG_TEXT + 1))
    intake.submit("short", "hello")
    assert len((await intake.admitted()).token_ids) == 1
    intake.text.gate.set()
    assert len((await intake.admitted()).token_ids) == LONG_TEXT + 1
    main = threading.main_thread()
    assert sorted(thread is main for thread in intake.text.threads) == [False, True]


async def test_a_request_that_is_withdrawn_while_it_is_tokenised_is_not_admitted(intake):
    submit = intake.submit("long", "a" * (LONG_TEXT + 1))
    intake.withdraw("long")
    await intake.door.empty()
    await intake.finish()
    assert len(intake.text.threads) == 1
    assert intake.nobody_is_admitted()
    assert submit.reply._events == []


async def test_the_name_of_a_withdrawn_request_may_be_used_again(intake):
    intake.submit("a", "a" * (LONG_TEXT + 1))
    intake.withdraw("a")
    await intake.door.empty()
    second = intake.submit("a", "hello")
    assert len((await intake.admitted()).token_ids) == 1
    await intake.finish()
    assert second.reply._events == [Started(1)]
    assert intake.nobody_is_admitted()


async def test_a_request_that_is_withdrawn_before_it_is_looked_at_costs_nothing(intake):
    intake.submit("a", "hello")
    intake.door.guests["a"].withdrawn = True
    intake.withdraw("a")
    await intake.door.empty()
    assert intake.text.threads == []
    assert intake.nobody_is_admitted()


async def test_tokens_become_text_in_the_reply(intake):
    submit = intake.submit("a", "hello")
    admit = await intake.admitted()
    assert await submit.reply.take() == [Started(1)]
    intake.channels.emitted[0].send_nowait(Emitted((NewToken(admit.sequence, ord("y"), 0.0, ()),), ()))
    assert await submit.reply.take() == [Piece("y")]


async def test_a_burst_of_requests_does_not_hold_up_running_answers(intake):
    running = intake.submit("running", "hello")
    admit = await intake.admitted()
    assert await running.reply.take() == [Started(1)]
    for number in range(50):
        intake.submit(str(number), "hello")
    intake.channels.emitted[0].send_nowait(Emitted((NewToken(admit.sequence, ord("y"), 0.0, ()),), ()))
    assert await running.reply.take() == [Piece("y")]
    assert len(intake.text.threads) < 10
    with trio.fail_after(5):
        for _ in range(50):
            await intake.admitted()
