"""ConfigError: everything that is wrong with a configuration, in one report.

ConfigError
    .problems   one Problem per wrong value: key, value, what is allowed, where it was written
"""

import msgspec

from puma.config.sizes import size_like

LONGEST_SHOWN = 100


class NoValue:
    """Stands for the value where there is none to show: a missing file, a secret."""


NO_VALUE = NoValue()


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """One wrong value."""

    key: str
    """The field's name, or whatever else is wrong: a flag, a file."""
    value: object
    allowed: str
    """What is allowed; beside `low` or `high`, why."""
    source: str = ""
    """Where the user wrote it: the command line, the environment, a file."""
    written: str = ""
    """The key as the user wrote it, when that differs: --port, PUMA_PORT, [server] port."""
    involves: tuple[str, ...] = ()
    """The other fields of a contradiction."""
    low: int | None = None
    high: int | None = None
    """The smallest and the largest value that would work, where model or machine decide that."""
    whole: int | None = None
    """What a share, such as "25%", is of."""

    def __str__(self) -> str:
        origin = f" ({self.source})" if self.source else ""
        line = f"{self.written or self.key}{self._shown()}{origin}: {self._bounds()}{self.allowed}"
        # Names of keys and files can hold line breaks, and what a terminal takes for commands.
        return "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in line)

    def _shown(self) -> str:
        """The value as it is written, cut short."""
        if isinstance(self.value, NoValue):
            return ""
        text = str(self.value).lower() if isinstance(self.value, bool) else repr(self.value)
        return f" = {text}" if len(text) <= LONGEST_SHOWN else f" = {text[:LONGEST_SHOWN]}..."

    def _bounds(self) -> str:
        """ "must be 1.5MiB to 12GiB: ", in the unit in which the value was written."""
        low = None if self.low is None else self._like(self.low, up=True)
        high = None if self.high is None else self._like(self.high, up=False)
        if low and high:
            return f"must be {low} to {high}: "
        if low or high:
            return f"must be at {'least' if low else 'most'} {low or high}: "
        return ""

    def _like(self, bound: int, *, up: bool) -> str:
        if self.key.endswith("_bytes"):
            return size_like(bound, str(self.value), up=up, whole=self.whole)
        return str(bound)


class ConfigError(ValueError):
    """The configuration cannot be used; nothing has been loaded or bound yet."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = problems
