"""How much memory there is for this process: the machine's, or less where a container or a service is limited."""

import resource
from collections.abc import Iterator
from pathlib import Path

import psutil

CGROUPS = Path("/sys/fs/cgroup")
OWN_GROUP = Path("/proc/self/cgroup")

UNLIMITED = 1 << 60
"""Version 1 of control groups writes a number near 2**63 where there is no limit."""


def usable_bytes() -> int:
    """What this process may use at most, however much is taken at the moment."""
    return min(psutil.virtual_memory().total, min(limit for limit, _ in _limits()), _address_space())


def available_bytes() -> int:
    """What this process could take now without anyone else losing theirs: caches of files can go."""
    left = min(limit - used for limit, used in _limits())
    return max(0, min(psutil.virtual_memory().available, left, _address_space()))


def resident_bytes() -> int:
    """What this process occupies."""
    return psutil.Process().memory_info().rss


def _address_space() -> int:
    soft = resource.getrlimit(resource.RLIMIT_AS)[0]
    return UNLIMITED if soft == resource.RLIM_INFINITY else soft


def _limits() -> Iterator[tuple[int, int]]:
    """Limit and use, caches of files left out, of every control group that this process is in; at least one pair.

    Source: Linux, Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/memory.rst.
    """
    yield UNLIMITED, 0
    for folder, limit, used, cache in _groups():
        found = _number(folder / limit)
        if found is not None and found < UNLIMITED:
            yield found, max(0, (_number(folder / used) or 0) - _statistic(folder / "memory.stat", cache))


def _groups() -> Iterator[tuple[Path, str, str, str]]:
    """Folder and file names of each control group for memory, from the innermost outwards."""
    try:
        lines = OWN_GROUP.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if not controllers:
            root, names = CGROUPS, ("memory.max", "memory.current", "inactive_file")
        elif "memory" in controllers.split(","):
            root = CGROUPS / "memory"
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        else:
            continue
        limit, used, cache = names
        inner = root / path.lstrip("/")
        # In a container the path is the host's, and the group itself is mounted as the root.
        for folder in (inner, *inner.parents):
            if folder.is_relative_to(root):
                yield folder, limit, used, cache


def _number(file: Path) -> int | None:
    """The number in a file; None when there is none: "max", or no such file."""
    try:
        return int(file.read_text())
    except (OSError, ValueError):
        return None


def _statistic(file: Path, name: str) -> int:
    try:
        for line in file.read_text().splitlines():
            key, _, value = line.partition(" ")
            if key == name:
                return int(value)
    except (OSError, ValueError):
        pass
    return 0
