"""From a model's geometry and the configuration to blocks, tokens and contexts: the pool, to the byte.

token = layers x 2 x kv_heads x head_dim x value_bytes      keys and values of one token, over all layers
block = tokens_per_block x token, or block_size_bytes       what exceeds whole tokens is padding
pool  = as many blocks as memory_pool_bytes holds
"""

import msgspec

from puma.config.engine import MOST_TOKENS_PER_BLOCK, TOKENS_MULTIPLE, EngineConfig, KVDtype
from puma.config.errors import ConfigError, Problem
from puma.config.sizes import format_size

DEFAULT_TOKENS_PER_BLOCK = 16

VALUE_BYTES: dict[KVDtype, int] = {"f16": 2, "f32": 4}
"""Bytes of one cached number of a key or value."""


class KVGeometry(msgspec.Struct, frozen=True):
    """What determines the size of one token's keys and values."""

    layers: int
    kv_heads: int
    head_dim: int
    value_bytes: int = 2
    """Bytes of one cached value."""

    @property
    def token_bytes(self) -> int:
        """Bytes of one token's keys and values over all layers."""
        return self.layers * 2 * self.kv_heads * self.head_dim * self.value_bytes


class MemoryPlan(msgspec.Struct, frozen=True):
    """What the pool yields. All counts are whole."""

    token_bytes: int
    block_bytes: int
    """Of the pool's share for one block, padding included."""
    tokens_per_block: int
    blocks: int

    @property
    def tokens(self) -> int:
        return self.blocks * self.tokens_per_block

    @property
    def pool_bytes(self) -> int:
        """What is allocated: neither the padding nor the pool's remainder is."""
        return self.tokens * self.token_bytes

    @property
    def padding_bytes(self) -> int:
        """Of each block, what its tokens do not take."""
        return self.block_bytes - self.tokens_per_block * self.token_bytes

    def blocks_for(self, tokens: int) -> int:
        """Blocks that hold this many tokens."""
        return -(-tokens // self.tokens_per_block)

    def pool_for(self, tokens: int) -> int:
        """The memory_pool_bytes that hold one sequence of this many tokens."""
        return self.blocks_for(tokens) * self.block_bytes


def plan_memory(geometry: KVGeometry, config: EngineConfig, room: int | None = None) -> MemoryPlan:
    """Divide the pool into blocks. Raises ConfigError when a block cannot be as wanted, or the pool holds none.

    `room`, the largest pool for which there is memory, only serves the message.
    """
    tokens, block_bytes = block_shape(geometry, config)
    problems: list[Problem] = []
    least = max(tokens, TOKENS_MULTIPLE) * geometry.token_bytes
    if block_bytes < least:
        problems.append(_block_too_small(geometry, config, least))
    smallest = max(block_bytes, least)
    if config.memory_pool_bytes < smallest:
        reason = f"one block of {max(tokens, TOKENS_MULTIPLE)} tokens of this model takes {exactly(smallest)}"
        high = room if room and room >= smallest else None
        pool = config.memory_pool_bytes
        problems.append(Problem(key="memory_pool_bytes", value=pool, low=smallest, high=high, allowed=reason))
    if problems:
        raise ConfigError(tuple(problems))
    return MemoryPlan(geometry.token_bytes, block_bytes, tokens, config.memory_pool_bytes // block_bytes)


def block_shape(geometry: KVGeometry, config: EngineConfig) -> tuple[int, int]:
    """Tokens and bytes of one block as they are wanted; the bytes need not hold the tokens, nor even one."""
    token, wanted, given = geometry.token_bytes, config.tokens_per_block, config.block_size_bytes
    if given is None:
        tokens = wanted or DEFAULT_TOKENS_PER_BLOCK
        return tokens, tokens * token
    return wanted or min(given // token // TOKENS_MULTIPLE * TOKENS_MULTIPLE, MOST_TOKENS_PER_BLOCK), given


def _block_too_small(geometry: KVGeometry, config: EngineConfig, least: int) -> Problem:
    token = geometry.token_bytes
    return Problem(
        key="block_size_bytes",
        value=config.block_size_bytes,
        low=least,
        high=config.memory_pool_bytes if config.memory_pool_bytes >= least else None,
        allowed=f"one token of this model takes {exactly(token)}, a block of {least // token} tokens {exactly(least)}",
    )


def exactly(size: int) -> str:
    """A size in bytes, and in a handy unit: "368,640 bytes (360 KiB)"."""
    return f"{size:,} bytes ({format_size(size)})"
