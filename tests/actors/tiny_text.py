"""A tiny vocabulary, as a model file would hold it: one token per byte, its id being the byte, and a few more."""

import numpy as np

from puma.actors.admission import Bounds
from puma.config.memory import MemoryPlan
from puma.models.text.byte_alphabet import CHARACTER_OF_BYTE
from puma.models.text.model_text import ModelText

START, END = 256, 257
"""<|im_start|> and <|im_end|>."""
HELLO = 261
"""The token "hello"."""

MERGES = ["h e", "l l", "he ll", "hell o"]
SPELLINGS = [
    *(CHARACTER_OF_BYTE[byte] for byte in range(256)),
    "<|im_start|>",
    "<|im_end|>",
    *(merge.replace(" ", "") for merge in MERGES),
]
TEMPLATE = """
{%- for message in messages %}
{%- if message.content == 'refuse me' %}{{ raise_exception('as you like') }}{% endif %}<|im_start|>{{ message.role }}
{{ message.content }}<|im_end|>
{% endfor %}<|im_start|>assistant{{ '\n' }}"""


def tiny_text(end: int = END) -> ModelText:
    kinds = [3 if spelling.startswith("<|") else 1 for spelling in SPELLINGS]
    return ModelText.from_gguf(
        {
            "tokenizer.ggml.model": "gpt2",
            "tokenizer.ggml.pre": "smollm",
            "tokenizer.ggml.tokens": SPELLINGS,
            "tokenizer.ggml.token_type": np.array(kinds, np.int32),
            "tokenizer.ggml.merges": MERGES,
            "tokenizer.ggml.eos_token_id": end,
            "tokenizer.chat_template": TEMPLATE,
        }
    )


TEXT = tiny_text()
BOUNDS = Bounds(
    context_length=64,
    memory=MemoryPlan(token_bytes=10, block_bytes=160, tokens_per_block=16, blocks=100),
    default_max_tokens=20,
    vocabulary_size=TEXT.tokenizer.vocabulary_size,
    longest_token_bytes=12,
)
