"""Guard: keeps text that users wrote from ever becoming a control token of the prompt.

A template writes control tokens as text, and mixes them with what users wrote; once it has been rendered the two look
alike. So a private character, the marker, is put into the users' strings before rendering, at every place where a
control token could begin, or go on from what the template wrote before. A spelling that is intact in the rendered
prompt is then the template's own. The markers are taken out again.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

from puma.models.errors import PromptError
from puma.models.text.control_tokens import ControlTokens, alternatives

MARKERS = (range(0xE000, 0xF900), range(0xF0000, 0xFFFFE), range(0x100000, 0x10FFFE))
"""Unicode's private use areas."""


class Guard:
    """Made once for a template; used by any thread."""

    def __init__(self, controls: ControlTokens, source: str) -> None:
        spellings = controls.ids
        self._source = source
        self._interior = "\n".join(spelling[1:] for spelling in spellings)
        self._start = start_pattern(spellings, source)

    def marker(self, values: Any) -> str:
        """A character that occurs neither in the values nor in the template, and whose JSON escape does not either."""
        text = self._source + "".join(strings(values))
        used = set(text)
        for area in MARKERS:
            for character in map(chr, area):
                if character not in used and escaped(character) not in text:
                    return character
        raise PromptError("the text uses every private character of Unicode")

    def mark(self, value: Any, marker: str) -> Any:
        """The same value, nested as it is, with the marker wherever one of its strings could make a control token."""
        match value:
            case str():
                return self._mark_string(value, marker)
            case Mapping():
                items = cast("Mapping[Any, Any]", value).items()
                return {self.mark(key, marker): self.mark(item, marker) for key, item in items}
            case list() | tuple():
                return [self.mark(item, marker) for item in cast("list[Any]", value)]
            case _:
                return value

    def _mark_string(self, text: str, marker: str) -> str:
        if self._start is None or not text:
            return text
        before = marker if self._goes_on(text) else ""
        return before + self._start.sub(rf"\g<0>{marker}", text)

    def _goes_on(self, text: str) -> bool:
        """Whether the text could go on with a control token that the template began: `<` and then `|im_end|`."""
        if text in self._interior:
            return text not in self._source
        return not text[0].isalnum() and not text[0].isspace() and text[:2] in self._interior


def start_pattern(spellings: Mapping[str, int], source: str) -> re.Pattern[str] | None:
    """Matches the first character of whatever could become a control token; None when there are none.

    That is each spelling, and each character other than a letter or digit with which one begins, except where the
    text has a tag that the template itself speaks of, such as `<think>`: it may look for that in the text.
    """
    if not spellings:
        return None
    whole = alternatives(spellings)
    openers = {spelling[0] for spelling in spellings if not spelling[0].isalnum()}
    if not openers:
        return re.compile(f"(?={whole}).", re.DOTALL)
    own_text = re.sub(whole, " ", source)
    own = {tag for tag in tags(own_text, openers) if tag not in spellings}
    spared = f"(?!{alternatives(dict.fromkeys(own))})" if own else ""
    return re.compile(f"(?={whole}).|{spared}[{re.escape(''.join(sorted(openers)))}]", re.DOTALL)


def tags(text: str, openers: set[str]) -> Iterator[str]:
    """What begins with an opener and ends before a space, a quote, or the next opener."""
    opener = re.escape("".join(sorted(openers)))
    for found in re.finditer(rf"[{opener}][^\s'\"\\{opener}]+", text):
        yield found[0]


def strings(value: Any) -> Iterator[str]:
    """All strings in nested mappings and lists, keys too."""
    match value:
        case str():
            yield value
        case Mapping():
            for key, item in cast("Mapping[Any, Any]", value).items():
                yield from strings(key)
                yield from strings(item)
        case list() | tuple():
            for item in cast("list[Any]", value):
                yield from strings(item)
        case _:
            pass


def escaped(character: str) -> str:
    r"""How JSON in ASCII writes it: \ue000."""
    return json.dumps(character)[1:-1]


def unmark(text: str, marker: str) -> str:
    """The text without markers."""
    return text.replace(marker, "").replace(escaped(marker), "")
