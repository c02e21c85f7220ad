"""Budget: what one rendering of a chat template may cost, in characters. A template is a program out of a file.

Charged are: each turn of a loop, each call, each character written or joined. So a template that does not end, or
whose text would fill the memory, stops with TooMuch.
"""

from typing import Any

from jinja2 import nodes
from jinja2.runtime import Context
from jinja2.visitor import NodeTransformer

LARGEST = 64_000_000
"""Characters. The work they stand for takes seconds at most."""

TURN = 16
CALL = 128
"""What a turn of a loop, and a call, cost beside the text they write."""

VARIABLE = "puma budget"
"""Its place among the variables of a rendering: no template can spell it."""


class TooMuch(Exception):
    """A rendering has spent its budget."""


class Budget:
    """What is left."""

    def __init__(self, characters: int) -> None:
        self.left = characters

    def charge(self, characters: int) -> None:
        """Raise TooMuch when that many are no longer left."""
        self.left -= characters
        if self.left < 0:
            raise TooMuch


def budget_of(context: Context) -> Budget:
    return context.parent[VARIABLE]


class Counted:
    """An iterable that charges for every turn."""

    def __init__(self, items: Any, budget: Budget, cost: int) -> None:
        self._items, self._budget, self._cost = items, budget, cost

    def __iter__(self) -> Any:
        for item in self._items:
            self._budget.charge(self._cost)
            yield item

    def __len__(self) -> int:
        return len(self._items)


class Meter(NodeTransformer):
    """Rewrites a parsed template so that its loops are counted and its joins (`~`) charged."""

    def visit_For(self, node: nodes.For) -> nodes.Node:
        self.generic_visit(node)
        cost = nodes.Const(TURN + written(node))
        node.iter = nodes.Filter(node.iter, "puma counted", [cost], [], None, None)
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:
        self.generic_visit(node)
        return nodes.Filter(nodes.List(node.nodes), "puma joined", [], [], None, None)


def written(node: nodes.Node) -> int:
    """Characters of plain text within a node."""
    return sum(len(data.data) for data in node.find_all(nodes.TemplateData))


def size(value: Any) -> int:
    """What joining or repeating this value copies: characters, elements, or a number's bytes."""
    if isinstance(value, (str, bytes, list, tuple)):
        return len(value)  # pyright: ignore[reportUnknownArgumentType]
    return value.bit_length() // 8 if isinstance(value, int) else 0


def operation_size(operator: str, left: Any, right: Any) -> int:
    """An upper bound of the size of `left operator right`, for +, *, **, %."""
    match operator, left, right:
        case "**", _, int():
            return (size(left) + 1) * abs(right)
        case "*", str() | bytes() | list() | tuple(), int():
            return size(left) * max(right, 0)  # pyright: ignore[reportUnknownArgumentType]
        case "*", int(), str() | bytes() | list() | tuple():
            return size(right) * max(left, 0)  # pyright: ignore[reportUnknownArgumentType]
        case "%", str(), _:
            return widths(left) + size(right)
        case _:
            return size(left) + size(right)


def widths(text: str) -> int:
    """The sum of all numbers in a format string: no field is padded to more."""
    digits = "".join(character if character in "0123456789" else " " for character in text)
    return sum(int(number) if len(number) < 10 else LARGEST + 1 for number in digits.split())


def call_size(function: Any, arguments: tuple[Any, ...]) -> int:
    """An upper bound of what a method of a string may write."""
    # The sandbox wraps str.format.
    function = getattr(function, "__wrapped__", function)
    text = getattr(function, "__self__", None)
    if not isinstance(text, str):
        return 0
    name = getattr(function, "__name__", "")
    return text_size(name, text, arguments)


def text_size(name: str, text: str, arguments: tuple[Any, ...]) -> int:
    """The same for a method, or filter, by its name."""
    if name == "replace" and len(arguments) > 1 and isinstance(arguments[0], str) and isinstance(arguments[1], str):
        return len(text) + text.count(arguments[0]) * len(arguments[1])
    padding = sum(abs(argument) for argument in arguments if isinstance(argument, int))
    return len(text) + padding + (widths(text) if name in ("format", "format_map") else 0)
