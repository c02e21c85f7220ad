"""Configuration: everything that was set, by flags, the environment, the file and the defaults, in that order.

flags ────────┐
environment ──┼── settings ── one struct per section, and which setting each value came from
file ─────────┘       └────── everything that is wrong with any of them, in one ConfigError
"""

import os
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, cast

import msgspec

from puma.config.check import refuse
from puma.config.engine import EngineConfig
from puma.config.environment import settings_from_environment
from puma.config.errors import ConfigError, Problem
from puma.config.file import chosen_file, settings_from_file
from puma.config.log import LogConfig
from puma.config.machine import usable_bytes
from puma.config.options import Value
from puma.config.sections import OPTIONS, SECTIONS
from puma.config.server import ServerConfig
from puma.config.setting import Setting, read
from puma.config.sizes import exact_size


class Configuration(msgspec.Struct, frozen=True):
    """What is in force."""

    engine: EngineConfig
    server: ServerConfig
    log: LogConfig
    origins: dict[str, Setting]
    """By path ("engine.threads"), for all that is not a default: the setting that counts."""


def configure(
    flags: Sequence[Setting] = (),
    *,
    file: str | None = None,
    environment: Mapping[str, str] | None = None,
    problems: Iterable[Problem] = (),
) -> Configuration:
    """The configuration in force. Raises ConfigError with everything that is wrong, `problems` among it.

    `file` is the one that was named, if any; `environment` is the process's own unless given.
    """
    environment = os.environ if environment is None else environment
    found = list(problems)
    path = chosen_file(file, environment)
    of_file, wrong = settings_from_file(path) if path else ([], [])
    found += wrong
    of_environment, wrong = settings_from_environment(environment)
    found += wrong
    return resolve([*of_file, *of_environment, *flags], found)


def find(
    path: str, *, file: str | None = None, environment: Mapping[str, str] | None = None
) -> tuple[Value, list[Problem]]:
    """The value of one option from the environment, the file or the default, whatever is wrong with the others.

    The problems are those of this option, and of a file that cannot be read.
    """
    environment = os.environ if environment is None else environment
    chosen = chosen_file(file, environment)
    of_file, wrong = settings_from_file(chosen) if chosen else ([], [])
    found = [] if of_file else [problem for problem in wrong if problem.key == str(chosen)]
    settings = [*of_file, *settings_from_environment(environment)[0]]
    value = next(option.default for option in OPTIONS if option.path == path)
    for setting in settings:
        if setting.option.path == path:
            read_value, problem = read(setting)
            found += [problem] if problem else []
            value = value if problem else read_value
    return value, found


def resolve(settings: Iterable[Setting], problems: Iterable[Problem] = ()) -> Configuration:
    """Of several settings of one option the last counts; but all must be right. Raises ConfigError."""
    found = list(problems)
    values: dict[str, Any] = {}
    origins: dict[str, Setting] = {}
    unusable: set[str] = set()
    for setting in settings:
        value, problem = read(setting)
        path = setting.option.path
        if problem is None:
            values[path], origins[path] = value, setting
        else:
            found.append(problem)
            unusable.add(setting.option.key)
    sections = {name: _build(struct, name, values, found, unusable) for name, struct in SECTIONS.items()}
    refuse(tuple(locate(problem, origins) for problem in found))
    return Configuration(
        cast("EngineConfig", sections["engine"]),
        cast("ServerConfig", sections["server"]),
        cast("LogConfig", sections["log"]),
        origins,
    )


@contextmanager
def locating(configuration: Configuration) -> Generator[None]:
    """What model and machine do not allow is told with the value as it was written, and where."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError(tuple(locate(problem, configuration.origins) for problem in error.problems)) from None


def locate(problem: Problem, origins: Mapping[str, Setting]) -> Problem:
    """A problem that a struct found, with the value as it was written, and where."""
    named = (problem.key, *problem.involves)
    paths = [option.path for key in named for option in OPTIONS if option.key == key]
    if problem.source or not paths:
        return problem
    setting = next((origins[path] for path in paths if path in origins), None)
    if setting is None or setting.option.key != problem.key:
        where = f" ({setting.written} = {setting.value!r}, {setting.source})" if setting else ""
        value = _spelled(problem.key, problem.value)
        allowed = problem.allowed + where
        return msgspec.structs.replace(problem, allowed=allowed, source="default", value=value, whole=usable_bytes())
    return msgspec.structs.replace(
        problem, value=setting.value, source=setting.source, written=setting.written, whole=usable_bytes()
    )


def _spelled(key: str, value: object) -> object:
    """A default as it could have been written: 100MiB."""
    return exact_size(value) if key.endswith("_bytes") and isinstance(value, int) else value


def _build(
    struct: type[msgspec.Struct], section: str, values: Mapping[str, Any], found: list[Problem], unusable: set[str]
) -> msgspec.Struct | None:
    """The section's struct, or None and what is wrong with it."""
    own = {path.partition(".")[2]: value for path, value in values.items() if path.partition(".")[0] == section}
    try:
        return struct(**own)
    except ConfigError as error:
        # A contradiction with a value that is wrong itself says nothing.
        found += [problem for problem in error.problems if not unusable & {problem.key, *problem.involves}]
        return None
