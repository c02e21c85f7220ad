"""The configuration file: which one is read, and from its bytes to settings.

[engine]                        one file is read, the first of these that there is:
memory_pool_bytes = "2GiB"      --config, PUMA_CONFIG, the user's, the system's
[server]
port = 8080
"""

import stat
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import platformdirs

from puma.config.environment import FILE_VARIABLE
from puma.config.errors import NO_VALUE, Problem
from puma.config.home import chosen_home
from puma.config.sections import OPTIONS, SECTIONS, meant
from puma.config.setting import Setting

NAME = "puma.toml"
SYSTEM_FILE = Path("/etc/puma") / NAME

MOST_BYTES = 1 << 20


class CannotRead(Exception):
    """The file cannot be used at all; the message says why."""


def chosen_file(given: str | None, environment: Mapping[str, str]) -> Path | None:
    """The file to read: one that was named must be there, of the others the first that exists. None: there is none."""
    if named := given or environment.get(FILE_VARIABLE):
        return Path(named).expanduser()
    return next((path for path in usual_files() if path.exists() or path.is_symlink()), None)


def usual_files() -> tuple[Path, ...]:
    """Where a file is looked for that nobody named: the user's, then the system's."""
    home = chosen_home()
    own = (home or platformdirs.user_config_path("puma")) / NAME
    shared = platformdirs.site_config_path("puma") / NAME
    return tuple(dict.fromkeys((own, SYSTEM_FILE, shared)))


def settings_from_file(path: Path) -> tuple[list[Setting], list[Problem]]:
    """All that the file says, and what is wrong with its names; or the one thing that is wrong with all of it."""
    try:
        document = parse(read_bytes(path))
    except CannotRead as error:
        return [], [Problem(key=str(path), value=NO_VALUE, allowed=str(error))]
    settings: list[Setting] = []
    problems: list[Problem] = []
    for section, content in document.items():
        if section not in SECTIONS:
            problems.append(_unknown_section(section, content, path))
        elif not isinstance(content, dict):
            allowed = f"expected a section: a line [{section}], and its keys below"
            problems.append(Problem(key=section, value=content, allowed=allowed, source=str(path)))
        else:
            _read_section(section, cast("dict[str, Any]", content), path, settings, problems)
    return settings, problems


def read_bytes(path: Path) -> bytes:
    """The file's content. Raises CannotRead."""
    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            raise CannotRead("expected a configuration file, this is a folder")
        if not stat.S_ISREG(status.st_mode):
            raise CannotRead("expected a configuration file, this is none")
        if status.st_size > MOST_BYTES:
            raise CannotRead(f"too large for a configuration file: {status.st_size:,} bytes, at most {MOST_BYTES:,}")
        return path.read_bytes()
    except FileNotFoundError:
        words = "a link that leads nowhere" if path.is_symlink() else "no such configuration file"
        raise CannotRead(words) from None
    except PermissionError:
        raise CannotRead("this user may not read the configuration file") from None
    except (OSError, ValueError) as error:
        raise CannotRead(f"the configuration file cannot be read: {getattr(error, 'strerror', error)}") from None


def parse(raw: bytes) -> dict[str, Any]:
    """The document. Raises CannotRead that says where it is no TOML."""
    try:
        return tomllib.loads(raw.removeprefix(b"\xef\xbb\xbf").decode())
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        column = error.start - raw.rfind(b"\n", 0, error.start)
        raise CannotRead(
            f"not UTF-8: byte 0x{raw[error.start]:02x} at line {line}, column {column}; save it as UTF-8"
        ) from None
    except RecursionError:
        raise CannotRead("not a configuration: nested too deeply") from None
    except ValueError as error:
        raise CannotRead(f"not valid TOML: {error}") from None


def _read_section(
    section: str, content: dict[str, Any], path: Path, settings: list[Setting], problems: list[Problem]
) -> None:
    known = {option.key: option for option in OPTIONS if option.section == section}
    for key, value in content.items():
        if key in known:
            settings.append(Setting(known[key], value, f"[{section}] {key}", str(path)))
            continue
        problems.append(
            Problem(
                key=key,
                value=NO_VALUE if "key" in key.lower() else value,
                allowed=f"no such key in [{section}]{_hint(key)}",
                source=str(path),
                written=f"[{section}] {key}",
            )
        )


def _unknown_section(section: str, content: object, path: Path) -> Problem:
    if isinstance(content, dict):
        allowed = f"no such section; there are {', '.join(f'[{name}]' for name in SECTIONS)}"
        near = _nearest_section(section)
        hint = f"; did you mean [{near}]?" if near else ""
        return Problem(key=f"[{section}]", value=NO_VALUE, allowed=allowed + hint, source=str(path))
    hint = _hint(section) or f"; keys stand in {', '.join(f'[{name}]' for name in SECTIONS)}"
    return Problem(key=section, value=content, allowed=f"no such key outside of a section{hint}", source=str(path))


def _nearest_section(section: str) -> str | None:
    import difflib

    near = difflib.get_close_matches(section.lower(), SECTIONS, n=1)
    return near[0] if near else None


def _hint(key: str) -> str:
    near = meant(key, OPTIONS)
    return f"; did you mean {near.key} in [{near.section}]?" if near else ""
