"""Worker: the one thread that runs steps. Plans go in through a queue, results come back into the trio thread."""

import logging
import queue
import threading
import time
from collections.abc import Callable

import trio

from puma.actors.messages import StepResult
from puma.actors.slots import Prepared, sampled
from puma.models.model import LoadedModel
from puma.models.step import StepOutput

log = logging.getLogger(__name__)

Deliver = Callable[[StepResult], None]


class Worker:
    """Runs what it is given, in order. `deliver` is called in the trio thread, once per step."""

    def __init__(self, model: LoadedModel, deliver: Deliver) -> None:
        self._model, self._deliver = model, deliver
        self._waiting: queue.SimpleQueue[Prepared | None] = queue.SimpleQueue()
        self._trio = trio.lowlevel.current_trio_token()
        self._thread = threading.Thread(target=self._work, name="puma-worker", daemon=True)
        self._thread.start()

    def put(self, prepared: Prepared) -> None:
        self._waiting.put(prepared)

    async def close(self) -> None:
        """Wait for the step that is running, which cannot be cancelled; drop those that wait."""
        while not self._waiting.empty():
            self._waiting.get()
        self._waiting.put(None)
        with trio.CancelScope(shield=True):
            await trio.to_thread.run_sync(self._thread.join)

    def _work(self) -> None:
        while (prepared := self._waiting.get()) is not None:
            started = time.perf_counter()
            try:
                output = self._model.step(prepared.batch)
            except Exception as error:
                log.exception("step %d failed", prepared.step)
                output = f"the step failed: {type(error).__name__}"
            seconds = time.perf_counter() - started
            try:
                # Making messages of the output is left to the trio thread: the next step may begin meanwhile.
                self._trio.run_sync_soon(self._finish, prepared, output, seconds)
            except trio.RunFinishedError:
                return

    def _finish(self, prepared: Prepared, output: StepOutput | str, seconds: float) -> None:
        if isinstance(output, str):
            self._deliver(StepResult(prepared.step, (), seconds, output))
        else:
            self._deliver(StepResult(prepared.step, sampled(prepared, output), seconds))
