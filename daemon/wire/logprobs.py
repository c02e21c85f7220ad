"""Log-probabilities in the two forms that clients know."""

import codecs

from puma.actors import messages
from puma.daemon.wire.openai import ChatLogprobs, TextLogprobs, TokenLogprob, TopLogprob

LOWEST = -9999.0
"""Stands for minus infinity, which JSON cannot write."""


def chat_logprobs(tokens: list[messages.TokenLogprob]) -> ChatLogprobs:
    """One entry per generated token, with the alternatives that were asked for."""
    return ChatLogprobs(
        [
            TokenLogprob(
                token=_text(token.token),
                logprob=_finite(token.logprob),
                bytes=list(token.token),
                top_logprobs=[
                    TopLogprob(_text(token_bytes), _finite(logprob), list(token_bytes))
                    for _, token_bytes, logprob in token.top
                ],
            )
            for token in tokens
        ]
    )


class TextLogprobsWriter:
    """The older form, whose offsets go on from chunk to chunk."""

    def __init__(self) -> None:
        self._offset = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def write(self, tokens: list[messages.TokenLogprob]) -> TextLogprobs:
        """The next tokens. The chosen one is always among its alternatives."""
        written = TextLogprobs([], [], [], [])
        for token in tokens:
            chosen = {_key(token.token): _finite(token.logprob)}
            alternatives = {_key(token_bytes): _finite(logprob) for _, token_bytes, logprob in token.top}
            written.tokens.append(_key(token.token))
            written.token_logprobs.append(_finite(token.logprob))
            written.top_logprobs.append(alternatives | chosen)
            written.text_offset.append(self._offset)
            self._offset += len(self._decoder.decode(token.token))
        return written


def _text(token: bytes) -> str:
    return token.decode("utf-8", "replace")


def _key(token: bytes) -> str:
    r"""The token's text; part of a character is written as bytes:\xf0\x9f, so that no two keys are alike."""
    try:
        return token.decode()
    except UnicodeDecodeError:
        return "bytes:" + "".join(f"\\x{byte:02x}" for byte in token)


def _finite(logprob: float) -> float:
    return max(logprob, LOWEST)
