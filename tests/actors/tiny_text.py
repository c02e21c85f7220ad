"""A tiny vocabulary, as a model file would hold it: one token per byte, its id being the byte, and a few more."""

import numpy as np

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
{%- if not messages %}{{ raise_exception('there are no messages') }}{% endif %}
{%- for message in messages %}<|im_start|>{{ message.role }}
{{ message.content }}<|im_end|>
{% endfor %}<|im_start|>assistant
"""


def tiny_text(template: str = TEMPLATE) -> ModelText:
    kinds = [3 if spelling.startswith("<|") else 1 for spelling in SPELLINGS]
    return ModelText.from_gguf(
        {
            "tokenizer.ggml.model": "gpt2",
            "tokenizer.ggml.pre": "smollm",
            "tokenizer.ggml.tokens": SPELLINGS,
            "tokenizer.ggml.token_type": np.array(kinds, np.int32),
            "tokenizer.ggml.merges": MERGES,
            "tokenizer.ggml.eos_token_id": END,
            "tokenizer.chat_template": template,
        }
    )
