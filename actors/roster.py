"""The roster: every living sequence, who waits, and who holds which slot; both oldest first."""

import bisect
import heapq
from collections.abc import Iterable
from itertools import islice

from puma.actors.messages import Admit, Filled, Opened, SequenceId, Shared
from puma.actors.policy import Candidate, Limits, View
from puma.actors.sequence import (
    Decoding,
    Leaving,
    Preempted,
    Prefilling,
    Released,
    SeatTaken,
    Sequence,
)
from puma.actors.shared_blocks import Departures, Held


def by_arrival(sequence: Sequence) -> int:
    return sequence.arrival


class Roster:
    """Sequences from their admission to their end."""

    def __init__(self, limits: Limits) -> None:
        self.sequences: dict[SequenceId, Sequence] = {}
        self._waiting: list[Sequence] = []
        self._seated: list[Sequence] = []
        self._tokens_per_block = limits.tokens_per_block
        self._slots = list(range(limits.max_batch_size))
        """Free slots, a heap: the lowest is taken first."""
        self._closed: list[int] = []
        """Slots given back since the executor was told last."""
        self._arrivals = 0

    def enter(self, admit: Admit) -> None:
        """A new sequence waits behind all others."""
        sequence = Sequence(admit, self._arrivals)
        self._arrivals += 1
        self.sequences[sequence.id] = sequence
        self._waiting.append(sequence)

    def leave(self, sequence: Sequence) -> None:
        """A sequence has ended while it waited."""
        self._waiting.remove(sequence)
        del self.sequences[sequence.id]

    def seat(self, sequence_id: SequenceId, blocks: int, cached: int) -> Opened:
        """A waiting sequence gets a slot and its first blocks, in which `cached` tokens are computed already."""
        sequence = self.sequences[sequence_id]
        self._waiting.remove(sequence)
        slot = heapq.heappop(self._slots)
        sequence.advance(SeatTaken(slot, blocks, sequence.length, cached))
        sequence.written.begin(cached)
        bisect.insort(self._seated, sequence, key=by_arrival)
        admit = sequence.admit
        return Opened(slot, sequence.id, sequence.token_ids(), admit.sampling, len(sequence.generated))

    def slot_of(self, sequence_id: SequenceId) -> int:
        """The slot of a seated sequence."""
        slot = self.sequences[sequence_id].slot
        if slot is None:
            raise RuntimeError(f"sequence {sequence_id} holds no slot")
        return slot

    def releasable(self) -> tuple[SequenceId, ...]:
        """Whoever is to give back slot and blocks now: it leaves, and no result will mention it."""
        return tuple(one.id for one in self._seated if one.is_releasable)

    def release(self, sequence_id: SequenceId) -> None:
        """Slot and blocks of a releasable sequence are free; it has ended, or waits in its old place."""
        sequence = self.sequences[sequence_id]
        slot = self.slot_of(sequence_id)
        sequence.advance(Released())
        self._seated.remove(sequence)
        heapq.heappush(self._slots, slot)
        self._closed.append(slot)
        if isinstance(sequence.state, Preempted):
            bisect.insort(self._waiting, sequence, key=by_arrival)
        else:
            del self.sequences[sequence_id]

    def take_closed(self) -> tuple[int, ...]:
        """Slots given back since the last call."""
        closed, self._closed = tuple(self._closed), []
        return closed

    def filled(self) -> tuple[Filled, ...]:
        """Blocks whose tokens are known to be computed, and were not named before."""
        filled: list[Filled] = []
        for sequence in self._seated:
            span = sequence.written.tell(self._tokens_per_block)
            if span is not None:
                filled.append(Filled(sequence.id, span[0], sequence.token_ids_between(*span)))
        return tuple(filled)

    def view(self, available: int, shared: Iterable[Shared] = ()) -> View:
        """What the policy sees when `available` blocks are free, and these shared, before this step's releases."""
        running: list[tuple[SequenceId, Prefilling | Decoding]] = []
        departures = Departures(available, 0, (Held(one.sequences, one.blocks) for one in shared))
        free_slots = 0
        yielded = False
        for sequence in self._seated:
            match sequence.state:
                case Leaving(_, blocks, in_flight, then):
                    yielded = yielded or isinstance(then, Preempted)
                    free_slots += in_flight == 0
                    departures.leave(sequence.id, blocks, late=in_flight > 0)
                case Decoding(_, blocks) if sequence.last_token_planned:
                    departures.leave(sequence.id, blocks, late=True)
                case Prefilling() | Decoding() as state:
                    running.append((sequence.id, state))
                case state:
                    raise RuntimeError(f"sequence {sequence.id} holds a slot in state {state}")
        free_slots += len(self._slots)
        # One that has yielded is older than all that wait: nobody enters before it can.
        first = () if yielded else islice(self._waiting, free_slots)
        waiting = tuple(Candidate(one.id, one.length) for one in first)
        return View(
            running=tuple(running),
            waiting=waiting,
            available=departures.available,
            returning=departures.returning,
            shared=departures.shared,
        )
