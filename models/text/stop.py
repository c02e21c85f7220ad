"""StopFinder: stop strings in text that arrives in pieces."""


class Matcher:
    """How much of one stop string the text so far ends with (Knuth, Morris, Pratt).

    `fallback[n]`: when n characters match and the next does not, the longest shorter match.
    """

    def __init__(self, stop: str) -> None:
        self.stop = stop
        self.matched = 0
        self.fallback = [0, 0]
        length = 0
        for character in stop[1:]:
            while length and stop[length] != character:
                length = self.fallback[length]
            length += stop[length] == character
            self.fallback.append(length)

    def push(self, character: str) -> int:
        """Characters of the stop string that match after this one."""
        matched, stop = self.matched, self.stop
        while matched and stop[matched] != character:
            matched = self.fallback[matched]
        self.matched = matched + (stop[matched] == character)
        return self.matched


class StopFinder:
    """Text goes in, text that can no longer be part of a stop string comes out.

    The text ends at the first character that completes a stop string. If it completes several, the longest counts:
    nothing of it is emitted. How the text is cut into pieces makes no difference. Empty stop strings are ignored.
    """

    def __init__(self, stops: tuple[str, ...]) -> None:
        self._matchers = [Matcher(stop) for stop in stops if stop]
        self._held = ""
        self._hit = False

    def push(self, text: str) -> tuple[str, bool]:
        """The text that is now safe to send, and whether a stop string is complete; after that, all is silence."""
        if self._hit:
            return "", True
        if not self._matchers:
            return text, False
        waiting = self._held + text
        begun = len(self._held)
        for position, character in enumerate(text, len(self._held) + 1):
            begun = 0
            for matcher in self._matchers:
                matched = matcher.push(character)
                begun = max(begun, matched)
                self._hit = self._hit or matched == len(matcher.stop)
            if self._hit:
                complete = max(len(m.stop) for m in self._matchers if m.matched == len(m.stop))
                self._held = ""
                return waiting[: position - complete], True
        safe = len(waiting) - begun
        self._held = waiting[safe:]
        return waiting[:safe], False

    def flush(self) -> str:
        """What was held back, now that no text follows: a stop string only begun."""
        held, self._held = self._held, ""
        return held
