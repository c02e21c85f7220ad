"""The vocabulary in GGUF metadata, checked: spellings, kinds, merges, and the tokens with a special meaning."""

from collections.abc import Mapping
from enum import IntEnum
from typing import Any, cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from puma.models.errors import ModelFileError

END_SPELLINGS = frozenset(
    [
        "<|im_end|>",
        "<|endoftext|>",
        "<|end_of_text|>",
        "<|end|>",
        "<|eot_id|>",
        "<|eom_id|>",
        "<end_of_turn>",
        "<end_of_utterance>",
        "<eos>",
        "</s>",
        "<EOT>",
        "<｜end▁of▁sentence｜>",
    ]
)
"""Tokens that end a turn or a text in the models that have them, also where the metadata forgets to say so."""

END_KEYS = ("eos_token_id", "eot_token_id", "eom_token_id")


class Kind(IntEnum):
    """What a token is: `llama_token_type`."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


class Vocabulary(msgspec.Struct, frozen=True, kw_only=True):
    """Everything about tokens that a model file says. Lists are indexed by token id."""

    spellings: list[str]
    kinds: list[int]
    merges: list[tuple[str, str]]
    """The earlier, the stronger."""
    pre: object
    """Name of the pre-tokenizer."""
    bos_id: int | None
    end_ids: frozenset[int]
    add_bos: bool
    """Whether a prompt begins with bos_id."""


def read_vocabulary(metadata: Mapping[str, Any]) -> Vocabulary:
    """Raises ModelFileError, naming the key, unless this is a byte-level BPE vocabulary that holds together."""
    model = metadata.get("tokenizer.ggml.model")
    if model != "gpt2":
        raise ModelFileError(f"tokenizer.ggml.model is {model!r}; supported: 'gpt2' (byte-level BPE)")
    spellings = text_list(metadata, "tokenizer.ggml.tokens")
    if not spellings:
        raise ModelFileError("tokenizer.ggml.tokens is missing or empty")
    ends = [token_id(metadata, key, len(spellings)) for key in END_KEYS]
    kinds = read_kinds(metadata, len(spellings))
    named = [
        number
        for number, spelling in enumerate(spellings)
        if spelling in END_SPELLINGS and kinds[number] != Kind.NORMAL
    ]
    bos_id = token_id(metadata, "bos_token_id", len(spellings))
    add_bos = metadata.get("tokenizer.ggml.add_bos_token", False)
    if not isinstance(add_bos, bool):
        raise ModelFileError(f"tokenizer.ggml.add_bos_token is {add_bos!r}; it must be true or false")
    return Vocabulary(
        spellings=spellings,
        kinds=kinds,
        merges=[split_merge(merge, rank) for rank, merge in enumerate(text_list(metadata, "tokenizer.ggml.merges"))],
        pre=metadata.get("tokenizer.ggml.pre"),
        bos_id=bos_id,
        end_ids=frozenset([*(end for end in ends if end is not None), *named]),
        add_bos=add_bos and bos_id is not None,
    )


def text_list(metadata: Mapping[str, Any], key: str) -> list[str]:
    """An array of strings, empty when it is missing. Raises ModelFileError unless all are UTF-8."""
    value = metadata.get(key, [])
    # An empty array may be of any type.
    if isinstance(value, np.ndarray) and not value.size:
        return []
    if not isinstance(value, list) or not all(isinstance(item, str) for item in cast("list[object]", value)):
        raise ModelFileError(f"{key} is no array of strings")
    items = cast("list[str]", value)
    for index, item in enumerate(items):
        if not item.isascii() and not is_text(item):
            raise ModelFileError(f"{key}[{index}] is not UTF-8: {item.encode(errors='surrogateescape')!r}")
    return items


def is_text(item: str) -> bool:
    """Whether it can be encoded: no surrogate escape in it."""
    try:
        item.encode()
    except UnicodeEncodeError:
        return False
    return True


def read_kinds(metadata: Mapping[str, Any], count: int) -> list[int]:
    value = metadata.get("tokenizer.ggml.token_type")
    if value is None:
        return [int(Kind.NORMAL)] * count
    kinds = cast("NDArray[Any]", value)
    if not isinstance(value, np.ndarray) or kinds.dtype.kind not in "iu" or kinds.shape != (count,):
        raise ModelFileError(f"tokenizer.ggml.token_type is no array of {count} whole numbers, one for each token")
    return kinds.tolist()


def token_id(metadata: Mapping[str, Any], name: str, count: int) -> int | None:
    """The token that a key names; None when the key is missing. Raises ModelFileError for an id out of range."""
    value = metadata.get(f"tokenizer.ggml.{name}")
    if value is None:
        return None
    if type(value) is not int or not 0 <= value < count:
        raise ModelFileError(f"tokenizer.ggml.{name} is {value!r}; the vocabulary has the ids 0 to {count - 1}")
    return value


def split_merge(merge: str, rank: int) -> tuple[str, str]:
    """The two halves of "a b"; in the byte alphabet no token has a space in it."""
    left, _, right = merge.partition(" ")
    if not left or not right:
        raise ModelFileError(f"tokenizer.ggml.merges[{rank}] is {merge!r}; it must be two tokens with a space between")
    return left, right
