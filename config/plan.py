"""ModelPlan: where the memory of a model goes under a configuration. `puma plan` shows it before anything is loaded."""

import msgspec

from puma.config.memory import KVGeometry, MemoryPlan


class ModelFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What a model's header says about memory."""

    name: str
    architecture: str
    source: str
    """The file, or the address that its header was read from."""
    remote: bool
    """Whether the model has not been fetched."""
    stored_bytes: int
    """Of the weights in the file."""
    weight_bytes: int
    """Of the weights in memory."""
    layers: int
    kv_heads: int
    head_dim: int
    context_length: int
    """The longest context of the model."""
    vocabulary_size: int

    def geometry(self, value_bytes: int) -> KVGeometry:
        """That of its KV cache, for values of so many bytes."""
        return KVGeometry(self.layers, self.kv_heads, self.head_dim, value_bytes)


class ModelPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What a process with this model and configuration takes, all in bytes."""

    facts: ModelFacts
    memory: MemoryPlan
    kv_dtype: str
    memory_pool_bytes: int
    """As it was configured."""
    context_length: int
    scratch_bytes: int
    """Of activations and tables; its pages come into memory as steps need them."""
    process_bytes: int
    """Of Python, the libraries, the tokenizer and the compiled kernels; an estimate."""
    available_bytes: int
    """What could be taken now."""
    usable_bytes: int
    """What this process may use at most."""

    @property
    def total_bytes(self) -> int:
        """What the process will occupy."""
        return self.facts.weight_bytes + self.memory.pool_bytes + self.scratch_bytes + self.process_bytes

    @property
    def unused_bytes(self) -> int:
        """Of the pool: the padding of all blocks, and what is too little for another block."""
        return self.memory_pool_bytes - self.memory.pool_bytes

    def sequences_of(self, tokens: int) -> int:
        """How many sequences of this length the pool holds at once."""
        return self.memory.blocks // self.memory.blocks_for(tokens)


PROCESS_BYTES = 160_000_000
TOKEN_BYTES = 700
"""Measured with SmolLM2: what is resident after a few requests, less weights, pool and scratch; of which the vocabulary
has its part."""


def process_bytes(vocabulary_size: int) -> int:
    """An estimate of what a daemon occupies besides weights, pool and scratch."""
    return PROCESS_BYTES + TOKEN_BYTES * vocabulary_size
