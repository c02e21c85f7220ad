"""From what argparse read to configurations, with everything that is wrong in one report."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from puma.config.engine import EngineConfig
from puma.config.errors import ConfigError, Problem
from puma.config.flags import build, options_of, settings_from_flags, unknown_flags
from puma.config.server import ServerConfig

C = TypeVar("C", EngineConfig, ServerConfig)


def engine_config(arguments: argparse.Namespace, unread: Sequence[str]) -> EngineConfig:
    """Raises ConfigError."""
    problems = list(_unknown(unread, (EngineConfig,)))
    engine = _build(arguments, EngineConfig, problems)
    if engine is None or problems:
        raise ConfigError(tuple(problems))
    return engine


def both_configs(arguments: argparse.Namespace, unread: Sequence[str]) -> tuple[EngineConfig, ServerConfig]:
    """Raises ConfigError with the problems of both."""
    problems = list(_unknown(unread, (EngineConfig, ServerConfig)))
    engine = _build(arguments, EngineConfig, problems)
    server = _build(arguments, ServerConfig, problems)
    if engine is None or server is None or problems:
        raise ConfigError(tuple(problems))
    return engine, server


def refuse_rest(unread: Sequence[str]) -> None:
    """For commands without flags. Raises ConfigError."""
    if unread:
        raise ConfigError(_unknown(unread, ()))


def model_name(given: str) -> str:
    """The name under which a model is served: a file's own, without folder and ending, or the name that was given."""
    return Path(given).stem if "/" in given or given.endswith(".gguf") else given


def _unknown(unread: Sequence[str], structs: Sequence[type[EngineConfig] | type[ServerConfig]]) -> tuple[Problem, ...]:
    return unknown_flags(unread, [option.flag for struct in structs for option in options_of(struct)])


def _build(arguments: argparse.Namespace, struct: type[C], problems: list[Problem]) -> C | None:
    try:
        return build(struct, settings_from_flags(arguments, struct))
    except ConfigError as error:
        problems.extend(error.problems)
        return None
