"""From what a request says to token ids."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from puma.actors.admission import Bounds, check_ids, check_size
from puma.actors.errors import BadRequest
from puma.actors.messages import Chat, Text, TokenIds, Tokens
from puma.models.errors import PromptError

if TYPE_CHECKING:
    from puma.models.text.model_text import ModelText


def field(prompt: Chat | Text | Tokens) -> str:
    """The field of the request that the prompt came in."""
    return "messages" if isinstance(prompt, Chat) else "prompt"


def size(prompt: Chat | Text | Tokens) -> int:
    """Characters of text that are to be tokenised."""
    match prompt:
        case Chat(messages):
            return characters(messages)
        case Text(text):
            return len(text)
        case Tokens():
            return 0


def characters(value: Any) -> int:
    """Characters in all strings of nested lists and mappings, keys left out."""
    match value:
        case str():
            return len(value)
        case Mapping():
            return sum(characters(item) for item in value.values())  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        case list() | tuple():
            return sum(characters(item) for item in value)  # pyright: ignore[reportUnknownVariableType]
        case _:
            return 0


def encode(prompt: Chat | Text | Tokens, text: ModelText, bounds: Bounds) -> TokenIds:
    """The prompt's tokens, int32[n], n >= 1. Raises BadRequest; may run in any thread."""
    param = field(prompt)
    check_size(size(prompt), bounds, param)
    try:
        match prompt:
            case Chat(messages):
                token_ids = text.encode_chat(messages)
            case Text(string):
                token_ids = text.tokenizer.encode_prompt(string)
            case Tokens(token_ids):
                pass
    except PromptError as error:
        raise BadRequest(error.message, param=param) from error
    return check_ids(token_ids, bounds, param)
