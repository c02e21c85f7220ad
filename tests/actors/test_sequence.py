"""The states of a sequence."""

import itertools

import numpy as np
import pytest

from puma.actors.messages import Admit, Sampling
from puma.actors.sequence import (
    Aborted,
    Decoding,
    Finished,
    IllegalTransition,
    Leaving,
    Planned,
    Preempted,
    Prefilling,
    Released,
    Returned,
    SeatTaken,
    Sequence,
    Stopped,
    Waiting,
    Yielded,
    transition,
)

FINISHED, ABORTED = Finished("stop"), Aborted("cancelled")

LEGAL = [
    (Waiting(), SeatTaken(3, 2, 20), Prefilling(3, 2, 0, 20, 0)),
    (Waiting(), SeatTaken(3, 2, 20, 16), Prefilling(3, 2, 16, 20, 0)),
    (Waiting(), Stopped(ABORTED), ABORTED),
    (Preempted(), SeatTaken(3, 2, 20), Prefilling(3, 2, 0, 20, 0)),
    (Preempted(), Stopped(ABORTED), ABORTED),
    (Prefilling(3, 2, 0, 20, 0), Planned(8, 0), Prefilling(3, 2, 8, 20, 1)),
    (Prefilling(3, 2, 8, 20, 1), Planned(12, 0), Decoding(3, 2, 20, 2)),
    (Prefilling(3, 2, 8, 20, 1), Returned(), Prefilling(3, 2, 8, 20, 0)),
    (Prefilling(3, 2, 8, 20, 1), Yielded(), Leaving(3, 2, 1, Preempted())),
    (Prefilling(3, 2, 8, 20, 1), Stopped(ABORTED), Leaving(3, 2, 1, ABORTED)),
    (Decoding(3, 2, 20, 1), Planned(1, 1), Decoding(3, 3, 21, 2)),
    (Decoding(3, 2, 20, 2), Returned(), Decoding(3, 2, 20, 1)),
    (Decoding(3, 2, 20, 0), Yielded(), Leaving(3, 2, 0, Preempted())),
    (Decoding(3, 2, 20, 1), Stopped(FINISHED), Leaving(3, 2, 1, FINISHED)),
    (Leaving(3, 2, 2, FINISHED), Returned(), Leaving(3, 2, 1, FINISHED)),
    (Leaving(3, 2, 1, Preempted()), Stopped(FINISHED), Leaving(3, 2, 1, FINISHED)),
    (Leaving(3, 2, 0, FINISHED), Released(), FINISHED),
    (Leaving(3, 2, 0, Preempted()), Released(), Preempted()),
]

STATES = [
    Waiting(),
    Preempted(),
    Prefilling(3, 2, 8, 20, 0),
    Decoding(3, 2, 20, 0),
    Leaving(3, 2, 1, FINISHED),
    Leaving(3, 2, 0, Preempted()),
    FINISHED,
    ABORTED,
]
EVENTS = [SeatTaken(3, 2, 20), Planned(1, 0), Returned(), Yielded(), Stopped(ABORTED), Released()]


@pytest.mark.parametrize(("state", "event", "after"), LEGAL)
def test_each_legal_transition(state, event, after):
    assert transition(state, event) == after


def test_only_these_pairs_of_state_and_event_are_legal():
    legal = {
        (type(state).__name__, type(event).__name__)
        for state, event in itertools.product(STATES, EVENTS)
        if transition(state, event) is not None
    }
    assert legal == {
        ("Waiting", "SeatTaken"),
        ("Waiting", "Stopped"),
        ("Preempted", "SeatTaken"),
        ("Preempted", "Stopped"),
        ("Prefilling", "Planned"),
        ("Prefilling", "Yielded"),
        ("Prefilling", "Stopped"),
        ("Decoding", "Planned"),
        ("Decoding", "Yielded"),
        ("Decoding", "Stopped"),
        ("Leaving", "Returned"),
        ("Leaving", "Stopped"),
        ("Leaving", "Released"),
    }


@pytest.mark.parametrize(
    ("state", "event"),
    [
        (Prefilling(0, 2, 8, 20, 0), Planned(13, 0)),
        (Waiting(), SeatTaken(0, 2, 16, 16)),
        (Decoding(0, 2, 8, 0), Planned(2, 0)),
        (Decoding(0, 2, 8, 0), Returned()),
        (Leaving(0, 2, 1, FINISHED), Released()),
        (Leaving(0, 2, 1, FINISHED), Stopped(ABORTED)),
    ],
)
def test_an_event_beyond_what_the_state_holds_is_illegal(state, event):
    assert transition(state, event) is None


def test_an_illegal_transition_names_sequence_state_and_event_and_changes_nothing():
    sequence = new_sequence()
    with pytest.raises(IllegalTransition, match=r"sequence 7 in state Waiting\(\) cannot take Planned\(count=1"):
        sequence.advance(Planned(1, 0))
    assert sequence.state == Waiting()


def test_a_sequence_has_its_prompt_and_its_output():
    sequence = new_sequence()
    sequence.generated += [8, 9]
    assert sequence.length == 5
    assert sequence.token_ids().tolist() == [1, 2, 3, 8, 9]
    assert sequence.token_ids().dtype == np.int32
    for start in range(6):
        for end in range(start, 6):
            between = sequence.token_ids_between(start, end)
            assert between.tolist() == [1, 2, 3, 8, 9][start:end]
            assert between.dtype == np.int32


def test_the_last_token_is_planned_when_the_budget_is_in_flight():
    sequence = new_sequence()
    for event in (SeatTaken(0, 1, 3), Planned(3, 0)):
        sequence.advance(event)
        assert not sequence.last_token_planned
    sequence.advance(Planned(1, 0))
    assert sequence.last_token_planned


def new_sequence():
    admit = Admit(
        sequence=7,
        token_ids=np.array([1, 2, 3], np.int32),
        sampling=Sampling(),
        budget=2,
        stop_ids=frozenset(),
    )
    return Sequence(admit, arrival=0)
