"""How much of a sequence's keys and values is known to be right, and how much of that the KV cache has been told."""


class Written:
    """Positions from the beginning on. Plain numbers; a step that failed leaves a gap, beyond which nothing counts."""

    __slots__ = ("positions", "told")

    def __init__(self) -> None:
        self.positions = 0
        self.told = 0

    def begin(self, cached: int) -> None:
        """A new table, whose first `cached` tokens were found in the cache."""
        self.positions = self.told = cached

    def confirm(self, start: int, count: int, known: int) -> None:
        """A step computed the positions [start, start + count); `known` tokens have ids."""
        if start == self.positions:
            self.positions = min(start + count, known)

    def distrust(self) -> None:
        """Something in it is no number, wherever it came in."""
        self.positions = self.told = 0

    def tell(self, tokens_per_block: int) -> tuple[int, int] | None:
        """First position and end of the full blocks not told yet; they are told now. None when there are none."""
        end = self.positions // tokens_per_block * tokens_per_block
        if end <= self.told:
            return None
        start, self.told = self.told, end
        return start, end
