"""Option: one field of a configuration struct, with all that flags, variables, files and documents say about it.

A field is `Annotated[type, count(...)]` or one of the other descriptions below; `| None` adds the word "auto", save
where the value is a secret. Range, unit and words stand there and nowhere else.
"""

from functools import lru_cache
from typing import Any, Literal, cast

import msgspec
from msgspec import Meta, inspect

from puma.config.sizes import FORMS, exact_size, format_size

AUTO = "auto"
"""How texts and files write that a value is to be chosen by Puma: None."""

Kind = Literal["count", "size", "text", "choice", "switch"]
Value = int | str | bool | None

LONGEST_TEXT = 4096


def count(low: int, high: int, help_text: str, unit: str = "", *, multiple_of: int | None = None) -> Meta:
    """A whole number within [low, high]; unit is shown in help texts (tokens, seconds, ...)."""
    return Meta(ge=low, le=high, multiple_of=multiple_of, description=help_text, extra_json_schema={"unit": unit})


def size(low: int, high: int, help_text: str, *, share: bool = False) -> Meta:
    """Bytes within [low, high]; `share`: may be written as a share of the memory, "25%"."""
    extra = {"unit": "bytes", "share": share}
    return Meta(ge=low, le=high, description=help_text, extra_json_schema=extra)


def text(help_text: str, *, secret: bool = False) -> Meta:
    """Any text but the empty one; a secret is never shown."""
    return Meta(
        min_length=1, max_length=LONGEST_TEXT, description=help_text, extra_json_schema={"unit": "", "secret": secret}
    )


def choice(help_text: str) -> Meta:
    """One of a Literal's words, or on and off for a bool."""
    return Meta(description=help_text)


class Option(msgspec.Struct, frozen=True, kw_only=True):
    """One field of a configuration struct."""

    section: str
    key: str
    kind: Kind
    default: Value
    description: str
    type: Any
    """The field's annotated type, for msgspec."""
    unit: str = ""
    low: int = 0
    high: int = 0
    multiple_of: int = 1
    words: tuple[str, ...] = ()
    """Words that may stand for a value, of kinds other than choice and switch; "auto" stands for None."""
    choices: tuple[str, ...] = ()
    share: bool = False
    secret: bool = False

    @property
    def flag(self) -> str:
        return "--" + self.name.replace("_", "-")

    @property
    def variable(self) -> str:
        return "PUMA_" + self.name.upper()

    @property
    def path(self) -> str:
        """Its place in a file: "engine.threads"."""
        return f"{self.section}.{self.key}"

    @property
    def name(self) -> str:
        """Its name where there are no sections. `[log] level` is log_level there."""
        return f"log_{self.key}" if self.section == "log" else self.key

    @property
    def allowed(self) -> str:
        """What may be written, for people."""
        words = "".join(f', or "{word}"' for word in self.words)
        if self.kind in ("choice", "switch"):
            return ", ".join(self.choices[:-1]) + f" or {self.choices[-1]}"
        if self.kind == "text":
            return f"1 to {LONGEST_TEXT} characters" + words
        low, high = self.show(self.low), self.show(self.high)
        bounds = f"{low.removesuffix(self.unit).rstrip()} to {high}"
        bounds += f", a multiple of {self.multiple_of}" if self.multiple_of > 1 else ""
        bounds += ', or a share of the memory such as "25%"' if self.share else ""
        return bounds + words

    @property
    def form(self) -> str:
        """How a value is written, for who wrote something else."""
        if self.kind in ("choice", "switch", "text"):
            return f"expected {self.allowed}"
        words = "".join(f', or "{word}"' for word in self.words)
        if self.kind == "count":
            return f"expected a whole number{words}, {self.allowed.removesuffix(words)}"
        share = ', or a share of the memory such as "25%"' if self.share else ""
        return f"expected {FORMS}{share}{words}"

    def show(self, value: Value) -> str:
        """A value of this option, for people."""
        if value is None:
            return AUTO
        if isinstance(value, bool):
            return "on" if value else "off"
        if isinstance(value, str):
            return value
        if self.kind == "size":
            return format_size(value)
        return f"{value} {self.unit}".rstrip()

    def spell(self, value: Value) -> str:
        """A value as a flag or a variable would have it, without loss."""
        if isinstance(value, int) and not isinstance(value, bool):
            return exact_size(value) if self.kind == "size" else str(value)
        return self.show(value)


@lru_cache
def options_of(struct: type[msgspec.Struct], section: str) -> tuple[Option, ...]:
    """The options of a configuration struct, in the order of its fields."""
    described = inspect.type_info(struct)
    assert isinstance(described, inspect.StructType)
    types = {field.name: field.type for field in msgspec.structs.fields(struct)}
    return tuple(_option(field, types[field.name], section) for field in described.fields)


def _option(field: inspect.Field, type_: Any, section: str) -> Option:
    members = field.type.types if isinstance(field.type, inspect.UnionType) else (field.type,)
    extra: dict[str, Any] = {}
    description, words, facts = "", list[str](), dict[str, Any]()
    for member in members:
        if isinstance(member, inspect.Metadata):
            schema = cast("dict[str, Any]", member.extra_json_schema or {})  # pyright: ignore[reportUnknownMemberType]
            description = schema.get("description", description)
            extra |= {name: schema[name] for name in ("unit", "share", "secret") if name in schema}
            member = member.type
        if isinstance(member, inspect.NoneType):
            words += [] if extra.get("secret") else [AUTO]
        elif isinstance(member, inspect.LiteralType) and len(members) > 1:
            words.extend(str(word) for word in member.values)
        else:
            facts = _facts(member, extra)
    return Option(
        section=section,
        key=field.name,
        type=type_,
        default=None if field.default is msgspec.NODEFAULT else field.default,
        description=description,
        words=tuple(words),
        **facts,
        **extra,
    )


def _facts(type_: inspect.Type, extra: dict[str, Any]) -> dict[str, Any]:
    """Kind, bounds and choices of a type."""
    if isinstance(type_, inspect.IntType):
        kind = "size" if extra.get("unit") == "bytes" else "count"
        return {"kind": kind, "low": type_.ge, "high": type_.le, "multiple_of": type_.multiple_of or 1}
    if isinstance(type_, inspect.LiteralType):
        return {"kind": "choice", "choices": tuple(str(value) for value in type_.values)}
    if isinstance(type_, inspect.BoolType):
        return {"kind": "switch", "choices": ("on", "off")}
    assert isinstance(type_, inspect.StrType)
    return {"kind": "text"}
