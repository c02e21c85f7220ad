"""The states of a sequence, what each may hold, and every way from one to the next.

    Waiting, Preempted       seat taken      Prefilling
    Waiting, Preempted       stopped         Aborted
    Prefilling               planned         Prefilling; Decoding once its computed tokens have caught up
    Decoding                 planned         Decoding
    Prefilling, Decoding     yielded         Leaving, then Preempted
    Prefilling, Decoding     stopped         Leaving, then Finished or Aborted
    Leaving                  stopped         Leaving, then Finished or Aborted; if it was to be Preempted
    those three              returned        the same, one plan less in flight
    Leaving                  released        Preempted, Finished or Aborted; if nothing is in flight

Waiting and Preempted hold nothing. Whoever has held a slot goes through Leaving, which keeps slot and blocks until the
last result that mentions the sequence has arrived: a step in flight may still write there.
"""

from typing import Literal

import msgspec
import numpy as np

from puma.actors.messages import Admit, FinishReason, SequenceId, TokenIds
from puma.actors.written import Written


class Waiting(msgspec.Struct, frozen=True):
    """Never computed yet."""


class Preempted(msgspec.Struct, frozen=True):
    """Gave its blocks back and waits to compute prompt and output anew; its generated tokens are kept."""


class Prefilling(msgspec.Struct, frozen=True):
    """Computed tokens catch up with the `length` tokens it has; its blocks hold length + 1."""

    slot: int
    blocks: int
    computed: int
    """Positions computed, or planned in a step in flight."""
    length: int
    in_flight: int
    """Plans sent whose results have not arrived."""


class Decoding(msgspec.Struct, frozen=True):
    """Caught up: every plan computes the one newest token, and yields the next."""

    slot: int
    blocks: int
    computed: int
    in_flight: int


class Finished(msgspec.Struct, frozen=True):
    finish: FinishReason


class Aborted(msgspec.Struct, frozen=True):
    reason: Literal["cancelled", "failed"]


class Leaving(msgspec.Struct, frozen=True):
    """Is planned no more; `then` once its slot and blocks are released."""

    slot: int
    blocks: int
    in_flight: int
    then: Preempted | Finished | Aborted


State = Waiting | Preempted | Prefilling | Decoding | Leaving | Finished | Aborted


class SeatTaken(msgspec.Struct, frozen=True):
    """A slot and blocks for `length` known tokens and one more; `cached` of them are computed already."""

    slot: int
    blocks: int
    length: int
    cached: int = 0


class Planned(msgspec.Struct, frozen=True):
    """A plan computes `count` more positions, after its table grew by `blocks`."""

    count: int
    blocks: int


class Returned(msgspec.Struct, frozen=True):
    """The result of a plan that mentions it arrived."""


class Yielded(msgspec.Struct, frozen=True):
    """It must make room for an older one."""


class Stopped(msgspec.Struct, frozen=True):
    """It generates no more."""

    then: Finished | Aborted


class Released(msgspec.Struct, frozen=True):
    """Its blocks were given back and its slot was closed."""


Event = SeatTaken | Planned | Returned | Yielded | Stopped | Released


class IllegalTransition(RuntimeError):
    """The bookkeeping is wrong; names the sequence, its state and the event."""

    def __init__(self, sequence: SequenceId, state: State, event: Event) -> None:
        super().__init__(f"sequence {sequence} in state {state} cannot take {event}")


def transition(state: State, event: Event) -> State | None:
    """The state after an event; None when the event is illegal in this state."""
    match state, event:
        case Waiting() | Preempted(), SeatTaken(slot, blocks, length, cached) if cached < length:
            return Prefilling(slot, blocks, cached, length, 0)
        case Waiting() | Preempted(), Stopped(then):
            return then
        case Prefilling(slot, blocks, computed, length, in_flight), Planned(count, grown):
            if computed + count < length:
                return Prefilling(slot, blocks + grown, computed + count, length, in_flight + 1)
            if computed + count == length:
                return Decoding(slot, blocks + grown, length, in_flight + 1)
        case Decoding(slot, blocks, computed, in_flight), Planned(1, grown):
            return Decoding(slot, blocks + grown, computed + 1, in_flight + 1)
        case Prefilling() | Decoding() | Leaving(), Returned() if state.in_flight > 0:
            return msgspec.structs.replace(state, in_flight=state.in_flight - 1)
        case Prefilling() | Decoding(), Yielded():
            return Leaving(state.slot, state.blocks, state.in_flight, Preempted())
        case Prefilling() | Decoding(), Stopped(then):
            return Leaving(state.slot, state.blocks, state.in_flight, then)
        case Leaving(slot, blocks, in_flight, Preempted()), Stopped(then):
            return Leaving(slot, blocks, in_flight, then)
        case Leaving(in_flight=0, then=then), Released():
            return then
        case _:
            pass
    return None


class Sequence:
    """One admitted sequence: what was asked, what it has generated, and where it stands."""

    __slots__ = ("admit", "arrival", "cached", "generated", "state", "written")

    def __init__(self, admit: Admit, arrival: int) -> None:
        self.admit = admit
        self.arrival = arrival
        """Place in the order of arrival; it keeps it for life."""
        self.generated: list[int] = []
        self.cached = 0
        """Tokens of the prompt that were cached when it was first opened."""
        self.state: State = Waiting()
        self.written = Written()

    @property
    def id(self) -> SequenceId:
        return self.admit.sequence

    @property
    def length(self) -> int:
        """Tokens it has: prompt and output so far."""
        return len(self.admit.token_ids) + len(self.generated)

    @property
    def slot(self) -> int | None:
        """The slot it holds, if any."""
        match self.state:
            case Prefilling() | Decoding() | Leaving():
                return self.state.slot
            case _:
                return None

    @property
    def has_ended(self) -> bool:
        """Whether it generates no more, even if it still holds blocks."""
        match self.state:
            case Finished() | Aborted() | Leaving(then=Finished() | Aborted()):
                return True
            case _:
                return False

    @property
    def is_releasable(self) -> bool:
        """Whether it is to give back slot and blocks, and no result will mention it any more."""
        match self.state:
            case Leaving(in_flight=0):
                return True
            case _:
                return False

    @property
    def last_token_planned(self) -> bool:
        """Whether a plan in flight yields the last token of its budget."""
        match self.state:
            case Decoding(computed=computed):
                return computed + 1 - len(self.admit.token_ids) == self.admit.budget
            case _:
                return False

    def token_ids(self) -> TokenIds:
        """Prompt and output so far, int32."""
        if not self.generated:
            return self.admit.token_ids
        return np.concatenate([self.admit.token_ids, np.asarray(self.generated, dtype=np.int32)])

    def token_ids_between(self, start: int, end: int) -> TokenIds:
        """Tokens [start, end) of prompt and output, int32."""
        prompt = len(self.admit.token_ids)
        output = self.generated[max(0, start - prompt) : max(0, end - prompt)]
        return np.concatenate([self.admit.token_ids[start:end], np.asarray(output, dtype=np.int32)])

    def advance(self, event: Event) -> None:
        """Take an event. Raises IllegalTransition, and stays as it is, when the state does not allow it."""
        after = transition(self.state, event)
        if after is None:
            raise IllegalTransition(self.id, self.state, event)
        self.state = after
