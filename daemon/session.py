"""Session: an engine without a server, for a program that is not asynchronous.

The engine's event loop runs in a thread; answers come back through a queue that the caller's thread waits on, so
that Ctrl-C reaches the caller as usual.
"""

import queue
import secrets
import threading
from collections.abc import Iterator
from functools import partial
from types import TracebackType
from typing import Any

import trio

from puma.actors.engine import Engine, run_engine
from puma.actors.errors import EngineFailed, RequestError
from puma.actors.messages import Chat, Done, Failed, FinishReason, Piece, ReplyEvent, Sampling, Submit
from puma.actors.reply import Reply
from puma.config.engine import EngineConfig
from puma.models.model import LoadedModel

Events = queue.SimpleQueue[ReplyEvent]


class _QueuedReply(Reply):
    """Hands events to another thread."""

    def __init__(self, events: Events) -> None:
        super().__init__()
        self._events_elsewhere = events

    def put(self, event: ReplyEvent) -> None:
        self._events_elsewhere.put(event)


class Session:
    """Use as a context manager; the model is closed with it."""

    def __init__(self, model: LoadedModel, config: EngineConfig) -> None:
        self.finish: FinishReason | None = None
        """How the last answer ended; None when it was broken off."""
        self._model = model
        self._run = partial(run_engine, model, config, model.plan)
        self._engine: Engine
        self._token: trio.lowlevel.TrioToken
        self._stop: trio.CancelScope
        self._started = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._loop, name="engine", daemon=True)

    def __enter__(self) -> "Session":
        self._thread.start()
        self._started.wait()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._soon(self._stop.cancel)
        self._thread.join()
        self._model.close()

    def answer(self, messages: list[dict[str, Any]], sampling: Sampling) -> Iterator[str]:
        """Pieces of the answer as they come. Raises RequestError. Whoever stops iterating breaks the answer off."""
        self.finish = None
        events: Events = queue.SimpleQueue()
        submit = Submit(
            request_id=secrets.token_hex(8),
            prompt=Chat(tuple(messages)),
            sampling=sampling,
            max_tokens=None,
            reply=_QueuedReply(events),
        )
        self._soon(self._submit, submit)
        try:
            while True:
                match events.get():
                    case Piece(text):
                        yield text
                    case Done(finish):
                        self.finish = finish
                        return
                    case Failed(error):
                        raise error
                    case _:
                        pass
        finally:
            self._soon(self._engine.withdraw, submit.request_id)

    def _submit(self, submit: Submit) -> None:
        try:
            self._engine.submit(submit)
        except RequestError as error:
            submit.reply.put(Failed(error))

    def _soon(self, function: Any, *arguments: Any) -> None:
        """Call it on the event loop. Raises EngineFailed when that has ended."""
        try:
            self._token.run_sync_soon(function, *arguments)
        except trio.RunFinishedError:
            raise EngineFailed(f"the engine has stopped: {self._failure!r}") from None

    def _loop(self) -> None:
        try:
            trio.run(self._main)
        except BaseException as error:
            self._failure = error
        finally:
            self._started.set()

    async def _main(self) -> None:
        self._token = trio.lowlevel.current_trio_token()
        async with trio.open_nursery() as nursery:
            self._stop = nursery.cancel_scope
            self._engine = await nursery.start(self._run)
            self._started.set()
