"""Flags: `--memory-pool-bytes 200MiB`, one for every option. Every command that takes options takes the same ones."""

import argparse
from collections.abc import Iterable, Sequence
from itertools import pairwise

from puma.config.errors import NO_VALUE, Problem
from puma.config.options import Option
from puma.config.sections import meant, options_in
from puma.config.setting import COMMAND_LINE, Setting

NO_TEXT = "\0"
"""What argparse is to put where a flag's value is missing; no argument of a process can be that."""

FILE_FLAG = "--config"


class Formatter(argparse.HelpFormatter):
    """Shows values as needed, which argparse takes for optional since we report a missing one ourselves."""

    def _format_args(self, action: argparse.Action, default_metavar: str) -> str:
        if action.option_strings and action.nargs == "?":
            return str(action.metavar)
        return super()._format_args(action, default_metavar)


def add_flags(parser: argparse.ArgumentParser, sections: Iterable[str]) -> None:
    """Add one flag per option, under a heading for each section. All problems are told later, together."""
    parser.add_argument(
        FILE_FLAG, nargs="?", const=NO_TEXT, metavar="FILE", help="Read this configuration file, not the usual ones."
    )
    for section in sections:
        group = parser.add_argument_group(section)
        for option in options_in([section]):
            group.add_argument(
                option.flag,
                action="append",
                nargs="?",
                const=NO_TEXT,
                metavar=metavar(option),
                help=help_text(option).replace("%", "%%"),
            )


def metavar(option: Option) -> str:
    """What stands for the value in a help text."""
    if option.choices:
        return "|".join(option.choices)
    if option.kind == "text":
        return "TEXT"
    return "SIZE" if option.kind == "size" else "NUMBER"


def help_text(option: Option) -> str:
    """What the option is for, what is allowed, and the default."""
    facts = [] if option.kind in ("text", "choice", "switch") else [option.allowed]
    facts += [] if option.default is None else [f"default {option.show(option.default)}"]
    return f"{option.description} ({'; '.join(facts)})" if facts else option.description


def settings_from_flags(arguments: argparse.Namespace) -> tuple[list[Setting], list[Problem]]:
    """What was given on the command line, in its order: the last of several is the one that counts."""
    settings: list[Setting] = []
    problems: list[Problem] = []
    for option in options_in(("engine", "server", "log")):
        for text in getattr(arguments, option.flag.lstrip("-").replace("-", "_"), None) or ():
            if text == NO_TEXT:
                problems.append(missing_value(option.flag, option.form))
            else:
                settings.append(Setting(option, text, option.flag, COMMAND_LINE))
    return settings, problems


def missing_value(flag: str, form: str) -> Problem:
    """The problem of a flag that stands alone."""
    return Problem(key=flag, value=NO_VALUE, allowed=f"needs a value: {form}", source=COMMAND_LINE)


def unknown_arguments(unread: Sequence[str], sections: Iterable[str]) -> list[Problem]:
    """A problem for each argument that nothing takes, with the nearest known flag."""
    options = options_in(sections)
    problems: list[Problem] = []
    for before, argument in pairwise(["", *unread]):
        name = argument.partition("=")[0]
        if not is_flag(name) and is_flag(before) and "=" not in before:
            continue  # The value of the flag before it.
        near = meant(name, options) if is_flag(name) else None
        hint = f"; did you mean {near.flag}?" if near else ""
        problems.append(Problem(key="argument", value=argument, allowed=f"not understood{hint}", source=COMMAND_LINE))
    return problems


def is_flag(argument: str) -> bool:
    return argument.startswith("--")
