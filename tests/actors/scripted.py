"""A scripted executor: a "model" whose next token is a checksum of all tokens before it.

It keeps what the real one keeps (slots, block tables, the last sampled token) and stores tokens where the real one
stores keys and values. A block that is lost, shared or reused too early changes the history that is read, and with it
every token that follows.
"""

import zlib
from array import array
from collections import deque
from collections.abc import Collection, Sequence

import msgspec
import trio

from puma.actors.messages import Opened, Run, Sampled, SequenceId, StepPlan, StepResult, ToScheduler

END = 257
"""The token that ends an answer: <|im_end|> of the tiny vocabulary."""
NOTHING = 0
"""What is read where nothing was written: after a failed step only, by those whose results are dropped."""


def next_token(history: Sequence[int]) -> int:
    """END, or one of "A" to "t"."""
    number = zlib.crc32(array("i", history).tobytes()) % 53
    return ord("@") + number if number else END


def lone_run(prompt: Sequence[int], budget: int, stop_ids: Collection[int] = (END,)) -> list[int]:
    """What a sequence generates when nobody else is there."""
    history = list(prompt)
    while True:
        history.append(next_token(history))
        if history[-1] in stop_ids or len(history) == len(prompt) + budget:
            return history[len(prompt) :]


class Slot:
    def __init__(self, opened: Opened) -> None:
        self.sequence = opened.sequence
        self.known = [int(one) for one in opened.token_ids]
        self.table: list[int] = []
        self.computed: int | None = None
        """The first run says how much is computed already: what it reads of that must be there."""
        self.last = NOTHING


class Waiting(msgspec.Struct):
    """A plan that was received, and the slots as they were then."""

    plan: StepPlan
    slots: dict[int, Slot]


class ScriptedExecutor:
    """Plans are applied when they arrive and run later, like in the real one."""

    def __init__(self, tokens_per_block: int) -> None:
        self.tokens_per_block = tokens_per_block
        self.slots: dict[int, Slot] = {}
        self.memory: dict[tuple[int, int], int] = {}
        self.waiting: deque[Waiting] = deque()

    def receive(self, plan: StepPlan) -> None:
        busy = {run.slot for one in self.waiting for run in one.plan.runs}
        assert not busy & set(plan.closed), "a slot was closed while a step in flight runs it"
        for slot in plan.closed:
            del self.slots[slot]
        for opened in plan.opened:
            assert opened.slot not in self.slots, "a slot was opened twice"
            self.slots[opened.slot] = Slot(opened)
        for appended in plan.appended:
            self.slots[appended.slot].table += appended.block_ids
        assert len({run.slot for run in plan.runs}) == len(plan.runs) > 0
        for run in plan.runs:
            slot = self.slots[run.slot]
            assert run.start == slot.computed or slot.computed is None, "positions are computed in order, each once"
            slot.computed = run.start + run.count
            assert slot.computed <= len(slot.table) * self.tokens_per_block, "no block for a position"
        self.waiting.append(Waiting(plan, {run.slot: self.slots[run.slot] for run in plan.runs}))

    def riders(self) -> list[SequenceId]:
        """Sequences in the oldest plan that waits."""
        return [slot.sequence for slot in self.waiting[0].slots.values()]

    def run(self, *, failure: str | None = None, not_numbers: Collection[SequenceId] = ()) -> StepResult:
        """Run the oldest plan."""
        oldest = self.waiting.popleft()
        plan, slots = oldest.plan, oldest.slots
        if failure is not None:
            return StepResult(plan.step, (), 0.25, failure)
        for run in plan.runs:
            self._write(slots[run.slot], run)
        sampled: list[Sampled] = []
        for run in plan.runs:
            if run.samples:
                slot = slots[run.slot]
                slot.last = next_token(self._read(slot, run.start + run.count))
                token = -1 if slot.sequence in not_numbers else slot.last
                sampled.append(Sampled(slot.sequence, token, -slot.last / 512, ((slot.last, 0.0),)))
        return StepResult(plan.step, tuple(sampled), 0.25)

    def _place(self, slot: Slot, position: int) -> tuple[int, int]:
        return slot.table[position // self.tokens_per_block], position % self.tokens_per_block

    def _read(self, slot: Slot, end: int) -> list[int]:
        return [self.memory.get(self._place(slot, position), NOTHING) for position in range(end)]

    def _write(self, slot: Slot, run: Run) -> None:
        others = {block for other in self.slots.values() if other is not slot for block in other.table}
        for position in range(run.start, run.start + run.count):
            assert self._place(slot, position)[0] not in others, "nobody writes into a block that another holds"
            token = slot.known[position] if position < len(slot.known) else slot.last
            self.memory[self._place(slot, position)] = token


class ScriptedActor:
    """The scripted executor as an actor: one step each time it is told to go on, or without end."""

    def __init__(self, tokens_per_block: int, *, free_running: bool = True) -> None:
        self.core = ScriptedExecutor(tokens_per_block)
        self.failures: list[str | None] = []
        """Consumed one per step; steps succeed when none is left."""
        self.free_running = free_running
        self._arrived = trio.Semaphore(0)
        self._go = trio.Semaphore(0)

    def step(self) -> None:
        """Let one step run."""
        self._go.release()

    async def run(
        self,
        plans: trio.MemoryReceiveChannel[StepPlan],
        scheduler: trio.MemorySendChannel[ToScheduler],
        *_: object,
    ) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._work, scheduler)
            async for plan in plans:
                self.core.receive(plan)
                self._arrived.release()

    async def _work(self, scheduler: trio.MemorySendChannel[ToScheduler]) -> None:
        while True:
            await self._arrived.acquire()
            if not self.free_running:
                await self._go.acquire()
            scheduler.send_nowait(self.core.run(failure=self.failures.pop(0) if self.failures else None))
