"""A llama model small enough to compute by hand: written as a GGUF file, and its forward pass in NumPy."""

from pathlib import Path

import msgspec
import numpy as np

from tests.kernels import reference
from tests.models.formats.gguf_writer import write_gguf

BYTE_ALPHABET = [chr(code) for code in [*range(33, 127), *range(161, 173), *range(174, 256)]]
"""The printable half of GPT-2's byte alphabet; the rest follows from chr(256) on."""

CHATML = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


KV_DTYPES = {"f16": np.float16, "f32": np.float32}


class Shape(msgspec.Struct, frozen=True):
    layers: int = 2
    hidden: int = 64
    heads: int = 4
    kv_heads: int = 2
    head_dim: int = 32
    feed_forward: int = 96
    context_length: int = 512
    tied: bool = True

    @property
    def vocabulary(self) -> int:
        return len(vocabulary())


def vocabulary() -> list[str]:
    """Two control tokens and all bytes."""
    alphabet = BYTE_ALPHABET + [chr(256 + n) for n in range(256 - len(BYTE_ALPHABET))]
    return ["<|im_start|>", "<|im_end|>", *alphabet]


def metadata(shape: Shape) -> dict:
    tokens = vocabulary()
    return {
        "general.architecture": "llama",
        "llama.block_count": shape.layers,
        "llama.embedding_length": shape.hidden,
        "llama.attention.head_count": shape.heads,
        "llama.attention.head_count_kv": shape.kv_heads,
        "llama.attention.key_length": shape.head_dim,
        "llama.attention.value_length": shape.head_dim,
        "llama.rope.dimension_count": shape.head_dim,
        "llama.rope.freq_base": 10000.0,
        "llama.feed_forward_length": shape.feed_forward,
        "llama.context_length": shape.context_length,
        "llama.attention.layer_norm_rms_epsilon": 1e-5,
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "smollm",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": np.array([3, 3] + [1] * (len(tokens) - 2), np.int32),
        "tokenizer.ggml.merges": [],
        "tokenizer.ggml.bos_token_id": 0,
        "tokenizer.ggml.eos_token_id": 1,
        "tokenizer.ggml.add_bos_token": False,
        "tokenizer.chat_template": CHATML,
    }


def tensors(shape: Shape, code: int, seed: int) -> dict[str, tuple[tuple[int, ...], int, bytes]]:
    rng = np.random.default_rng(seed)
    made = {}

    def matrix(name: str, outputs: int, inner: int) -> None:
        made[name] = ((inner, outputs), code, reference.random_weights(code, outputs, inner, rng).tobytes())

    def vector(name: str, size: int) -> None:
        made[name] = ((size,), 0, (1 + 0.1 * rng.standard_normal(size)).astype(np.float32).tobytes())

    matrix("token_embd.weight", shape.vocabulary, shape.hidden)
    for layer in range(shape.layers):
        name = f"blk.{layer}."
        vector(name + "attn_norm.weight", shape.hidden)
        matrix(name + "attn_q.weight", shape.heads * shape.head_dim, shape.hidden)
        matrix(name + "attn_k.weight", shape.kv_heads * shape.head_dim, shape.hidden)
        matrix(name + "attn_v.weight", shape.kv_heads * shape.head_dim, shape.hidden)
        matrix(name + "attn_output.weight", shape.hidden, shape.heads * shape.head_dim)
        vector(name + "ffn_norm.weight", shape.hidden)
        matrix(name + "ffn_gate.weight", shape.feed_forward, shape.hidden)
        matrix(name + "ffn_up.weight", shape.feed_forward, shape.hidden)
        matrix(name + "ffn_down.weight", shape.hidden, shape.feed_forward)
    vector("output_norm.weight", shape.hidden)
    if not shape.tied:
        matrix("output.weight", shape.vocabulary, shape.hidden)
    return made


class Tiny:
    """One tiny model on disk, with its weights in float64."""

    def __init__(self, path: Path, code: int = 0, shape: Shape | None = None, seed: int = 0) -> None:
        self.path, self.code, self.shape = path, code, shape or Shape()
        self.tensors = tensors(self.shape, code, seed)
        write_gguf(path, metadata(self.shape), self.tensors)

    def weight(self, name: str) -> np.ndarray:
        size, code, raw = self.tensors[name]
        rows = np.frombuffer(raw, np.uint8).reshape(size[1] if len(size) == 2 else 1, -1)
        return reference.DEQUANTISE[code](rows)

    def product(self, x: np.ndarray, name: str) -> np.ndarray:
        seen = x if self.code in (0, 1, 30) else reference.as_quantised(x.astype(np.float32))
        return seen @ self.weight(name).T

    def logits(self, token_ids: list[int], kv_dtype: str = "f16") -> np.ndarray:
        """float64 [tokens, vocabulary]."""
        shape = self.shape
        x = self.weight("token_embd.weight")[token_ids]
        for layer in range(shape.layers):
            name = f"blk.{layer}."
            normed = reference.rms_norm(x, self.weight(name + "attn_norm.weight")[0], 1e-5)
            x = x + self.product(self._attention(normed, name, kv_dtype), name + "attn_output.weight")
            normed = reference.rms_norm(x, self.weight(name + "ffn_norm.weight")[0], 1e-5)
            gate, up = (self.product(normed, f"{name}ffn_{part}.weight") for part in ("gate", "up"))
            x = x + self.product(reference.silu(gate) * up, name + "ffn_down.weight")
        normed = reference.rms_norm(x, self.weight("output_norm.weight")[0], 1e-5)
        return self.product(normed, "token_embd.weight" if shape.tied else "output.weight")

    def first_layer(self, token_ids: list[int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Queries, keys and values of the first layer, float64 [tokens, heads, head_dim], not rounded."""
        x = self.weight("token_embd.weight")[token_ids]
        return self._rotated(reference.rms_norm(x, self.weight("blk.0.attn_norm.weight")[0], 1e-5), "blk.0.")

    def _rotated(self, x: np.ndarray, name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        shape = self.shape
        query, key, value = (
            self.product(x, f"{name}attn_{part}.weight").reshape(len(x), -1, shape.head_dim) for part in "qkv"
        )
        # In a GGUF file of this family, neighbours rotate together.
        order = np.concatenate([np.arange(0, shape.head_dim, 2), np.arange(1, shape.head_dim, 2)])
        frequencies = 10000.0 ** (-np.arange(0, shape.head_dim, 2) / shape.head_dim)
        angles = np.arange(len(x))[:, None] * frequencies
        query, key = (reference.rotate(part[..., order], np.cos(angles), np.sin(angles)) for part in (query, key))
        return query, key, value

    def _attention(self, x: np.ndarray, name: str, kv_dtype: str) -> np.ndarray:
        query, key, value = self._rotated(x, name)
        key, value = (part.astype(KV_DTYPES[kv_dtype]).astype(np.float64) for part in (key, value))
        return reference.attention(query, key, value, 0).reshape(len(x), -1)
