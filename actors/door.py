"""The door: which requests are inside, how many of them wait, and who may still enter.

The engine's handle and intake share it. Both live on the event loop, and nothing here awaits between two changes.
"""

import trio

from puma.actors.errors import QueueFull, RequestError, ShuttingDown
from puma.actors.messages import Failed, SequenceId, Submit


class Guest:
    """A request inside."""

    __slots__ = ("sequence", "started", "submit", "withdrawn")

    def __init__(self, submit: Submit) -> None:
        self.submit = submit
        self.sequence: SequenceId | None = None
        """Given when it is admitted."""
        self.started = False
        self.withdrawn = False


class Door:
    """Requests from their submission until their last event, by request id."""

    def __init__(self, max_waiting: int) -> None:
        self.max_waiting = max_waiting
        self.guests: dict[str, Guest] = {}
        self._by_sequence: dict[SequenceId, Guest] = {}
        self._waiting = 0
        self._refusal: RequestError | None = None
        self._empty = trio.Event()
        self._empty.set()

    def enter(self, submit: Submit) -> None:
        """Let a request in. Raises ShuttingDown, or QueueFull when as many wait as may wait."""
        if self._refusal is not None:
            raise self._refusal.with_traceback(None)
        if self._waiting >= self.max_waiting:
            raise QueueFull(f"{self._waiting} requests wait already, as many as may; try again later")
        if submit.request_id in self.guests:
            raise ValueError(f"request {submit.request_id} is inside already")
        self.guests[submit.request_id] = Guest(submit)
        self._waiting += 1
        if self._empty.is_set():
            self._empty = trio.Event()

    def admit(self, guest: Guest, sequence: SequenceId) -> None:
        """A request has become a sequence."""
        guest.sequence = sequence
        self._by_sequence[sequence] = guest

    def start(self, sequence: SequenceId) -> None:
        """A sequence waits no longer; one that has left already is ignored."""
        guest = self._by_sequence.get(sequence)
        if guest is not None and not guest.started:
            guest.started = True
            self._waiting -= 1

    def leave(self, guest: Guest) -> None:
        """A request has had its last event, or was withdrawn."""
        del self.guests[guest.submit.request_id]
        if guest.sequence is not None:
            del self._by_sequence[guest.sequence]
        self._waiting -= not guest.started
        if not self.guests:
            self._empty.set()

    def request_of(self, sequence: SequenceId) -> str:
        """The request id of a sequence; empty when its request has left."""
        guest = self._by_sequence.get(sequence)
        return guest.submit.request_id if guest is not None else ""

    def refuse(self, error: RequestError) -> None:
        """Whoever tries to enter from now on gets this error; the first one given stands."""
        self._refusal = self._refusal or error

    def clear(self, error: RequestError) -> None:
        """The engine is gone: refuse whoever comes, and tell everyone inside."""
        self.refuse(ShuttingDown("the engine has stopped"))
        for guest in list(self.guests.values()):
            guest.submit.reply.put(Failed(error))
            self.leave(guest)

    async def empty(self) -> None:
        """Wait until nobody is inside."""
        await self._empty.wait()
