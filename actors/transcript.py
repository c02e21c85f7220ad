"""The text side of one sequence: tokens in, pieces of final text out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from puma.actors.messages import NewToken, Piece, Submit, TokenLogprob
from puma.models.text.detokenizer import Detokenizer
from puma.models.text.stop import StopFinder

if TYPE_CHECKING:
    from puma.models.text.tokenizer import Tokenizer


class Transcript:
    """Whole characters, free of stop strings; counts every sampled token."""

    def __init__(self, submit: Submit, prompt_tokens: int, tokenizer: Tokenizer) -> None:
        self.prompt_tokens = prompt_tokens
        self.cached_tokens = 0
        self.completion_tokens = 0
        self._tokenizer = tokenizer
        self._wants_logprobs = submit.sampling.logprobs >= 0
        self._detokenizer = Detokenizer(tokenizer)
        self._stop = StopFinder(submit.stop)

    def push(self, token: NewToken) -> tuple[Piece | None, bool]:
        """What became final with this token, if anything, and whether a stop string was completed.

        The log-probability of a token goes out at once: no later than its text, which may be held back.
        """
        self.completion_tokens += 1
        # The token that ends an answer has no text, whatever its spelling.
        ends = token.token_id in self._tokenizer.end_ids
        text, hit = ("", False) if ends else self._stop.push(self._detokenizer.push(token.token_id))
        logprobs = (self._logprob(token),) if self._wants_logprobs else ()
        return (Piece(text, logprobs) if text or logprobs else None), hit

    def finish(self) -> tuple[Piece | None, bool]:
        """What was held back, now that no token follows, and whether it completed a stop string."""
        text, hit = self._stop.push(self._detokenizer.flush())
        if not hit:
            text += self._stop.flush()
        return (Piece(text) if text else None), hit

    def _logprob(self, token: NewToken) -> TokenLogprob:
        spelling = self._tokenizer.token_bytes
        top = tuple((one, spelling(one), logprob) for one, logprob in token.top)
        return TokenLogprob(token.token_id, spelling(token.token_id), token.logprob, top)
