"""Answer: the slot in which a question to an actor carries its reply back. Filling it never waits."""

from typing import Generic, TypeVar

import trio

T = TypeVar("T")


class Answer(Generic[T]):
    """One value or one error, for one reader. The first to arrive stands."""

    def __init__(self) -> None:
        self._arrived = trio.Event()
        self._value: T | None = None
        self._error: Exception | None = None

    def put(self, value: T) -> None:
        if not self._arrived.is_set():
            self._value = value
            self._arrived.set()

    def fail(self, error: Exception) -> None:
        if not self._arrived.is_set():
            self._error = error
            self._arrived.set()

    async def get(self) -> T:
        """The value; raises the error if one was put instead."""
        await self._arrived.wait()
        if self._error is not None:
            raise self._error
        return self._value  # pyright: ignore[reportReturnType]
