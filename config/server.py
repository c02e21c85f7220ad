"""ServerConfig: every parameter of the server round the engine, in the manner of EngineConfig."""

from typing import Annotated

import msgspec

from puma.config.check import check_fields, refuse
from puma.config.engine import MIB
from puma.config.options import count, size, text


class ServerConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the server may be told. Raises ConfigError, with all problems at once, when a value is invalid."""

    host: Annotated[str, text("Address or name to listen on.")] = "127.0.0.1"
    port: Annotated[int, count(0, 65535, "Port to listen on; 0 takes any free one.")] = 8000
    served_model_name: (
        Annotated[str, text("Name of the model in the API; auto: the name it was started with.")] | None
    ) = None
    api_key: Annotated[str, text("Key that requests must carry; none is asked for if absent.", secret=True)] | None = (
        None
    )
    grace_seconds: Annotated[
        int, count(0, 86400, "Time that running requests have to finish when the daemon stops.", "seconds")
    ] = 30
    send_timeout_seconds: Annotated[
        int, count(1, 86400, "A client that takes nothing for this long is dropped.", "seconds")
    ] = 30
    body_timeout_seconds: Annotated[
        int, count(1, 86400, "Time in which a request's body must arrive in full.", "seconds")
    ] = 30
    max_body_bytes: Annotated[int, size(1024, 1 << 32, "Largest request body.")] = 16 * MIB
    control_socket: Annotated[str, text("Path of the socket for pumactl; auto: in the runtime folder.")] | None = None

    def __post_init__(self) -> None:
        refuse(check_fields(self, "server"))
