"""EngineConfig: every parameter of the engine, with its default, unit and range in one place.

Flags, help texts and the documentation are derived from these fields.
"""

from typing import Annotated

import msgspec
from msgspec import Meta

from puma.config.errors import ConfigError, Problem

MIB = 1024 * 1024


def option(minimum: int, maximum: int, help_text: str, unit: str) -> Meta:
    """A whole number within [minimum, maximum]; unit is shown in help texts (tokens, bytes, ...)."""
    return Meta(ge=minimum, le=maximum, description=help_text, extra_json_schema={"unit": unit})


class EngineConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the engine may be told. Raises ConfigError, with all problems at once, when a value is invalid."""

    memory_pool_bytes: Annotated[int, option(1, 1 << 50, "Memory for the KV cache.", "bytes")] = 100 * MIB
    tokens_per_block: Annotated[
        int, option(16, 4096, "Tokens in one block of the KV cache; a multiple of 16.", "tokens")
    ] = 16
    max_batch_size: Annotated[int, option(1, 1024, "Sequences computed together in one step.", "sequences")] = 32
    default_max_tokens: Annotated[
        int, option(1, 1 << 24, "Tokens to generate when a request names no limit.", "tokens")
    ] = 100
    context_length: (
        Annotated[int, option(1, 1 << 24, "Longest prompt plus answer; the model's own if absent.", "tokens")] | None
    ) = None
    max_step_tokens: Annotated[int, option(16, 65536, "Prompt and answer tokens computed in one step.", "tokens")] = 512
    max_queued_requests: Annotated[
        int, option(1, 1 << 20, "Requests that may wait; one more is told to try later.", "requests")
    ] = 256
    threads: (
        Annotated[int, option(1, 1024, "Threads that compute; the cores this process may use if absent.", "threads")]
        | None
    ) = None

    def __post_init__(self) -> None:
        problems = [
            Problem(key=field.name, value=getattr(self, field.name), allowed=allowed)
            for field in msgspec.structs.fields(self)
            if (allowed := violation(field.type, getattr(self, field.name))) is not None
        ]
        wrong = {problem.key for problem in problems}
        if "tokens_per_block" not in wrong and self.tokens_per_block % 16:
            problems.append(Problem(key="tokens_per_block", value=self.tokens_per_block, allowed="a multiple of 16"))
        if not wrong & {"max_step_tokens", "max_batch_size"} and self.max_step_tokens < self.max_batch_size:
            allowed = f"at least max_batch_size, {self.max_batch_size}: every running sequence takes one"
            problems.append(Problem(key="max_step_tokens", value=self.max_step_tokens, allowed=allowed))
        if problems:
            raise ConfigError(tuple(problems))


def violation(field_type: object, value: object) -> str | None:
    """What is allowed instead, when value does not satisfy an annotated field type; None when it does."""
    try:
        msgspec.convert(value, field_type)  # pyright: ignore[reportArgumentType]
    except msgspec.ValidationError as error:
        return str(error)
    return None
