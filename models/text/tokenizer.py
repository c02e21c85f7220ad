"""Tokenizer: byte-level BPE from a GGUF vocabulary. Text a user typed never becomes a control token by `encode`."""

from collections.abc import Mapping
from typing import Any

import tokenizers
from tokenizers.models import BPE

from puma.models.errors import ModelFileError, PromptError
from puma.models.text.byte_alphabet import spelt_bytes
from puma.models.text.control_tokens import ControlTokens
from puma.models.text.pretokenizers import pre_tokenizer
from puma.models.text.vocabulary import Kind, Vocabulary, read_vocabulary

LITERAL = (Kind.CONTROL, Kind.UNKNOWN, Kind.USER_DEFINED)
"""Kinds whose spelling is their text; the others are spelt in the byte alphabet."""

SILENT = (Kind.CONTROL, Kind.UNKNOWN, Kind.UNUSED)
"""Kinds that give no text in an answer."""


class Tokenizer:
    """From text to token ids and back. Stateless after construction; any thread may use it."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        spellings, kinds = vocabulary.spellings, vocabulary.kinds
        self.vocabulary_size = len(spellings)
        self.bos_id = vocabulary.bos_id
        self.end_ids = vocabulary.end_ids
        self.controls = ControlTokens(
            {spelling: n for n, spelling in enumerate(spellings) if kinds[n] in (Kind.CONTROL, Kind.UNKNOWN)}
        )
        self._add_bos = vocabulary.add_bos
        self._spellings = spellings
        self._silent = frozenset(n for n, kind in enumerate(kinds) if kind in SILENT)
        self._bytes = [
            spelling.encode() if kind in LITERAL else spelt_bytes(spelling)
            for spelling, kind in zip(spellings, kinds, strict=True)
        ]
        self._bpe = build(vocabulary)

    @classmethod
    def from_gguf(cls, metadata: Mapping[str, Any]) -> "Tokenizer":
        """Raises ModelFileError, naming the key, when the metadata holds no vocabulary that can be used."""
        return cls(read_vocabulary(metadata))

    def encode(self, text: str) -> list[int]:
        """Text as text: spellings of control tokens are ordinary characters.

        A byte for which the vocabulary has no token is left out, as in the tokenizers such models are trained with.
        Raises PromptError for half a surrogate pair.
        """
        check_unicode(text)
        return self._bpe.encode(text, add_special_tokens=False).ids

    def encode_template(self, text: str) -> list[int]:
        """Text in which spellings of control tokens are those tokens. Raises PromptError as `encode` does."""
        check_unicode(text)
        ids: list[int] = []
        for part in self.controls.split(text):
            if isinstance(part, int):
                ids.append(part)
            else:
                ids += self._bpe.encode(part, add_special_tokens=False).ids
        return ids

    def encode_prompt(self, text: str) -> list[int]:
        """A raw prompt: whoever writes it writes the template too, so control tokens may be spelt in it.

        Begins with the start token if the model wants one. Raises PromptError as `encode` does.
        """
        return self.with_bos(self.encode_template(text))

    def with_bos(self, ids: list[int]) -> list[int]:
        """The ids, with the start token before them if the model wants one and they do not begin with it."""
        if self._add_bos and self.bos_id is not None and ids[:1] != [self.bos_id]:
            return [self.bos_id, *ids]
        return ids

    def spelling(self, token_id: int | None) -> str:
        """How the vocabulary spells a token; empty for None."""
        return "" if token_id is None else self._spellings[token_id]

    def token_bytes(self, token_id: int) -> bytes:
        """The bytes a token stands for; of a control token its spelling, for lists of log-probabilities."""
        return self._bytes[token_id]

    def text_bytes(self, token_id: int) -> bytes:
        """The bytes a token adds to an answer: none for a control token."""
        return b"" if token_id in self._silent else self._bytes[token_id]


def build(vocabulary: Vocabulary) -> tokenizers.Tokenizer:
    """The encoder for text without control tokens. User-defined tokens are found in any text."""
    ids = {spelling: n for n, spelling in enumerate(vocabulary.spellings)}
    known = ids.keys()
    for rank, (left, right) in enumerate(vocabulary.merges):
        if left not in known or right not in known or left + right not in known:
            raise ModelFileError(
                f"tokenizer.ggml.merges[{rank}] joins {left!r} and {right!r}; they, or what they make, "
                "are not in tokenizer.ggml.tokens"
            )
    encoder = tokenizers.Tokenizer(BPE(vocab=ids, merges=vocabulary.merges))
    encoder.pre_tokenizer = pre_tokenizer(vocabulary.pre)
    encoder.add_tokens(  # pyright: ignore[reportUnknownMemberType]
        [
            tokenizers.AddedToken(spelling, normalized=False)
            for spelling, kind in zip(vocabulary.spellings, vocabulary.kinds, strict=True)
            if kind == Kind.USER_DEFINED and spelling
        ]
    )
    return encoder


def check_unicode(text: str) -> None:
    """Raise PromptError where text holds half a surrogate pair, which no encoding can write."""
    if text.isascii():
        return
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise PromptError(
            f"character {error.start + 1} of the text, {text[error.start]!a}, is half a surrogate pair"
        ) from None
