"""Control tokens in text: finding their spellings, all of them at once and in linear time."""

import re
from collections.abc import Iterator, Mapping


class ControlTokens:
    """Spellings that stand for one token when a template, or a raw prompt, writes them."""

    def __init__(self, ids: Mapping[str, int]) -> None:
        self.ids = {spelling: ids[spelling] for spelling in ids if spelling}
        self._pattern = re.compile(f"({alternatives(self.ids)})") if self.ids else None

    def split(self, text: str) -> Iterator[str | int]:
        """The text in order: stretches without any spelling, and the ids of the spellings between them.

        Where several spellings begin at one place, the longest counts.
        """
        if self._pattern is None:
            yield text
            return
        for index, part in enumerate(self._pattern.split(text)):
            if index % 2:
                yield self.ids[part]
            elif part:
                yield part


def alternatives(words: Mapping[str, object]) -> str:
    """A regular expression that matches any of the words, the longest first.

    Common beginnings are factored out, so that trying costs the length of a word and not the number of words.
    """
    return branches(sorted(words), 0)


def branches(words: list[str], depth: int) -> str:
    """The part for sorted words that agree in their first `depth` characters."""
    ends_here = len(words[0]) == depth
    rest = words[1:] if ends_here else words
    by_character: dict[str, list[str]] = {}
    for word in rest:
        by_character.setdefault(word[depth], []).append(word)
    parts = [re.escape(character) + branches(group, depth + 1) for character, group in by_character.items()]
    if not parts:
        return ""
    together = parts[0] if len(parts) == 1 and not ends_here else f"(?:{'|'.join(parts)})"
    return together + ("?" if ends_here else "")
