"""Detokenizer: token ids in, whole characters out."""

import codecs

from puma.models.text.tokenizer import Tokenizer


class Detokenizer:
    """The text of one answer, piece by piece.

    Bytes wait until they make a character, so no piece ever ends within one. All pieces joined are what decoding all
    bytes at once gives: bytes that cannot be UTF-8 become U+FFFD. The work for a token does not depend on how many
    came before.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._text_bytes = tokenizer.text_bytes
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def push(self, token_id: int) -> str:
        """The characters that this token completes; often none. Control tokens have no text."""
        return self._decoder.decode(self._text_bytes(token_id))

    def flush(self) -> str:
        """What is left when no token follows: U+FFFD for a character that was only begun."""
        return self._decoder.decode(b"", final=True)
