"""Parts of compiled code that are compiled apart, so that several processes can share a first start's work.

A call to a part is a call by name. The name is bound to the part's address when its machine code has been loaded or
compiled, which has to be before the code that calls it is loaded: see compile_entries.
"""

import inspect
from collections.abc import Callable
from typing import Any

import numba
from llvmlite import binding
from numba import types
from numba.core import cgutils, sigutils
from numba.extending import intrinsic

from puma.kernels.compile import ENTRIES, OPTIONS, Entry

WORD = types.int64
TABLE = types.int64[::1]
"""A row of a table, or a table of one row."""


class Part(Entry):
    """An entry that compiled code calls, by its symbol."""

    rank = 0

    def __init__(self, dispatcher: Any, signature: Any, cost: int) -> None:
        super().__init__(dispatcher, signature, cost)
        self.symbol = f"puma.{self.name}"
        self.arguments, self.result = sigutils.normalize_signature(signature)
        # Whoever only compiles callers never calls: any address will do, and this one ends a mistake at once.
        binding.add_symbol(self.symbol, binding.address_of_symbol("abort"))

    def load(self) -> bool:
        """As of any entry; callers that are loaded from then on reach it."""
        if loaded := super().load():
            self._bind()
        return loaded

    def compile(self) -> None:
        """As of any entry; callers that are loaded from then on reach it."""
        try:
            super().compile()
        finally:
            if self.compiled:
                self._bind()

    def _bind(self) -> None:
        result = self.dispatcher.overloads[self.arguments]
        address = result.library.get_pointer_to_function(result.fndesc.llvm_func_name)
        binding.add_symbol(self.symbol, address)

    def emit(self, context: Any, builder: Any, signature: Any, values: Any) -> Any:
        """A call, in the convention of numba's own functions."""
        kind = context.call_conv.get_function_type(signature.return_type, signature.args)
        callee = cgutils.get_or_insert_function(builder.module, kind, self.symbol)
        arguments = (builder, callee, signature.return_type, signature.args, values)
        status, returned = context.call_conv.call_function(*arguments)
        with cgutils.if_unlikely(builder, status.is_error):
            context.call_conv.return_status_propagate(builder, status)
        return returned


def part(signature: Any, *, cost: int = 1) -> Callable[[Callable[..., Any]], Any]:
    """Like `entry`, for a function that compiled code calls."""

    def decorate(function: Callable[..., Any]) -> Any:
        made = Part(numba.njit(cache=True, **OPTIONS)(function), signature, cost)
        ENTRIES.append(made)

        def typing(context: Any, *given: Any) -> Any:
            return made.result(*made.arguments), made.emit

        typing.__name__ = typing.__qualname__ = function.__name__
        typing.__module__ = function.__module__
        typing.__doc__ = function.__doc__
        names = ["context", *inspect.signature(function).parameters]
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        typing.__signature__ = inspect.Signature([inspect.Parameter(name, kind) for name in names])
        return intrinsic(typing)

    return decorate
