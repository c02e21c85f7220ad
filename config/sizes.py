"""Sizes in bytes, as people write them: "200MiB", "1.5GB", "104857600".

    B                    1
    kB  MB  GB  TB       1000, 1000², 1000³, 1000⁴
    KiB MiB GiB TiB      1024, 1024², 1024³, 1024⁴

Units are case-sensitive, one space before the unit is allowed, a fraction of a byte is rounded down.
Anything else is refused: "2g" or "1K" would mean one thing to some people and another to others.
"""

import re
from decimal import Decimal

UNITS = {
    "": 1,
    "B": 1,
    "kB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "TiB": 2**40,
}

FORMS = 'a size such as 104857600, "200MiB" or "1.5GB" (units: B, kB, MB, GB, TB, KiB, MiB, GiB, TiB)'

_SIZE = re.compile(r"([0-9]{1,18})(\.[0-9]{1,18})? ?([A-Za-z]*)", re.ASCII)


def parse_size(text: str) -> int:
    """Bytes. Raises ValueError, whose message shows the forms that are understood."""
    match = _SIZE.fullmatch(text.strip())
    if match is None or (unit := UNITS.get(match[3])) is None or (match[2] and unit == 1):
        raise ValueError(f"expected {FORMS}")
    return int(Decimal(match[1] + (match[2] or "")) * unit)


def format_size(size: int) -> str:
    """In the largest binary unit of which it is at least one, with at most one decimal: "100 MiB"."""
    for unit in ("TiB", "GiB", "MiB", "KiB"):
        if size >= UNITS[unit]:
            return f"{size / UNITS[unit]:.1f}".removesuffix(".0") + f" {unit}"
    return f"{size} B"
