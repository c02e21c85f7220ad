"""Blocks that several sequences hold: who holds them together, and what comes back when some of them leave. Pure.

The KV cache says it in numbers (`shared_blocks`); the scheduler counts with them before it asks (`Departures`).
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from puma.actors.messages import SequenceId, Shared


def shared_blocks(tables: Mapping[SequenceId, Sequence[int]], holders: Sequence[int]) -> tuple[Shared, ...]:
    """All blocks with two holders or more, by who holds them; `holders` counts per block, and falls along a table."""
    groups: dict[int, tuple[int, list[SequenceId]]] = {}
    for sequence, table in tables.items():
        start = 0
        while start < len(table) and (count := holders[table[start]]) > 1:
            # Whoever holds a block holds those before it: equally many holders are the same ones.
            end = bisect_left(table, 1 - count, start, key=lambda block: -holders[block])
            groups.setdefault(table[start], (end - start, []))[1].append(sequence)
            start = end
    return tuple(Shared(frozenset(sequences), blocks) for blocks, sequences in groups.values())


class Held(msgspec.Struct, frozen=True):
    """Blocks that these sequences hold, and no others that stay."""

    sequences: frozenset[SequenceId]
    blocks: int
    late: bool = False
    """Whether one that has left them is still in a step in flight."""


class Departures:
    """Blocks that come back as sequences leave: at once, or when a result in flight has arrived."""

    def __init__(self, available: int, returning: int, shared: Iterable[Held]) -> None:
        self.available = available
        self.returning = returning
        self.shared = tuple(shared)

    def leave(self, sequence: SequenceId, blocks: int, *, late: bool) -> None:
        """A sequence leaves a table of `blocks` blocks; `late` if it is in a step in flight."""
        shared: list[Held] = []
        for held in self.shared:
            if sequence in held.sequences:
                blocks -= held.blocks
                held = Held(held.sequences - {sequence}, held.blocks, held.late or late)
                if not held.sequences:
                    self._give(held.blocks, held.late)
                    continue
            shared.append(held)
        self.shared = tuple(shared)
        self._give(blocks, late)

    def _give(self, blocks: int, late: bool) -> None:
        if late:
            self.returning += blocks
        else:
            self.available += blocks
