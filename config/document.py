"""The table of docs/configuration.md, from the definition: `python -m puma.config.document FILE` renews it."""

import sys
from pathlib import Path

from puma.config.options import Option
from puma.config.sections import SECTIONS, options_in

BEGIN, END = "<!-- table of options: begin -->", "<!-- table of options: end -->"


def tables() -> str:
    """A table for each section, in Markdown."""
    return "\n\n".join(f"### [{section}]\n\n{_table(section)}" for section in SECTIONS)


def renewed(document: str) -> str:
    """The document with the tables as they are now. Raises ValueError when it has no place for them."""
    before, found, rest = document.partition(BEGIN)
    _, ended, after = rest.partition(END)
    if not (found and ended):
        raise ValueError(f"expected the lines {BEGIN} and {END}")
    return f"{before}{BEGIN}\n\n{tables()}\n\n{END}{after}"


def _table(section: str) -> str:
    lines = ["| key | flag and variable | default | allowed | what |", "| --- | --- | --- | --- | --- |"]
    return "\n".join(lines + [_row(option) for option in options_in([section])])


def _row(option: Option) -> str:
    default = "none" if option.secret else f"`{option.spell(option.default)}`"
    allowed = option.allowed.replace("|", "\\|")
    return f"| `{option.key}` | `{option.flag}` `{option.variable}` | {default} | {allowed} | {option.description} |"


if __name__ == "__main__":
    file = Path(sys.argv[1])
    file.write_text(renewed(file.read_text()))
