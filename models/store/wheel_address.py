"""Where the wheel of a model is, as pip finds it with the user's own settings; nothing of it is fetched.

Source of the report's format: pip's documentation, "Installation Report".
"""

import subprocess
import sys

import msgspec

from puma.models.store.catalogue import Entry
from puma.models.store.errors import StoreError
from puma.models.store.wheel import PIP_LINES

SECONDS = 300


class DownloadInfo(msgspec.Struct):
    url: str


class Install(msgspec.Struct):
    download_info: DownloadInfo


class Report(msgspec.Struct):
    """The part of pip's report that is read here."""

    install: list[Install]


def wheel_address(entry: Entry) -> str:
    """An http, https or file address. Raises StoreError."""
    command = [sys.executable, "-P", "-m", "pip", "install", "--dry-run", "--report", "-", "--quiet", "--no-deps"]
    command += ["--ignore-installed", "--only-binary", ":all:", "--no-input", "--disable-pip-version-check"]
    command.append(f"{entry.project}=={entry.version}")
    try:
        pip = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        raise StoreError(f"pip did not find {entry.project} {entry.version} within {SECONDS} s") from None
    if pip.returncode:
        last = "\n".join(f"  {line}" for line in pip.stderr.decode(errors="replace").strip().splitlines()[-PIP_LINES:])
        raise StoreError(f"pip could not find {entry.project} {entry.version}; it said:\n{last}")
    try:
        (install,) = msgspec.json.decode(pip.stdout, type=Report).install
    except (msgspec.MsgspecError, ValueError) as error:
        raise StoreError(f"pip's report on {entry.project} {entry.version} is not understood: {error}") from None
    return install.download_info.url
