"""How text is split before byte-pair merges, by the name in `tokenizer.ggml.pre`.

The names and what they mean are llama.cpp's (llama-vocab.cpp, the regular expressions per pre-tokenizer type).
"""

from tokenizers import Regex
from tokenizers.pre_tokenizers import ByteLevel, PreTokenizer, Sequence, Split

from puma.models.errors import ModelFileError

KNOWN = ("gpt-2", "smollm")


def pre_tokenizer(name: object) -> PreTokenizer:
    """The pre-tokenizer of that name. Raises ModelFileError, which lists the known ones."""
    # GPT-2's expression is built in: words with one space before them, numbers, other characters, white space.
    gpt2 = ByteLevel(add_prefix_space=False, use_regex=True)
    if name == "gpt-2":
        return gpt2
    if name == "smollm":
        # Every digit is alone, whatever script it is of.
        return Sequence([Split(Regex(r"\p{N}"), "isolated"), gpt2])
    raise ModelFileError(
        f"tokenizer.ggml.pre is {name!r}; how this pre-tokenizer splits text is not known; known: {', '.join(KNOWN)}"
    )
