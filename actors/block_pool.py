"""The pool: which sequence owns which blocks. A block is free or in exactly one table.

Tables only grow at their end, and by consecutive block ids where the pool has them: attention reads one long stream
faster than many short ones. Sharing prefixes will put reference counts between the tables and the free runs.
"""

from itertools import chain, pairwise

from puma.actors.free_runs import FreeRuns
from puma.actors.messages import Appended, Grant, Reserve, SequenceId


class PoolError(RuntimeError):
    """The scheduler asked for what it cannot have; its bookkeeping is wrong."""


class BlockPool:
    """`blocks` blocks of `tokens_per_block` tokens each."""

    def __init__(self, blocks: int, tokens_per_block: int) -> None:
        self.blocks = blocks
        self.tokens_per_block = tokens_per_block
        self.tables: dict[SequenceId, list[int]] = {}
        self._free = FreeRuns(blocks)

    @property
    def available(self) -> int:
        """Free blocks."""
        return self._free.free

    def serve(self, reserve: Reserve) -> Grant:
        """Release, then open, then grow.

        Raises PoolError when a sequence has no table or has one already, or a growth does not fit.
        """
        for sequence in reserve.release:
            self._release(sequence)
        # What the running ones need is theirs before anyone is let in.
        reserved = sum(self._missing(grow.sequence, grow.tokens) for grow in reserve.grow)
        appended: list[Appended] = []
        refused: list[SequenceId] = []
        for new in reserve.open:
            if new.sequence in self.tables:
                raise PoolError(f"sequence {new.sequence} has a table already and cannot open another")
            need = -(-new.tokens // self.tokens_per_block)
            if need > self.available - reserved:
                refused.append(new.sequence)
                continue
            self.tables[new.sequence] = []
            appended.append(self._append(new.sequence, need))
        for grow in reserve.grow:
            need = self._missing(grow.sequence, grow.tokens)
            if need > self.available:
                raise PoolError(f"sequence {grow.sequence} needs {need} blocks more; {self.available} are free")
            if need > 0:
                appended.append(self._append(grow.sequence, need))
        return Grant(reserve.step, tuple(appended), tuple(refused), self.available)

    def check_integrity(self) -> None:
        """Raise PoolError unless every block is free or in one table, and free neighbours form one run."""
        runs = self._free.runs()
        owned = list(chain(*self.tables.values(), *runs))
        if len(owned) != self.blocks or set(owned) != set(range(self.blocks)):
            raise PoolError(f"{self.blocks} blocks, but tables and free runs hold {sorted(owned)}")
        if sum(map(len, runs)) != self.available:
            raise PoolError(f"{self.available} blocks counted as free, but the runs are {runs}")
        if any(left.stop == right.start for left, right in pairwise(runs)):
            raise PoolError(f"free runs touch: {runs}")

    def _missing(self, sequence: SequenceId, tokens: int) -> int:
        return max(0, -(-tokens // self.tokens_per_block) - len(self._table(sequence)))

    def _table(self, sequence: SequenceId) -> list[int]:
        try:
            return self.tables[sequence]
        except KeyError:
            raise PoolError(f"sequence {sequence} has no table") from None

    def _append(self, sequence: SequenceId, count: int) -> Appended:
        """Lengthen a table by `count` blocks, which are free: first right behind its last, then in the largest runs."""
        table = self.tables[sequence]
        first_new = len(table)
        if table:
            start = table[-1] + 1
            table.extend(range(start, start + self._free.take_at(start, count)))
        while (left := first_new + count - len(table)) > 0:
            table.extend(self._free.take_largest(left))
        return Appended(sequence, tuple(table[first_new:]))

    def _release(self, sequence: SequenceId) -> None:
        table = self._table(sequence)
        del self.tables[sequence]
        first = 0
        for end in range(1, len(table) + 1):
            if end == len(table) or table[end] != table[end - 1] + 1:
                self._free.give(table[first], end - first)
                first = end
