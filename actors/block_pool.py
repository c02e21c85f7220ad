"""The pool: which sequence holds which blocks. A block is free, or idle in the prefix cache, or in some tables.

Tables only grow at their end, and by consecutive block ids where the pool has them: attention reads one long stream
faster than many short ones. Tables that begin alike may begin with the same blocks. These are full: nobody writes there
any more. Holders only ever drop out along a table, so the count of holders never rises from one block to the next.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import chain, pairwise

from puma.actors.free_runs import FreeRuns
from puma.actors.messages import Appended, Filled, Grant, Open, Reserve, SequenceId, Shared
from puma.actors.prefix_cache import ROOT, PrefixCache, contents
from puma.actors.shared_blocks import shared_blocks

MOST_EVICTED_AHEAD = 16


class PoolError(RuntimeError):
    """The scheduler asked for what it cannot have; its bookkeeping is wrong."""


class BlockPool:
    """`blocks` blocks of `tokens_per_block` tokens each."""

    def __init__(self, blocks: int, tokens_per_block: int) -> None:
        self.blocks = blocks
        self.tokens_per_block = tokens_per_block
        self.tables: dict[SequenceId, list[int]] = {}
        self.holders = [0] * blocks
        """In how many tables each block is."""
        self.cache = PrefixCache(tokens_per_block)
        self._free = FreeRuns(blocks)
        # One block at a time would cut the pool into runs of one; a few at once come from the same old table.
        self._evicted_ahead = min(blocks // 32, MOST_EVICTED_AHEAD)
        self._shared: tuple[Shared, ...] = ()
        self._sharing_changed = False

    @property
    def available(self) -> int:
        """Blocks that no table holds."""
        return self._free.free + self.cache.idle

    def serve(self, reserve: Reserve) -> Grant:
        """Note what is filled, then release, open and grow.

        Raises PoolError when a sequence has no table or has one already, or a growth does not fit.
        """
        for filled in reserve.filled:
            self._note(filled)
        for sequence in reserve.distrusted:
            self._forget(sequence)
        for sequence in reserve.release:
            self._release(sequence)
        # What the running ones need is theirs before anyone is let in.
        reserved = sum(self._missing(grow.sequence, grow.tokens) for grow in reserve.grow)
        appended: list[Appended] = []
        refused: list[SequenceId] = []
        room = reserve.room
        for new in reserve.open:
            granted = self._open(new, reserved) if room > 0 else None
            if granted is None:
                refused.append(new.sequence)
                continue
            appended.append(granted)
            room -= len(new.token_ids) - granted.cached_tokens
        for grow in reserve.grow:
            need = self._missing(grow.sequence, grow.tokens)
            if need > self.available:
                raise PoolError(f"sequence {grow.sequence} needs {need} blocks more; {self.available} are free")
            if need > 0:
                appended.append(Appended(grow.sequence, self._append(grow.sequence, need)))
        if self._sharing_changed:
            self._shared, self._sharing_changed = shared_blocks(self.tables, self.holders), False
        return Grant(reserve.step, tuple(appended), tuple(refused), self.available, self.cache.idle, self._shared)

    def check_integrity(self) -> None:
        """Raise PoolError unless every block is free, or idle, or held as often as is counted, and runs are whole."""
        runs = self._free.runs()
        held = Counter(chain(*self.tables.values()))
        owned = [*held, *chain(*runs), *self.cache.idle_blocks()]
        if len(owned) != self.blocks or set(owned) != set(range(self.blocks)):
            raise PoolError(f"{self.blocks} blocks, but tables, cache and free runs hold {sorted(owned)}")
        if any(count != held[block] for block, count in enumerate(self.holders)):
            raise PoolError(f"tables hold {held}, but the counts are {self.holders}")
        if sum(map(len, runs)) != self._free.free:
            raise PoolError(f"{self._free.free} blocks counted as free, but the runs are {runs}")
        if any(left.stop == right.start for left, right in pairwise(runs)):
            raise PoolError(f"free runs touch: {runs}")

    def _missing(self, sequence: SequenceId, tokens: int) -> int:
        return max(0, -(-tokens // self.tokens_per_block) - len(self._table(sequence)))

    def _table(self, sequence: SequenceId) -> list[int]:
        try:
            return self.tables[sequence]
        except KeyError:
            raise PoolError(f"sequence {sequence} has no table") from None

    def _note(self, filled: Filled) -> None:
        table, size = self._table(filled.sequence), self.tokens_per_block
        first = filled.start // size
        if filled.start % size or len(filled.token_ids) % size:
            raise PoolError(f"sequence {filled.sequence} has filled blocks in part, from token {filled.start} on")
        if first + len(filled.token_ids) // size > len(table):
            raise PoolError(f"sequence {filled.sequence} has filled more than the {len(table)} blocks it has")
        for place, content in enumerate(contents(filled.token_ids, size), first):
            replaced = self.cache.add(table[place - 1] if place else ROOT, content, table[place])
            if replaced is not None:
                self._free.give(replaced, 1)

    def _forget(self, sequence: SequenceId) -> None:
        table = self._table(sequence)
        self._give(self.cache.forget(table[0]))

    def _open(self, new: Open, reserved: int) -> Appended | None:
        """A table that begins with what is found cached; None when it does not fit beside `reserved` blocks."""
        if new.sequence in self.tables:
            raise PoolError(f"sequence {new.sequence} has a table already and cannot open another")
        need = -(-new.tokens // self.tokens_per_block)
        found = self.cache.match(new.token_ids, (len(new.token_ids) - 1) // self.tokens_per_block)
        taken = sum(self.cache.is_idle(block) for block in found)
        if need - len(found) + taken > self.available - reserved:
            return None
        for block in found:
            self.cache.take(block)
            self.holders[block] += 1
        self._sharing_changed |= taken < len(found)
        self.tables[new.sequence] = list(found)
        fresh = self._append(new.sequence, need - len(found))
        return Appended(new.sequence, (*found, *fresh), len(found) * self.tokens_per_block)

    def _append(self, sequence: SequenceId, count: int) -> tuple[int, ...]:
        """Lengthen a table by `count` available blocks: first right behind its last, then in the largest runs."""
        self._make_free(count)
        table = self.tables[sequence]
        first_new = len(table)
        if table:
            start = table[-1] + 1
            table.extend(range(start, start + self._free.take_at(start, count)))
        while (left := first_new + count - len(table)) > 0:
            table.extend(self._free.take_largest(left))
        for block in table[first_new:]:
            self.holders[block] = 1
        return tuple(table[first_new:])

    def _make_free(self, count: int) -> None:
        """Evict until this many blocks are free; a few more if any must go."""
        if self._free.free < count:
            wanted = min(count + self._evicted_ahead, self.available)
            self._give([self.cache.evict() for _ in range(wanted - self._free.free)])

    def _release(self, sequence: SequenceId) -> None:
        table = self._table(sequence)
        del self.tables[sequence]
        self._sharing_changed |= self.holders[table[0]] > 1
        left: list[int] = []
        for block in reversed(table):
            self.holders[block] -= 1
            if not self.holders[block]:
                left.append(block)
        self.cache.retire(block for block in left if block in self.cache)
        self._give([block for block in left if block not in self.cache])

    def _give(self, blocks: Sequence[int]) -> None:
        """These blocks, in any order, are free."""
        ordered = sorted(blocks)
        first = 0
        for end in range(1, len(ordered) + 1):
            if end == len(ordered) or ordered[end] != ordered[end - 1] + 1:
                self._free.give(ordered[first], end - first)
                first = end
