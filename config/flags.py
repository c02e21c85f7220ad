"""Command-line flags, generated from the configuration structs: `--memory-pool-bytes 200MiB`.

`puma serve` and `puma run` read EngineConfig from the same flags, so they cannot drift apart. Flags are one
source of settings; what every further source needs (the options of a struct, one setting's text to a value,
the struct from its settings with all problems collected) does not know about flags.
"""

import argparse
import difflib
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar, cast

import msgspec
from msgspec import inspect

from puma.config.errors import ConfigError, Problem
from puma.config.sizes import format_size, parse_size

S = TypeVar("S", bound=msgspec.Struct)


class Option(msgspec.Struct, frozen=True):
    """One field of a configuration struct."""

    key: str
    type: inspect.IntType | inspect.StrType | inspect.LiteralType
    default: int | str | None
    description: str
    unit: str

    @property
    def flag(self) -> str:
        return "--" + self.key.replace("_", "-")

    @property
    def bounds(self) -> str:
        """What is allowed, for people."""
        if isinstance(self.type, inspect.LiteralType):
            return ", ".join(str(value) for value in self.type.values)
        if isinstance(self.type, inspect.IntType):
            low, high = self.show(self.type.ge), self.show(self.type.le)
            return f"{low.removesuffix(self.unit).rstrip()} to {high}"
        return "1 to 4096 characters"

    def show(self, value: int | str | None) -> str:
        """A value of this option, for people."""
        if value is None:
            return "none"
        if self.unit == "bytes" and isinstance(value, int):
            return format_size(value)
        return f"{value} {self.unit}".rstrip()

    def parse(self, text: str) -> int | str:
        """Raises ValueError that says what is expected; the range is the struct's own business."""
        if not isinstance(self.type, inspect.IntType):
            return text
        if self.unit == "bytes":
            return parse_size(text)
        digits = text.removeprefix("-")
        if not (digits.isascii() and digits.isdigit() and len(digits) <= 18):
            raise ValueError("expected a whole number")
        return int(text)


class Setting(msgspec.Struct, frozen=True):
    """A value as somebody wrote it, and where: `flag --port`."""

    key: str
    text: str
    source: str


def options_of(struct: type[msgspec.Struct]) -> tuple[Option, ...]:
    """The options of a configuration struct, in the order of its fields."""
    described = inspect.type_info(struct)
    assert isinstance(described, inspect.StructType)
    return tuple(_option(field) for field in described.fields)


def add_flags(parser: argparse.ArgumentParser, struct: type[msgspec.Struct], title: str) -> None:
    """Add one flag per field, under a heading. Values stay text: `build` reports all problems together."""
    group = parser.add_argument_group(title)
    for option in options_of(struct):
        facts = [] if isinstance(option.type, inspect.StrType) else [option.bounds]
        facts += [] if option.default is None else [f"default {option.show(option.default)}"]
        described = f"{option.description} ({'; '.join(facts)})" if facts else option.description
        metavar = "SIZE" if option.unit == "bytes" else (option.unit.upper() or option.key.upper())
        group.add_argument(option.flag, metavar=metavar, help=described.replace("%", "%%"))


def settings_from_flags(arguments: argparse.Namespace, struct: type[msgspec.Struct]) -> tuple[Setting, ...]:
    """What was given on the command line for a struct's fields."""
    return tuple(
        Setting(option.key, text, f"flag {option.flag}")
        for option in options_of(struct)
        if (text := getattr(arguments, option.key, None)) is not None
    )


def unknown_flags(unread: Sequence[str], known: Iterable[str]) -> tuple[Problem, ...]:
    """A problem for each argument that nothing takes, with the nearest known flag."""
    problems: list[Problem] = []
    flags = sorted(known)
    for argument in unread:
        near = difflib.get_close_matches(argument.partition("=")[0], flags, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        problems.append(Problem(key="argument", value=argument, allowed=f"not understood{hint}"))
    return tuple(problems)


def build(struct: type[S], settings: Sequence[Setting]) -> S:
    """The struct with these settings. Raises ConfigError naming every setting that is wrong."""
    options = {option.key: option for option in options_of(struct)}
    sources = {setting.key: setting for setting in settings}
    values: dict[str, Any] = {}
    problems: list[Problem] = []
    for setting in settings:
        try:
            values[setting.key] = options[setting.key].parse(setting.text)
        except ValueError as error:
            problems.append(Problem(key=setting.key, value=setting.text, allowed=str(error), source=setting.source))
    try:
        built = struct(**values)
    except ConfigError as error:
        problems.extend(_located(problem, options, sources) for problem in error.problems)
        raise ConfigError(tuple(problems)) from None
    if problems:
        raise ConfigError(tuple(problems))
    return built


def _located(problem: Problem, options: dict[str, Option], sources: dict[str, Setting]) -> Problem:
    """The problem with the value as it was written, where, and the range in words."""
    setting = sources.get(problem.key)
    if setting is None:
        return problem
    out_of_range = problem.allowed.startswith(("Expected `", "Invalid enum"))
    allowed = f"must be {options[problem.key].bounds}" if out_of_range else problem.allowed
    return Problem(key=problem.key, value=setting.text, allowed=allowed, source=setting.source)


def _option(field: inspect.Field) -> Option:
    type_ = field.type
    if isinstance(type_, inspect.UnionType):
        type_ = next(member for member in type_.types if not isinstance(member, inspect.NoneType))
    extra: dict[str, Any] = {}
    if isinstance(type_, inspect.Metadata):
        extra = cast("dict[str, Any]", type_.extra_json_schema or {})  # pyright: ignore[reportUnknownMemberType]
        type_ = type_.type
    assert isinstance(type_, inspect.IntType | inspect.StrType | inspect.LiteralType)
    return Option(field.name, type_, field.default, extra.get("description", ""), extra.get("unit", ""))
