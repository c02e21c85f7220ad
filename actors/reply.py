"""Reply: the one-reader buffer between intake and a request's handler.

Intake puts and never waits; the handler takes all that has piled up. The buffer is bounded by the request's own
token budget, since at most one Piece per generated token is put, so a slow client costs no one anything.
"""

import trio

from puma.actors.messages import Done, Failed, ReplyEvent


class Reply:
    """Events of one request, ending with Done or Failed."""

    def __init__(self) -> None:
        self._events: list[ReplyEvent] = []
        self._arrived = trio.Event()
        self._ended = False

    def put(self, event: ReplyEvent) -> None:
        """Append an event and wake the reader. Whatever comes after Done or Failed is dropped."""
        if self._ended:
            return
        self._ended = isinstance(event, Done | Failed)
        self._events.append(event)
        self._arrived.set()

    async def take(self) -> list[ReplyEvent]:
        """All events since the last call, at least one; waits for it. Not to be called after the last event."""
        await self._arrived.wait()
        events, self._events = self._events, []
        self._arrived = trio.Event()
        return events
