"""LiveRequests: what was submitted to the engine and whose handler has not ended yet."""

import trio

from puma.actors.errors import RequestError
from puma.actors.messages import Failed
from puma.actors.reply import Reply


class LiveRequests:
    """Replies by request id."""

    def __init__(self) -> None:
        self._replies: dict[str, Reply] = {}
        self._none_left = trio.Event()
        self._none_left.set()

    def __len__(self) -> int:
        return len(self._replies)

    def add(self, request_id: str, reply: Reply) -> None:
        if not self._replies:
            self._none_left = trio.Event()
        self._replies[request_id] = reply

    def remove(self, request_id: str) -> None:
        """Does nothing when it is not there."""
        self._replies.pop(request_id, None)
        if not self._replies:
            self._none_left.set()

    def fail(self, error: RequestError) -> list[str]:
        """Tell every client this error; returns the ids of their requests."""
        for reply in self._replies.values():
            reply.put(Failed(error))
        return list(self._replies)

    async def none_left(self) -> None:
        """Wait until the last handler has ended."""
        await self._none_left.wait()
