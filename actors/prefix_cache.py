"""The prefix cache: which blocks hold which tokens, so that prompts that begin alike are computed once. Plain core.

A tree of full blocks. A block stands for its own tokens after those of its parent; children are found by their tokens,
which are kept, so equal hashes can never lead to foreign content. A block that no table holds is idle: it stays until
its memory is wanted. Whoever holds a block holds its parents too, so below an idle block all are idle.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator

from puma.actors.messages import TokenIds

ROOT = -1
"""Where every chain begins: no block."""


def contents(token_ids: TokenIds, tokens_per_block: int) -> Iterator[bytes]:
    """What stands in each full block of int32[n] tokens: the tokens themselves, as bytes."""
    raw, size = token_ids.tobytes(), tokens_per_block * token_ids.itemsize
    return (raw[start : start + size] for start in range(0, len(raw) - size + 1, size))


class Node:
    """A block whose content is known."""

    __slots__ = ("block", "children", "content", "parent")

    def __init__(self, block: int, content: bytes, parent: Node | None) -> None:
        self.block = block
        self.content = content
        self.parent = parent
        self.children: dict[bytes, Node] = {}


class PrefixCache:
    """Blocks by their content, and the order in which idle ones are given up."""

    def __init__(self, tokens_per_block: int) -> None:
        self.tokens_per_block = tokens_per_block
        self._nodes: dict[int, Node] = {ROOT: Node(ROOT, b"", None)}
        self._idle: OrderedDict[int, None] = OrderedDict()
        """Least recently used first, and of one table the last block first: the first one never has children."""

    @property
    def idle(self) -> int:
        """Blocks that no table holds."""
        return len(self._idle)

    def __contains__(self, block: int) -> bool:
        """Whether a block can be found by its content."""
        return block in self._nodes

    def is_idle(self, block: int) -> bool:
        return block in self._idle

    def match(self, token_ids: TokenIds, most: int) -> list[int]:
        """The longest chain of known blocks that these tokens begin with, `most` at most."""
        node, found = self._nodes[ROOT], list[int]()
        if not node.children or most < 1:
            return found
        for content in contents(token_ids[: most * self.tokens_per_block], self.tokens_per_block):
            child = node.children.get(content)
            if child is None:
                break
            node = child
            found.append(node.block)
        return found

    def add(self, parent: int, content: bytes, block: int) -> int | None:
        """A block that a table holds has this content, after that of its parent.

        An idle block with the same content is replaced, and given up: it is returned. Nothing is noted when a table
        holds such a block, or when the parent's content is not known: then this table is not what would be found.
        """
        above = self._nodes.get(parent)
        if above is None:
            return None
        node = above.children.get(content)
        if node is None:
            above.children[content] = self._nodes[block] = Node(block, content, above)
            return None
        if node.block not in self._idle:
            return None
        replaced, node.block = node.block, block
        del self._idle[replaced], self._nodes[replaced]
        self._nodes[block] = node
        return replaced

    def take(self, block: int) -> None:
        """A table holds a known block again."""
        self._idle.pop(block, None)

    def retire(self, blocks: Iterable[int]) -> None:
        """No table holds these known blocks any more; a table's last block comes first."""
        self._idle.update(dict.fromkeys(blocks))

    def evict(self) -> int:
        """Forget the idle block that was not used for the longest time, and give it up; there must be one."""
        block, _ = self._idle.popitem(last=False)
        self._cut(self._nodes[block])
        return block

    def forget(self, block: int) -> list[int]:
        """Forget a block's content and all that follows it. The idle ones among them, which are given up."""
        node = self._nodes.get(block)
        if node is None:
            return []
        below = list(descendants(node))
        self._cut(node)
        given_up: list[int] = []
        for one in below:
            self._nodes.pop(one.block, None)
            if one.block in self._idle:
                del self._idle[one.block]
                given_up.append(one.block)
        return given_up

    def known(self) -> dict[int, tuple[bytes, ...]]:
        """Each known block with what it and its parents hold, from the beginning."""
        return {
            node.block: (*(one.content for one in reversed(list(ancestors(node)))), node.content)
            for node in self._nodes.values()
            if node.parent is not None
        }

    def idle_blocks(self) -> list[int]:
        """Idle blocks in the order in which they are given up."""
        return list(self._idle)

    def _cut(self, node: Node) -> None:
        assert node.parent is not None
        del node.parent.children[node.content]
        del self._nodes[node.block]


def descendants(node: Node) -> Iterator[Node]:
    """A node and all below it."""
    open_nodes = [node]
    while open_nodes:
        one = open_nodes.pop()
        yield one
        open_nodes += one.children.values()


def ancestors(node: Node) -> Iterator[Node]:
    """All above a node but the root, the nearest first."""
    above = node.parent
    while above is not None and above.parent is not None:
        yield above
        above = above.parent
