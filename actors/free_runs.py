"""Free blocks, kept as runs of consecutive ids. Taking and giving back cost O(log runs), merging is immediate."""

from __future__ import annotations

import heapq


class FreeRuns:
    """The free ones of the blocks [0, count). Two runs never touch: they would be one."""

    def __init__(self, count: int) -> None:
        self.free = 0
        self._length: dict[int, int] = {}
        """First block of a run -> its length."""
        self._start: dict[int, int] = {}
        """Block after a run -> its first block."""
        self._largest: list[tuple[int, int]] = []
        """Heap of (-length, start); an entry whose run has changed since is stale, and dropped when it surfaces."""
        self.give(0, count)

    def take_at(self, block: int, count: int) -> int:
        """Take up to `count` blocks from `block` on, where a run must begin; how many there were."""
        length = self._length.get(block, 0)
        taken = min(length, count)
        if taken:
            self._remove(block)
            self._insert(block + taken, length - taken)
        return taken

    def take_largest(self, count: int) -> range:
        """Take up to `count` blocks from the largest run; there must be one.

        They come from its middle, unless it begins at block 0: the block before a run belongs to a table that may
        want to grow into the run, and the new table needs room behind it too.
        """
        length, start = self._surface()
        taken = min(length, count)
        first = start + (length - taken) // 2 if start else 0
        self._remove(start)
        self._insert(start, first - start)
        self._insert(first + taken, start + length - first - taken)
        return range(first, first + taken)

    def give(self, first: int, count: int) -> None:
        """Give back the blocks [first, first + count)."""
        before = self._start.get(first)
        if before is not None:
            count += self._remove(before)
            first = before
        if first + count in self._length:
            count += self._remove(first + count)
        self._insert(first, count)

    def runs(self) -> list[range]:
        """All runs, in order."""
        return [range(start, start + self._length[start]) for start in sorted(self._length)]

    def _insert(self, start: int, length: int) -> None:
        if length:
            self._length[start] = length
            self._start[start + length] = start
            self.free += length
            heapq.heappush(self._largest, (-length, start))
            if len(self._largest) > 4 * len(self._length) + 16:
                self._largest = [(-length, start) for start, length in self._length.items()]
                heapq.heapify(self._largest)

    def _remove(self, start: int) -> int:
        length = self._length.pop(start)
        del self._start[start + length]
        self.free -= length
        return length

    def _surface(self) -> tuple[int, int]:
        while True:
            negative, start = self._largest[0]
            if self._length.get(start) == -negative:
                return -negative, start
            heapq.heappop(self._largest)
