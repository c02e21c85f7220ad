"""Answers: the events of all sequences of one HTTP request, in one buffer with one reader."""

import trio

from puma.actors.errors import BadRequest, RequestError
from puma.actors.messages import Done, Failed, Piece, ReplyEvent, Started
from puma.actors.reply import Reply
from puma.daemon.wire.compose import Choice


class _Indexed(Reply):
    """The reply of one sequence; it puts into the buffer of all."""

    def __init__(self, answers: "Answers", index: int) -> None:
        super().__init__()
        self._answers = answers
        self._index = index

    def put(self, event: ReplyEvent) -> None:
        self._answers.put(self._index, event)


class Answers:
    """`choices` are the answers, complete once `finished`. A sequence that fails ends the whole request."""

    def __init__(self, count: int) -> None:
        self.replies: tuple[Reply, ...] = tuple(_Indexed(self, index) for index in range(count))
        self.choices = [Choice() for _ in range(count)]
        self._not_admitted = set(range(count))
        self._open = set(range(count))
        self._events: list[tuple[int, Piece | Done]] = []
        self._failure: RequestError | None = None
        self._changed = trio.Event()

    def put(self, index: int, event: ReplyEvent) -> None:
        """Take note of an event and wake the reader; what comes after a sequence's end is dropped."""
        if index not in self._open:
            return
        match event:
            case Started(prompt_tokens):
                self._not_admitted.discard(index)
                self.choices[index].prompt_tokens = prompt_tokens
            case Piece():
                self._events.append((index, event))
            case Done():
                self._open.discard(index)
                self._events.append((index, event))
            case Failed(error):
                self._open.clear()
                self._failure = self._named(error, index)
        self._changed.set()

    @property
    def finished(self) -> bool:
        """Whether everything has been put and taken."""
        return not self._open and not self._events and self._failure is None

    async def admitted(self) -> None:
        """Wait until every sequence was admitted. Raises the RequestError of one that was not."""
        while self._not_admitted and self._failure is None:
            await self._wait()
        if self._failure is not None:
            raise self._failure

    async def take(self) -> list[tuple[int, Piece | Done]]:
        """What has piled up since the last call, each sequence's pieces joined into one; waits for it.

        Raises the RequestError of a sequence that failed, after what was put before it has been taken.
        A cancelled call loses nothing.
        """
        while not self._events:
            if self._failure is not None:
                raise self._failure
            await self._wait()
        events, self._events = self._events, []
        pieces: dict[int, list[Piece]] = {}
        ends: list[tuple[int, Done]] = []
        for index, event in events:
            if isinstance(event, Piece):
                pieces.setdefault(index, []).append(event)
            else:
                ends.append((index, event))
        for index, end in ends:
            choice = self.choices[index]
            choice.finish = end.finish
            choice.prompt_tokens, choice.completion_tokens = end.prompt_tokens, end.completion_tokens
            choice.cached_tokens = end.cached_tokens
        return [*((index, _join(parts)) for index, parts in pieces.items()), *ends]

    async def collect(self) -> list[Choice]:
        """All answers, once the last one is there. Raises the RequestError of one that failed."""
        while not self.finished:
            for index, event in await self.take():
                if isinstance(event, Piece):
                    choice = self.choices[index]
                    choice.text += event.text
                    choice.logprobs.extend(event.logprobs)
        return self.choices

    def _named(self, error: RequestError, index: int) -> RequestError:
        """The error, saying which of several prompts it is about."""
        if len(self.choices) == 1 or not isinstance(error, BadRequest):
            return error
        return BadRequest(f"prompt[{index}]: {error.message}", param=error.param, code=error.code)

    async def _wait(self) -> None:
        self._changed = trio.Event()
        await self._changed.wait()


def _join(pieces: list[Piece]) -> Piece:
    if len(pieces) == 1:
        return pieces[0]
    return Piece("".join(piece.text for piece in pieces), tuple(entry for piece in pieces for entry in piece.logprobs))
