"""From a model's geometry and the configuration to blocks, tokens and contexts: the pool, to the byte."""

import os

import msgspec

from puma.config.engine import EngineConfig
from puma.config.errors import ConfigError, Problem

KV_BYTES = 2
"""Bytes of one cached value: float16."""


class KVGeometry(msgspec.Struct, frozen=True):
    """What determines the size of one token's keys and values."""

    layers: int
    kv_heads: int
    head_dim: int

    @property
    def token_bytes(self) -> int:
        """Bytes of one token's keys and values over all layers."""
        return self.layers * 2 * self.kv_heads * self.head_dim * KV_BYTES


class MemoryPlan(msgspec.Struct, frozen=True):
    """What the pool yields. All counts are whole; the remainder of the pool is not allocated."""

    token_bytes: int
    block_bytes: int
    tokens_per_block: int
    blocks: int

    @property
    def tokens(self) -> int:
        return self.blocks * self.tokens_per_block

    @property
    def pool_bytes(self) -> int:
        return self.blocks * self.block_bytes

    def blocks_for(self, tokens: int) -> int:
        """Blocks that hold this many tokens."""
        return -(-tokens // self.tokens_per_block)


def machine_bytes() -> int:
    """The machine's memory."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def check_machine(config: EngineConfig) -> None:
    """Raises ConfigError when the pool is larger than the machine's memory."""
    if config.memory_pool_bytes > (machine := machine_bytes()):
        allowed = f"at most {machine}, all the memory of this machine"
        raise ConfigError((Problem(key="memory_pool_bytes", value=config.memory_pool_bytes, allowed=allowed),))


def plan_memory(geometry: KVGeometry, config: EngineConfig) -> MemoryPlan:
    """Divide the pool into blocks. Raises ConfigError when not even one block fits."""
    block_bytes = geometry.token_bytes * config.tokens_per_block
    blocks = config.memory_pool_bytes // block_bytes
    if blocks < 1:
        allowed = f"at least {block_bytes}: one block of {config.tokens_per_block} tokens of this model"
        raise ConfigError((Problem(key="memory_pool_bytes", value=config.memory_pool_bytes, allowed=allowed),))
    return MemoryPlan(geometry.token_bytes, block_bytes, config.tokens_per_block, blocks)
