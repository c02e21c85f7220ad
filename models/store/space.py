"""Room on the disk, asked for before it is filled."""

import shutil
from pathlib import Path

from puma.models.store.errors import StoreError

FULL = "No space left on device"
"""How the system, and so every program, says it."""


def check_space(folder: Path, needed: int) -> None:
    """Raise StoreError, with both numbers, unless `needed` bytes are free where the folder is."""
    if shutil.disk_usage(folder).free < needed:
        raise disk_full(folder, needed)


def disk_full(folder: Path, needed: int) -> StoreError:
    free = shutil.disk_usage(folder).free
    return StoreError(
        f"the disk is too full: {needed:,} bytes are needed in {folder}, {free:,} are free; "
        "make room, or choose another folder with PUMA_HOME, and pull again"
    )
