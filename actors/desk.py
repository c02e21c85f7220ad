"""The desk: every request that is being answered, from its tokens to its last event. Intake's plain core."""

from __future__ import annotations

import logging
from itertools import count
from typing import TYPE_CHECKING

import trio

from puma.actors.admission import Bounds, budget
from puma.actors.channels import post
from puma.actors.door import Door, Guest
from puma.actors.errors import EngineFailed, RequestError, ShuttingDown
from puma.actors.messages import (
    Admit,
    Cancel,
    CancelReason,
    Done,
    Emitted,
    Ended,
    Failed,
    FinishReason,
    NewToken,
    SequenceId,
    Started,
    Submit,
    TokenIds,
    ToScheduler,
    Withdraw,
)
from puma.actors.prompt import encode, field
from puma.actors.transcript import Transcript

if TYPE_CHECKING:
    from puma.models.text.model_text import ModelText

logger = logging.getLogger(__name__)


class Desk:
    """Answers by sequence. Requests that are still being tokenised are known to the door only."""

    def __init__(
        self, text: ModelText, bounds: Bounds, door: Door, scheduler: trio.MemorySendChannel[ToScheduler]
    ) -> None:
        self._text = text
        self._bounds = bounds
        self._door = door
        self._scheduler = scheduler
        self._sequence_ids = count(1)
        self._answers: dict[SequenceId, tuple[Guest, Transcript]] = {}

    def expects(self, submit: Submit) -> bool:
        """Whether anyone still waits for this request to be admitted."""
        guest = self._door.guests.get(submit.request_id)
        return guest is not None and guest.submit is submit and not guest.withdrawn

    def encode(self, submit: Submit) -> TokenIds | RequestError:
        """The prompt's tokens, or why it has none. Changes nothing, and may run in any thread."""
        try:
            return encode(submit.prompt, self._text, self._bounds)
        except RequestError as error:
            return error
        except Exception as error:
            # A chat template is a program out of a file: whatever goes wrong in it concerns one request.
            logger.exception("request %s: the prompt could not be tokenised", submit.request_id)
            return EngineFailed(f"the prompt could not be tokenised: {error!r}", param=field(submit.prompt))

    def admit(self, submit: Submit, encoded: TokenIds | RequestError) -> None:
        """Admit a tokenised request, or refuse it; nothing if it was withdrawn meanwhile."""
        if not self.expects(submit):
            return
        guest = self._door.guests[submit.request_id]
        if isinstance(encoded, RequestError):
            self._fail(guest, encoded)
            return
        try:
            tokens = budget(len(encoded), submit.max_tokens, self._bounds, field(submit.prompt))
        except RequestError as error:
            self._fail(guest, error)
            return
        sequence = next(self._sequence_ids)
        self._door.admit(guest, sequence)
        self._answers[sequence] = (guest, Transcript(submit, len(encoded), self._text.tokenizer))
        submit.reply.put(Started(len(encoded)))
        admit = Admit(
            sequence=sequence,
            token_ids=encoded,
            sampling=submit.sampling,
            budget=tokens,
            stop_ids=self._text.tokenizer.end_ids,
        )
        post(self._scheduler, admit, "the scheduler")

    def withdraw(self, message: Withdraw) -> None:
        """Forget a request, wherever it is; one that has ended, or is unknown, is ignored."""
        guest = self._door.guests.get(message.request_id)
        if guest is not None:
            self._cancel(guest, message.reason)
            self._forget(guest)

    def publish(self, emitted: Emitted) -> None:
        """Hand on what a step yielded."""
        for begun in emitted.begun:
            self._door.start(begun.sequence)
            if begun.sequence in self._answers:
                self._answers[begun.sequence][1].cached_tokens = begun.cached_tokens
        for token in emitted.tokens:
            if token.sequence in self._answers:
                self._add(token, *self._answers[token.sequence])
        for ended in emitted.ended:
            if ended.sequence in self._answers:
                self._close(ended, *self._answers[ended.sequence])

    def _add(self, token: NewToken, guest: Guest, transcript: Transcript) -> None:
        piece, hit = transcript.push(token)
        if piece is not None:
            guest.submit.reply.put(piece)
        if hit:
            self._cancel(guest, "stop string")
            self._finish("stop", guest, transcript)

    def _close(self, ended: Ended, guest: Guest, transcript: Transcript) -> None:
        if ended.finish == "failed":
            self._fail(guest, EngineFailed(ended.failure))
        elif ended.finish == "cancelled":
            self._fail(guest, ShuttingDown("the request was cancelled"))
        else:
            piece, hit = transcript.finish()
            if piece is not None:
                guest.submit.reply.put(piece)
            self._finish("stop" if hit else ended.finish, guest, transcript)

    def _finish(self, finish: FinishReason, guest: Guest, transcript: Transcript) -> None:
        done = Done(finish, transcript.prompt_tokens, transcript.completion_tokens, transcript.cached_tokens)
        guest.submit.reply.put(done)
        self._forget(guest)

    def _fail(self, guest: Guest, error: RequestError) -> None:
        guest.submit.reply.put(Failed(error))
        self._forget(guest)

    def _cancel(self, guest: Guest, reason: CancelReason) -> None:
        if guest.sequence is not None:
            post(self._scheduler, Cancel(guest.sequence, reason), "the scheduler")

    def _forget(self, guest: Guest) -> None:
        if guest.sequence is not None:
            del self._answers[guest.sequence]
        self._door.leave(guest)
