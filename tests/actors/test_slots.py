"""Slots: differences in, a batch of arrays out."""

import numpy as np
import pytest

from puma.actors.messages import Opened, Run, Sampling, SlotBlocks, StepPlan
from puma.actors.slots import Slots
from puma.config.memory import MemoryPlan
from puma.kernels.sample import INDEX, SEED, TOP

PLAN = MemoryPlan(token_bytes=8, block_bytes=128, tokens_per_block=16, blocks=10)


def opened(slot, sequence, ids, generated=0, **sampling):
    return Opened(slot, sequence, np.array(ids, np.int32), Sampling(**sampling), generated)


def step(runs, *, closed=(), opened=(), appended=()):
    return StepPlan(
        0, closed, tuple(opened), tuple(SlotBlocks(*one) for one in appended), tuple(Run(*one) for one in runs)
    )


def test_a_ragged_batch():
    slots = Slots(4, 160, PLAN)
    plan = step(
        [(2, 0, 3, True), (0, 1, 2, False)],
        opened=[opened(0, 70, [5, 6, 7, 8]), opened(2, 71, [1, 2, 3])],
        appended=[(0, (9,)), (2, (4, 5))],
    )
    prepared = slots.prepare(plan)
    batch = prepared.batch
    assert batch.tokens.tolist() == [1, 2, 3, 6, 7]
    assert batch.positions.tolist() == [0, 1, 2, 1, 2]
    assert batch.row_slots.tolist() == [2, 2, 2, 0, 0]
    assert batch.runs.tolist() == [[0, 3, 0, 2], [3, 2, 1, 0]]
    assert batch.sample_rows.tolist() == [2]
    assert batch.sample_slots.tolist() == [2]
    assert prepared.askers == ((71, -1),)
    assert batch.tables[2, :2].tolist() == [4, 5]
    assert all(array.flags.c_contiguous for array in (batch.tokens, batch.positions, batch.runs, batch.choices))


def test_beyond_the_known_tokens_the_slots_own_choice_is_taken():
    slots = Slots(1, 160, PLAN)
    slots.prepare(step([(0, 0, 2, True)], opened=[opened(0, 1, [5, 6])], appended=[(0, (0,))]))
    batch = slots.prepare(step([(0, 2, 1, True)])).batch
    assert batch.tokens.tolist() == [-1]
    assert batch.positions.tolist() == [2]


@pytest.mark.parametrize("generated", [0, 3])
def test_the_random_index_counts_generated_tokens(generated):
    slots = Slots(1, 160, PLAN)
    known = [1] * (4 + generated)
    first = slots.prepare(step([(0, 0, len(known), True)], opened=[opened(0, 1, known, generated, seed=7, logprobs=3)]))
    second = slots.prepare(step([(0, len(known), 1, True)]))
    assert [int(one.batch.choices[0, INDEX]) for one in (first, second)] == [generated, generated + 1]
    assert (first.batch.choices[0, SEED], first.batch.choices[0, TOP]) == (7, 3)


def test_a_table_grows_in_place_and_a_new_sequence_begins_anew():
    slots = Slots(2, 160, PLAN)
    running = slots.prepare(step([(1, 0, 1, True)], opened=[opened(1, 1, [5])], appended=[(1, (3,))])).batch
    slots.prepare(step([(1, 1, 1, True)], appended=[(1, (8,))]))
    assert running.tables[1, :2].tolist() == [3, 8]
    slots.prepare(step([(1, 0, 1, True)], closed=(1,), opened=[opened(1, 2, [6])], appended=[(1, (7,))]))
    assert running.tables[1, :2].tolist() == [7, 8]


def test_a_slot_that_is_not_open_is_an_error():
    slots = Slots(2, 160, PLAN)
    with pytest.raises(RuntimeError, match="slot 1"):
        slots.prepare(step([(1, 0, 1, True)]))
