"""ServerConfig: every parameter of the server round the engine, in the manner of EngineConfig."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from puma.config.engine import MIB, option, violation
from puma.config.errors import ConfigError, Problem

LogLevel = Literal["debug", "info", "warning", "error"]


def text(help_text: str) -> Meta:
    """Any text but the empty one."""
    return Meta(min_length=1, max_length=4096, description=help_text)


class ServerConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the server may be told. Raises ConfigError, with all problems at once, when a value is invalid."""

    host: Annotated[str, text("Address or name to listen on.")] = "127.0.0.1"
    port: Annotated[int, option(0, 65535, "Port to listen on; 0 takes any free one.", "")] = 8000
    served_model_name: (
        Annotated[str, text("Name of the model in the API; the name it was started with if absent.")] | None
    ) = None
    grace_seconds: Annotated[
        int, option(0, 86400, "Time that running requests have to finish when the daemon stops.", "seconds")
    ] = 30
    send_timeout_seconds: Annotated[
        int, option(1, 86400, "A client that takes nothing for this long is dropped.", "seconds")
    ] = 30
    body_timeout_seconds: Annotated[
        int, option(1, 86400, "Time in which a request's body must arrive in full.", "seconds")
    ] = 30
    max_body_bytes: Annotated[int, option(1024, 1 << 32, "Largest request body.", "bytes")] = 16 * MIB
    control_socket: Annotated[str, text("Path of the socket for pumactl; in the runtime folder if absent.")] | None = (
        None
    )
    log_level: Annotated[LogLevel, Meta(description="Least severe log lines that are written.")] = "info"

    def __post_init__(self) -> None:
        problems = tuple(
            Problem(key=field.name, value=getattr(self, field.name), allowed=allowed)
            for field in msgspec.structs.fields(self)
            if (allowed := violation(field.type, getattr(self, field.name))) is not None
        )
        if problems:
            raise ConfigError(problems)
