"""The engine: four actors in one nursery, the channels between them, and the handle that the daemon holds."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, cast

import msgspec
import trio

from puma.actors.admission import Bounds
from puma.actors.answer import Answer
from puma.actors.block_pool import BlockPool
from puma.actors.channels import Channels, open_channels, post
from puma.actors.desk import Desk
from puma.actors.door import Door
from puma.actors.errors import EngineFailed, RequestError, ShuttingDown
from puma.actors.executor import run_executor
from puma.actors.intake import run_intake
from puma.actors.kv_cache import run_kv_cache
from puma.actors.ledger import Ledger
from puma.actors.messages import Ask, Snapshot, StepPlan, Submit, ToScheduler, Withdraw
from puma.actors.policy import Limits
from puma.actors.scheduler import run_scheduler
from puma.config.engine import EngineConfig
from puma.config.memory import MemoryPlan

if TYPE_CHECKING:
    from puma.models.model import LoadedModel

Executor = Callable[
    [
        trio.MemoryReceiveChannel[StepPlan],
        trio.MemorySendChannel[ToScheduler],
        "LoadedModel",
        EngineConfig,
        MemoryPlan,
    ],
    Awaitable[None],
]


class Engine:
    """The handle. Its methods may be called from any task on the event loop."""

    def __init__(self, model: LoadedModel, config: EngineConfig, plan: MemoryPlan, channels: Channels) -> None:
        self.model = model
        self.config = config
        self.plan = plan
        self.context_length = model.context_length
        self.created = int(time.time())
        """Seconds since 1970."""
        self.door = Door(config.max_queued_requests)
        self._requests = channels.requests[0]
        self._scheduler = channels.scheduler[0]
        self._asking = trio.Lock()
        self._answer: Answer[Snapshot] | None = None
        self._gone: RequestError | None = None

    def submit(self, message: Submit) -> None:
        """Hand in a request; its answer arrives through message.reply. Raises QueueFull or ShuttingDown at once."""
        self.door.enter(message)
        post(self._requests, message, "intake")

    def withdraw(self, request_id: str) -> None:
        """Give back whatever a request still holds. Does nothing when it has ended, or was withdrawn before."""
        guest = self.door.guests.get(request_id)
        if guest is not None and not guest.withdrawn:
            guest.withdrawn = True
            post(self._requests, Withdraw(request_id), "intake")

    async def snapshot(self) -> Snapshot:
        """The engine between two steps. Raises the error that ended the engine when it is gone."""
        async with self._asking:
            if self._gone is not None:
                raise self._gone.with_traceback(None)
            self._answer = Answer[Snapshot]()
            post(self._scheduler, Ask(self._answer), "the scheduler")
            snapshot = await self._answer.get()
        named = tuple(
            msgspec.structs.replace(line, request_id=self.door.request_of(line.sequence)) for line in snapshot.sequences
        )
        return msgspec.structs.replace(snapshot, sequences=named)

    def stop_admitting(self) -> None:
        """Let those inside finish; submit raises ShuttingDown from now on."""
        self.door.refuse(ShuttingDown("the daemon is stopping and takes no new requests"))

    async def drained(self) -> None:
        """Wait until no request is left."""
        await self.door.empty()

    def end(self, error: RequestError) -> None:
        """The actors are gone: whoever waits for them gets this error. The first call counts."""
        self._gone = self._gone or error
        self.door.clear(self._gone)
        if self._answer is not None:
            self._answer.fail(self._gone)


async def run_engine(
    model: LoadedModel,
    config: EngineConfig,
    plan: MemoryPlan,
    *,
    executor: Executor = run_executor,
    task_status: trio.TaskStatus[Engine] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Run the four actors until cancelled; hands out the Engine at once.

    An actor that cannot go on raises out of here, and the others are cancelled. However it ends, every request inside
    gets its last event.
    """
    channels = open_channels(config)
    engine = Engine(model, config, plan, channels)
    desk = Desk(model.text, bounds(engine), engine.door, channels.scheduler[0])
    ledger = Ledger(limits(engine))
    pool = BlockPool(plan.blocks, plan.tokens_per_block)
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(run_intake, channels.requests[1], channels.emitted[1], desk)
            nursery.start_soon(run_scheduler, channels, ledger, model.name)
            nursery.start_soon(run_kv_cache, channels.reserves[1], channels.scheduler[0], pool)
            nursery.start_soon(executor, channels.plans[1], channels.scheduler[0], model, config, plan)
            task_status.started(engine)
    except* Exception as failures:
        engine.end(EngineFailed(f"the engine stopped: {cause(failures)}"))
        raise
    finally:
        engine.end(ShuttingDown("the daemon is stopping"))


def bounds(engine: Engine) -> Bounds:
    """What requests are measured against."""
    tokenizer, default = engine.model.text.tokenizer, engine.config.default_max_tokens
    return Bounds(
        context_length=engine.context_length,
        memory=engine.plan,
        default_max_tokens=engine.context_length if default == "context" else default,
        vocabulary_size=engine.model.vocabulary_size,
        longest_token_bytes=max(len(tokenizer.token_bytes(one)) for one in range(tokenizer.vocabulary_size)),
    )


def limits(engine: Engine) -> Limits:
    """What the policy keeps to."""
    return Limits(
        blocks=engine.plan.blocks,
        tokens_per_block=engine.plan.tokens_per_block,
        max_batch_size=engine.config.max_batch_size,
        max_step_tokens=engine.config.max_step_tokens,
        prefix_caching=engine.config.prefix_caching,
    )


def cause(error: BaseException) -> str:
    """The innermost failure of a group, in words; the first, when there are several."""
    if isinstance(error, BaseExceptionGroup):
        return cause(cast("BaseExceptionGroup[BaseException]", error).exceptions[0])
    return str(error) or repr(error)
