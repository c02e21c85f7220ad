"""From what argparse read to the configuration, with everything that is wrong in one report."""

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path

from puma.config.check import refuse
from puma.config.configuration import Configuration, configure
from puma.config.errors import Problem
from puma.config.flags import FILE_FLAG, NO_TEXT, missing_value, settings_from_flags, unknown_arguments


def configuration(
    arguments: argparse.Namespace,
    unread: Sequence[str],
    sections: Iterable[str],
    problems: Iterable[Problem] = (),
) -> Configuration:
    """The configuration in force. Raises ConfigError with all that is wrong, the command's own `problems` first.

    `sections` are those whose flags the command takes.
    """
    found = [*problems, *unknown_arguments(unread, sections)]
    settings, wrong = settings_from_flags(arguments)
    found += wrong
    file = arguments.config
    if file == NO_TEXT or file == "":
        found.append(missing_value(FILE_FLAG, "expected the path of a configuration file"))
        file = None
    return configure(settings, file=file, problems=found)


def refuse_rest(unread: Sequence[str]) -> None:
    """For commands without flags. Raises ConfigError."""
    refuse(tuple(unknown_arguments(unread, ())))


def model_name(given: str) -> str:
    """The name under which a model is served: a file's own, without folder and ending, or the name that was given."""
    return Path(given).stem if "/" in given or given.endswith(".gguf") else given
