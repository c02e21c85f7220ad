"""Small vocabularies, as GGUF metadata."""

from typing import Any

import numpy as np

from puma.models.text.byte_alphabet import CHARACTER_OF_BYTE

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED = 1, 2, 3, 4, 5

CHATML = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


def metadata(
    control: tuple[str, ...] = ("<|im_start|>", "<|im_end|>"),
    user_defined: tuple[str, ...] = (),
    merges: tuple[str, ...] = (),
    template: Any = CHATML,
    **keys: Any,
) -> dict[str, Any]:
    """Control tokens from id 0, then user-defined ones, all bytes, and what the merges make."""
    alphabet = [CHARACTER_OF_BYTE[byte] for byte in range(256)]
    tokens = [*control, *user_defined, *alphabet, *(merge.replace(" ", "") for merge in merges)]
    kinds = [CONTROL] * len(control) + [USER_DEFINED] * len(user_defined)
    kinds += [NORMAL] * (len(tokens) - len(kinds))
    made: dict[str, Any] = {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "smollm",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": np.array(kinds, np.int32),
        "tokenizer.ggml.merges": list(merges),
        "tokenizer.chat_template": template,
    }
    made |= {f"tokenizer.ggml.{key}": value for key, value in keys.items()}
    return {key: value for key, value in made.items() if value is not None}
