"""The numbers that describe a model's shape, read from GGUF metadata and checked."""

from typing import Any

import msgspec

from puma.models.errors import ModelFileError


class Hyperparameters(msgspec.Struct, frozen=True, kw_only=True):
    """One model's sizes."""

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    feed_forward: int
    vocabulary: int
    """Rows of the embedding."""
    tokens: int
    """Of these, the ones that the tokenizer knows; the rest is padding and never sampled."""
    context_length: int
    epsilon: float
    rope_base: float
    rope_scale: float = 1.0
    """Positions are divided by it ("linear" scaling)."""


class Metadata:
    """Typed look-ups under an architecture's prefix; every error names the file and the key."""

    def __init__(self, values: dict[str, Any], path: object, architecture: str) -> None:
        self._values, self._path, self._architecture = values, path, architecture

    def integer(self, key: str, minimum: int, maximum: int, default: int | None = None) -> int:
        """A whole number within [minimum, maximum]; without a default the key has to be there."""
        value = self._get(key, default)
        if not isinstance(value, int) or isinstance(value, bool) or not minimum <= value <= maximum:
            raise self.error(key, value, f"a whole number from {minimum} to {maximum}")
        return value

    def number(self, key: str, default: float | None = None) -> float:
        """A positive, finite number."""
        value = self._get(key, default)
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < float("inf"):
            raise self.error(key, value, "a positive number")
        return float(value)

    def text(self, key: str, default: str | None = None) -> str:
        value = self._get(key, default)
        if not isinstance(value, str):
            raise self.error(key, value, "a text")
        return value

    def error(self, key: str, value: object, allowed: str) -> ModelFileError:
        return ModelFileError(f"{self._path}: {self._architecture}.{key} is {value!r}; it must be {allowed}")

    def _get(self, key: str, default: object) -> object:
        value = self._values.get(f"{self._architecture}.{key}", default)
        if value is None:
            raise ModelFileError(f"{self._path}: the key {self._architecture}.{key} is missing")
        return value


def read_hyperparameters(metadata: Metadata, vocabulary: int, tokens: int) -> Hyperparameters:
    """Read and check the sizes of a llama-like model. Raises ModelFileError."""
    hidden = metadata.integer("embedding_length", 1, 1 << 20)
    heads = metadata.integer("attention.head_count", 1, 1 << 12)
    kv_heads = metadata.integer("attention.head_count_kv", 1, heads, heads)
    if heads % kv_heads:
        raise metadata.error("attention.head_count_kv", kv_heads, f"a divisor of head_count, {heads}")
    head_dim = metadata.integer("attention.key_length", 1, 1 << 12, hidden // heads)
    if head_dim % 32:
        key = "attention.key_length (or embedding_length / head_count)"
        raise metadata.error(key, head_dim, "a multiple of 32; others are not supported yet")
    for key in ("attention.value_length", "rope.dimension_count"):
        if (found := metadata.integer(key, 1, 1 << 12, head_dim)) != head_dim:
            raise metadata.error(key, found, f"the size of a head, {head_dim}; others are not supported yet")
    scaling = metadata.text("rope.scaling.type", "none")
    if scaling not in ("none", "linear"):
        raise metadata.error("rope.scaling.type", scaling, "none or linear; others are not supported yet")
    return Hyperparameters(
        layers=metadata.integer("block_count", 1, 1 << 12),
        hidden=hidden,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        feed_forward=metadata.integer("feed_forward_length", 1, 1 << 22),
        vocabulary=vocabulary,
        tokens=tokens,
        context_length=metadata.integer("context_length", 1, 1 << 30),
        epsilon=metadata.number("attention.layer_norm_rms_epsilon"),
        rope_base=metadata.number("rope.freq_base", 10000.0),
        rope_scale=metadata.number("rope.scaling.factor", 1.0) if scaling == "linear" else 1.0,
    )
