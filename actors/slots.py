"""What the executor remembers between steps: per slot the known tokens, the block table and how tokens are chosen."""

import msgspec
import numpy as np

from puma.actors.messages import Opened, Run, Sampled, SequenceId, StepPlan, TokenIds
from puma.config.memory import MemoryPlan
from puma.kernels.sample import CHOICE_FIELDS, INDEX, MOST_LIKELY
from puma.models.step import StepInput, StepOutput, choice


class Slot(msgspec.Struct):
    sequence: SequenceId
    token_ids: TokenIds
    generated: int
    logprobs: int
    blocks: int = 0
    """Entries of its block table in use."""


class Prepared(msgspec.Struct, frozen=True):
    """A step as arrays, and for each of its samples who asked and for how many likely tokens."""

    step: int
    batch: StepInput
    askers: tuple[tuple[SequenceId, int], ...]


class Slots:
    """Mirrors what the scheduler tells in differences.

    A table is only ever appended to while its slot is open, so a step that is running reads what it was given.
    """

    def __init__(self, count: int, context_length: int, plan: MemoryPlan) -> None:
        self._slots: list[Slot | None] = [None] * count
        self._tables = np.zeros((count, plan.blocks_for(context_length) + 1), np.int32)
        self._choices = np.zeros((count, CHOICE_FIELDS), np.int64)

    def prepare(self, plan: StepPlan) -> Prepared:
        """Apply a plan's differences and lay out its batch."""
        for slot in plan.closed:
            self._slots[slot] = None
        for opened in plan.opened:
            self._open(opened)
        for appended in plan.appended:
            slot = self._at(appended.slot)
            end = slot.blocks + len(appended.block_ids)
            self._tables[appended.slot, slot.blocks : end] = appended.block_ids
            slot.blocks = end
        samples = [run for run in plan.runs if run.samples]
        askers = tuple((slot.sequence, slot.logprobs) for slot in (self._at(run.slot) for run in samples))
        return Prepared(plan.step, self._batch(plan.runs), askers)

    def _open(self, opened: Opened) -> None:
        sampling = opened.sampling
        self._slots[opened.slot] = Slot(
            opened.sequence, opened.token_ids, opened.generated, min(sampling.logprobs, MOST_LIKELY)
        )
        self._choices[opened.slot] = choice(
            temperature=sampling.temperature,
            top_k=sampling.top_k,
            top_p=sampling.top_p,
            min_p=sampling.min_p,
            seed=sampling.seed,
            index=0,
            logprobs=sampling.logprobs,
        )

    def _at(self, number: int) -> Slot:
        slot = self._slots[number]
        if slot is None:
            raise RuntimeError(f"a plan uses slot {number}, which is not open")
        return slot

    def _batch(self, runs: tuple[Run, ...]) -> StepInput:
        counts = np.array([run.count for run in runs], np.int32)
        first_rows = np.cumsum(counts, dtype=np.int32) - counts
        slots = np.array([run.slot for run in runs], np.int32)
        starts = np.array([run.start for run in runs], np.int32)
        samples = np.array([run.samples for run in runs], np.bool_)
        sample_slots = slots[samples]
        choices = self._choices[sample_slots]
        choices[:, INDEX] = [self._index(run) for run in runs if run.samples]
        return StepInput(
            tokens=np.concatenate([self._tokens(run) for run in runs]),
            positions=np.arange(counts.sum(), dtype=np.int32) + np.repeat(starts - first_rows, counts),
            row_slots=np.repeat(slots, counts),
            runs=np.stack([first_rows, counts, starts, slots], axis=1),
            sample_rows=(first_rows + counts - 1)[samples],
            sample_slots=sample_slots,
            choices=choices,
            tables=self._tables,
        )

    def _tokens(self, run: Run) -> TokenIds:
        known = self._at(run.slot).token_ids
        if run.start >= len(known):
            return np.array([-1], np.int32)
        return known[run.start : run.start + run.count]

    def _index(self, run: Run) -> int:
        """Which of its sequence's generated tokens this run yields, from 0."""
        slot = self._at(run.slot)
        return slot.generated + run.start + run.count - len(slot.token_ids)


def sampled(prepared: Prepared, output: StepOutput) -> tuple[Sampled, ...]:
    """The kernels' choices as messages."""
    tokens, logprobs = output.tokens.tolist(), output.logprobs.tolist()
    made: list[Sampled] = []
    for index, (sequence, count) in enumerate(prepared.askers):
        top: tuple[tuple[int, float], ...] = ()
        if count > 0:
            likely = output.likely_tokens[index, :count].tolist()
            top = tuple(zip(likely, output.likely_logprobs[index, :count].tolist(), strict=True))
        made.append(Sampled(sequence, tokens[index], logprobs[index], top))
    return tuple(made)
