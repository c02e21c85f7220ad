"""EngineConfig: every parameter of the engine, with its default, unit and range in one place.

Flags, variables, keys of the file, help texts, the documentation and the schema are derived from these fields.
"""

from collections.abc import Iterator
from typing import Annotated, Literal

import msgspec

from puma.config.check import check_fields, refuse
from puma.config.errors import Problem
from puma.config.options import choice, count, size
from puma.config.sizes import format_size

MIB = 1024 * 1024

LARGEST_POOL = 1 << 50
LONGEST_CONTEXT = 1 << 24

TOKENS_MULTIPLE = 16
"""Attention works on tiles of so many positions, which lie in one block."""

MOST_TOKENS_PER_BLOCK = 4096

KVDtype = Literal["f16", "f32"]


class EngineConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the engine may be told. Raises ConfigError, with all problems at once, when a value is invalid."""

    memory_pool_bytes: Annotated[int, size(1, LARGEST_POOL, "Memory for the KV cache.", share=True)] = 100 * MIB
    block_size_bytes: (
        Annotated[int, size(1, LARGEST_POOL, "Memory for one block of the KV cache; auto: what its tokens take.")]
        | None
    ) = None
    tokens_per_block: (
        Annotated[
            int,
            count(
                TOKENS_MULTIPLE,
                MOST_TOKENS_PER_BLOCK,
                "Tokens in one block of the KV cache; auto: 16, or as many as block_size_bytes holds.",
                "tokens",
                multiple_of=TOKENS_MULTIPLE,
            ),
        ]
        | None
    ) = None
    max_batch_size: Annotated[int, count(1, 1024, "Sequences computed together in one step.", "sequences")] = 32
    default_max_tokens: (
        Annotated[
            int,
            count(
                1,
                LONGEST_CONTEXT,
                "Tokens to generate when a request names no limit; context: as many as there is room for.",
                "tokens",
            ),
        ]
        | Literal["context"]
    ) = 100
    context_length: (
        Annotated[int, count(1, LONGEST_CONTEXT, "Longest prompt plus answer; auto: the model's own.", "tokens")] | None
    ) = None
    max_step_tokens: Annotated[int, count(16, 65536, "Prompt and answer tokens computed in one step.", "tokens")] = 512
    max_queued_requests: Annotated[
        int, count(1, 1 << 20, "Requests that may wait; one more is told to try later.", "requests")
    ] = 256
    kv_dtype: Annotated[
        KVDtype, choice("Precision of the KV cache; f32 takes twice the memory of f16 for each token.")
    ] = "f16"
    prefix_caching: Annotated[bool, choice("Reuse the KV cache of prompts that begin alike.")] = True
    threads: (
        Annotated[int, count(1, 1024, "Threads that compute; auto: the cores this process may use.", "threads")] | None
    ) = None

    def __post_init__(self) -> None:
        problems = check_fields(self, "engine")
        wrong = {problem.key for problem in problems}
        refuse(problems + tuple(self._contradictions(wrong)))

    def _contradictions(self, wrong: set[str]) -> Iterator[Problem]:
        """Between fields that are right by themselves."""
        if not wrong & {"max_step_tokens", "max_batch_size"} and self.max_step_tokens < self.max_batch_size:
            yield Problem(
                key="max_step_tokens",
                value=self.max_step_tokens,
                allowed=f"must be at least max_batch_size, {self.max_batch_size}: every running sequence takes one",
                involves=("max_batch_size",),
            )
        block = self.block_size_bytes
        if block and not wrong & {"block_size_bytes", "memory_pool_bytes"} and block > self.memory_pool_bytes:
            pool = format_size(self.memory_pool_bytes)
            yield Problem(
                key="block_size_bytes",
                value=block,
                allowed=f"must be at most memory_pool_bytes, {pool}, which is to hold it",
                involves=("memory_pool_bytes",),
            )
