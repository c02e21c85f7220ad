"""ConfigError: everything that is wrong with a configuration, in one report.

ConfigError
    .problems   one Problem per wrong value: key, value, what is allowed, where it was written
"""

import msgspec


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """One wrong value. `source` says where the user wrote it: a flag, a variable, a file and key."""

    key: str
    value: object
    allowed: str
    source: str = ""

    def __str__(self) -> str:
        origin = f" ({self.source})" if self.source else ""
        return f"{self.key} = {self.value!r}{origin}: {self.allowed}"


class ConfigError(ValueError):
    """The configuration cannot be used; nothing has been loaded or bound yet."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = problems
