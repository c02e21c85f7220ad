"""The configuration in force, for people and as a file."""

import textwrap
from collections.abc import Sequence

import tomli_w

from puma.config.configuration import Configuration
from puma.config.options import AUTO, Option, Value
from puma.config.sections import OPTIONS, SECTIONS, options_in
from puma.config.sizes import exact_size

MASK = "********"

WIDTH = 118


def rows_of(configuration: Configuration) -> tuple[tuple[str, str, str], ...]:
    """Path, value and origin of every option: ("server.port", "8080", "PUMA_PORT, environment")."""
    return tuple(
        (option.path, _shown(option, value_of(configuration, option)), origin_of(configuration, option))
        for option in OPTIONS
    )


def show_text(rows: Sequence[tuple[str, str, str]]) -> str:
    """One line for each option: name, value, and where the value came from."""
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    return "\n".join(f"{path:<{widths[0]}}  {value:<{widths[1]}}  {origin}" for path, value, origin in rows)


def to_toml(configuration: Configuration) -> str:
    """A file with every option, which read again gives the same configuration. Secrets are left out."""
    parts: list[str] = []
    for section in SECTIONS:
        lines = [f"[{section}]"]
        for option in options_in([section]):
            value = value_of(configuration, option)
            lines += textwrap.wrap(option.description, WIDTH, initial_indent="# ", subsequent_indent="# ")
            if option.secret:
                lines.append(f"# {option.key} is left out here; write it yourself" if value else f"# {option.key}")
            else:
                lines.append(tomli_w.dumps({option.key: _document_value(option, value)}).rstrip())
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def value_of(configuration: Configuration, option: Option) -> Value:
    """The value in force."""
    return getattr(getattr(configuration, option.section), option.key)


def origin_of(configuration: Configuration, option: Option) -> str:
    """Where the value in force came from."""
    setting = configuration.origins.get(option.path)
    return f"{setting.written}, {setting.source}" if setting else "default"


def _shown(option: Option, value: Value) -> str:
    if option.secret:
        return MASK if value else "none"
    return option.spell(value)


def _document_value(option: Option, value: Value) -> int | str | bool:
    if value is None:
        return AUTO
    if option.kind == "size" and isinstance(value, int):
        spelled = exact_size(value)
        return int(spelled) if spelled.isdigit() else spelled
    return value
