"""Setting: one value as somebody wrote it, and where; and how it becomes the value that is meant.

A text (of a flag or a variable) and a value of a TOML document follow the same rules, save that a document has types:
there a number is a number, and on and off are true and false.
"""

from collections.abc import Callable
from decimal import Decimal

import msgspec

from puma.config.check import is_allowed, is_text
from puma.config.errors import NO_VALUE, Problem
from puma.config.machine import usable_bytes
from puma.config.options import AUTO, Option, Value
from puma.config.sizes import parse_share, parse_size

COMMAND_LINE = "command line"
ENVIRONMENT = "environment"

MOST_DIGITS = 18

SWITCH = {"on": True, "off": False, "true": True, "false": False}


class Setting(msgspec.Struct, frozen=True):
    """A value as somebody wrote it, and where."""

    option: Option
    value: object
    written: str
    """The key as the user wrote it: --port, PUMA_PORT, [server] port."""
    source: str
    """COMMAND_LINE, ENVIRONMENT, or a file's path."""

    @property
    def typed(self) -> bool:
        """Whether the value comes from a document with types of its own."""
        return self.source not in (COMMAND_LINE, ENVIRONMENT)

    def problem(self, allowed: str) -> Problem:
        return Problem(
            key=self.option.key,
            value=NO_VALUE if self.option.secret else self.value,
            allowed=allowed,
            source=self.source,
            written=self.written,
        )


def read(setting: Setting) -> tuple[Value, Problem | None]:
    """The value that is meant, or what is wrong with what was written."""
    try:
        value = (_of_document if setting.typed else _of_text)(setting.option, setting.value)
    except ValueError as error:
        return None, setting.problem(str(error))
    if not is_allowed(setting.option, value):
        hint = f" (these are {value:,} bytes)" if setting.option.kind == "size" and value != setting.value else ""
        return None, setting.problem(f"must be {setting.option.allowed}{hint}")
    return value, None


def _of_text(option: Option, text: object) -> Value:
    assert isinstance(text, str)
    if text in option.words:
        return _word(text)
    return _READERS[option.kind](option, text)


def _of_document(option: Option, value: object) -> Value:
    if isinstance(value, str) and value in option.words:
        return _word(value)
    match option.kind, value:
        case "switch", bool():
            return value
        case (("count" | "size"), int()) if not isinstance(value, bool):
            return value
        case "size", str():
            return _size(option, value)
        case (("text" | "choice"), str()):
            return _READERS[option.kind](option, value)
        case "switch", _:
            raise ValueError("expected true or false")
        case (("count" | "size"), bool()):
            raise ValueError(f"{option.form} (true and false are no numbers)")
        case "count", str() if value.strip().removeprefix("-").isdigit():
            raise ValueError(f"{option.form}, without quotes")
        case _:
            raise ValueError(option.form)


def _word(word: str) -> Value:
    return None if word == AUTO else word


def _count(option: Option, text: str) -> int:
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= MOST_DIGITS):
        raise ValueError(option.form)
    return int(text)


def _size(option: Option, text: str) -> int:
    try:
        if option.share and (share := parse_share(text)) is not None:
            return int(share * Decimal(usable_bytes()))
        return parse_size(text)
    except ValueError as error:
        raise ValueError(str(error) if str(error).startswith("a share") else option.form) from None


def _switch(option: Option, text: str) -> bool:
    if text not in SWITCH:
        raise ValueError(option.form)
    return SWITCH[text]


def _choice(option: Option, text: str) -> str:
    if text not in option.choices:
        raise ValueError(option.form)
    return text


def _text(option: Option, text: str) -> str:
    if not is_text(text):
        raise ValueError("must be text in UTF-8, without zero bytes, and not empty")
    return text


_READERS: dict[str, Callable[[Option, str], Value]] = {
    "count": _count,
    "size": _size,
    "switch": _switch,
    "choice": _choice,
    "text": _text,
}
