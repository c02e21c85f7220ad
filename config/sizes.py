"""Sizes in bytes, as people write them: "200MiB", "1.5GB", "104857600", and shares of the memory: "25%".

    B                    1
    kB  MB  GB  TB       1000, 1000², 1000³, 1000⁴
    KiB MiB GiB TiB      1024, 1024², 1024³, 1024⁴

Units are case-sensitive, one space before the unit is allowed, a fraction of a byte is rounded down.
Anything else is refused: "2g" or "1K" would mean one thing to some people and another to others.
"""

import re
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

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
_SHARE = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,6})?) ?%", re.ASCII)

DECIMALS = 3
"""Of sizes that are proposed."""


def parse_size(text: str) -> int:
    """Bytes. Raises ValueError, whose message shows the forms that are understood."""
    match = _SIZE.fullmatch(text.strip())
    if match is None or (unit := UNITS.get(match[3])) is None or (match[2] and unit == 1):
        raise ValueError(f"expected {FORMS}")
    return int(Decimal(match[1] + (match[2] or "")) * unit)


def parse_share(text: str) -> Decimal | None:
    """The part that "25%" is of the whole, 0 to 1; None when it is no share. Raises ValueError beyond 100 %."""
    match = _SHARE.fullmatch(text.strip())
    if match is None:
        return None
    share = Decimal(match[1]) / 100
    if not 0 < share <= 1:
        raise ValueError("a share is more than 0% and at most 100%")
    return share


def format_size(size: int) -> str:
    """In the largest binary unit of which it is at least one, with at most one decimal: "100 MiB"."""
    for unit in ("TiB", "GiB", "MiB", "KiB"):
        if size >= UNITS[unit]:
            return f"{size / UNITS[unit]:.1f}".removesuffix(".0") + f" {unit}"
    return f"{size} B"


def exact_size(size: int) -> str:
    """As it can be read again without loss: "100MiB", "1500" (bytes)."""
    for unit in ("TiB", "GiB", "MiB", "KiB"):
        if size and size % UNITS[unit] == 0:
            return f"{size // UNITS[unit]}{unit}"
    return str(size)


def size_like(size: int, written: str, *, up: bool, whole: int | None = None) -> str:
    """A size in the unit that somebody used, rounded up or down: 368640 beside "1kB" is "368.64kB".

    `whole` is what a share is of; without it a share is answered in binary units.
    """
    text = written.strip()
    rounding = ROUND_CEILING if up else ROUND_FLOOR
    if whole and _SHARE.fullmatch(text):
        return _rounded(Decimal(size) * 100 / whole, rounding) + "%"
    match = _SIZE.fullmatch(text)
    unit = match[3] if match else next((unit for unit in ("GiB", "MiB", "KiB") if size >= UNITS[unit]), "B")
    if UNITS.get(unit, 1) == 1:
        return f"{size}{unit}"
    return _rounded(Decimal(size) / UNITS[unit], rounding) + unit


def _rounded(number: Decimal, rounding: str) -> str:
    text = f"{number.quantize(Decimal(10) ** -DECIMALS, rounding=rounding):f}"
    return text.rstrip("0").rstrip(".")
