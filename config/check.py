"""The checks that every configuration struct makes of itself when it is constructed."""

import msgspec

from puma.config.errors import NO_VALUE, ConfigError, Problem
from puma.config.options import Option, options_of


def check_fields(config: msgspec.Struct, section: str) -> tuple[Problem, ...]:
    """A problem for each field whose value its own definition does not allow."""
    return tuple(
        Problem(key=option.key, value=NO_VALUE if option.secret else value, allowed=f"must be {option.allowed}")
        for option in options_of(type(config), section)
        if not is_allowed(option, value := getattr(config, option.key))
    )


def is_allowed(option: Option, value: object) -> bool:
    """Whether a value is of the option's type and within its bounds."""
    try:
        msgspec.convert(value, option.type)
    except msgspec.ValidationError:
        return False
    return not isinstance(value, str) or is_text(value)


def is_text(value: str) -> bool:
    """Whether it could be written down: names from outside may hold bytes that are not UTF-8, and zeros."""
    try:
        return "\0" not in value and bool(value.encode())
    except UnicodeEncodeError:
        return False


def refuse(problems: tuple[Problem, ...]) -> None:
    """Raise ConfigError when there are any."""
    if problems:
        raise ConfigError(problems)
