"""Executor: StepPlan in, StepResult out. It knows tensors; the worker's thread computes."""

import trio

from puma.actors.messages import StepPlan, StepResult, ToScheduler
from puma.actors.slots import Slots
from puma.actors.worker import Worker
from puma.config.engine import EngineConfig
from puma.config.memory import MemoryPlan
from puma.models.model import LoadedModel


async def run_executor(
    plans: trio.MemoryReceiveChannel[StepPlan],
    results: trio.MemorySendChannel[ToScheduler],
    model: LoadedModel,
    config: EngineConfig,
    plan: MemoryPlan,
) -> None:
    """Run plans until their channel closes.

    `results` is the scheduler's inbox; it has room for every plan in flight.
    """
    slots = Slots(config.max_batch_size, model.context_length, plan)

    def deliver(result: StepResult) -> None:
        try:
            results.send_nowait(result)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            # The scheduler has gone; the engine is ending.
            return

    worker = Worker(model, deliver)
    try:
        async for step_plan in plans:
            worker.put(slots.prepare(step_plan))
    finally:
        await worker.close()
