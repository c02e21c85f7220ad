"""LogConfig: what is written to the log, in the manner of EngineConfig."""

from typing import Annotated, Literal

import msgspec

from puma.config.check import check_fields, refuse
from puma.config.options import choice

LogLevel = Literal["debug", "info", "warning", "error"]


class LogConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the log may be told. Raises ConfigError, with all problems at once, when a value is invalid."""

    level: Annotated[LogLevel, choice("Least severe log lines that are written.")] = "info"

    def __post_init__(self) -> None:
        refuse(check_fields(self, "log"))
