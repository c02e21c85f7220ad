"""What `pumactl` and the daemon say to each other over the Unix socket.

Frames: four bytes of length, most significant first, then that many bytes of msgpack. The daemon speaks first
(Greeting), then the client asks one thing and gets one answer. The structs are the protocol's own, so that
`pumactl` needs nothing of the engine.
"""

import msgspec

from puma.config.plan import ModelPlan

PROTOCOL = 2
"""Raised whenever a message changes in a way that an older side would misread."""

HEADER_BYTES = 4
MAX_FRAME_BYTES = 16 * 1024 * 1024


class Greeting(msgspec.Struct, frozen=True):
    """Never changes its first three fields: it tells two versions apart."""

    protocol: int
    version: str
    pid: int


class GetStatus(msgspec.Struct, frozen=True, tag="status"):
    """Answered by Status."""


class GetConfig(msgspec.Struct, frozen=True, tag="config"):
    """Answered by Config."""


class Stop(msgspec.Struct, frozen=True, tag="stop"):
    """Answered by Stopping. `now`: running requests are ended at once, not given their grace."""

    now: bool = False


Ask = GetStatus | GetConfig | Stop


class SequenceLine(msgspec.Struct, frozen=True):
    """One sequence that the engine holds."""

    request_id: str
    state: str
    prompt_tokens: int
    generated: int
    blocks: int


class Status(msgspec.Struct, frozen=True, kw_only=True, tag="status"):
    """The daemon and its engine between two steps."""

    version: str
    pid: int
    state: str
    """serving or draining"""
    model: str
    address: str
    uptime_seconds: float
    requests: int
    """HTTP requests with a sequence in the engine."""
    blocks_total: int
    blocks_used: int
    """Held by sequences."""
    blocks_cached: int
    """Held by none, and kept for prompts that begin alike."""
    tokens_per_block: int
    context_length: int
    prompt_tokens: int
    """Of all prompts that were read since the daemon began."""
    cached_tokens: int
    """How many of those were found in the prefix cache, and not computed."""
    generated_tokens: int
    steps: int
    busy_seconds: float
    sequences: tuple[SequenceLine, ...]


class Config(msgspec.Struct, frozen=True, tag="config"):
    """What the daemon was started with, and where its memory goes."""

    settings: tuple[tuple[str, str, str], ...]
    """Path, value and origin of every option; secrets are masked."""
    plan: ModelPlan


class Stopping(msgspec.Struct, frozen=True, tag="stopping"):
    """The daemon will end; it has gone when its lock is free."""

    requests: int
    grace_seconds: int


class Refused(msgspec.Struct, frozen=True, tag="refused"):
    message: str


Answer = Status | Config | Stopping | Refused


def frame(message: msgspec.Struct) -> bytes:
    """A message as it goes over the socket."""
    payload = msgspec.msgpack.encode(message)
    return len(payload).to_bytes(HEADER_BYTES, "big") + payload


def length_of(header: bytes) -> int:
    """Raises ValueError when no message is that long: the other side speaks something else."""
    length = int.from_bytes(header, "big")
    if not 0 < length <= MAX_FRAME_BYTES:
        raise ValueError(f"a message of {length} bytes is announced, at most {MAX_FRAME_BYTES} are allowed")
    return length
