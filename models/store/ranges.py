"""A file on a web server, read piece by piece: only what is asked for is fetched."""

import io
import re
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import httpx

from puma.models.store.errors import StoreError

CONNECT_SECONDS, READ_SECONDS = 15.0, 30.0

PIECE_SECONDS = 120.0
"""For one piece, however slowly it comes."""

PIECE_BYTES = 1 << 20
"""Fetched at a time, at least."""

MOST_BYTES = 256 << 20
"""Fetched in all, at most: no header is larger."""

OK, PARTIAL_CONTENT = 200, 206

_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+)")


class RangeFile(io.RawIOBase):
    """Readable and seekable; `fetched` counts the bytes that came. Raises StoreError.

    A server that sends whole files only is read from the beginning, and left as soon as the piece has come.
    """

    def __init__(self, client: httpx.Client, address: str) -> None:
        self._client, self._address = client, address
        self._position = 0
        self.fetched = 0
        self.size = -1
        """Of the whole file, known once a piece has come."""
        self._first = self._fetch(0, PIECE_BYTES)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._position = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self.size}[whence]
        return self._position

    def readinto(self, buffer: Any) -> int:
        count = max(0, min(len(buffer), self.size - self._position))
        if self._position + count <= len(self._first):
            piece = self._first[self._position : self._position + count]
        else:
            piece = self._fetch(self._position, count)
        buffer[: len(piece)] = piece
        self._position += len(piece)
        return len(piece)

    def _fetch(self, start: int, count: int) -> bytes:
        """These bytes of the file; fewer when it ends before."""
        headers = {"Range": f"bytes={start}-{start + count - 1}", "Accept-Encoding": "identity"}
        with told(self._address), self._client.stream("GET", self._address, headers=headers) as response:
            skip = self._check(response, start)
            wanted, end = min(count, self.size - start), time.monotonic() + PIECE_SECONDS
            if self.fetched + skip + wanted > MOST_BYTES:
                raise StoreError(f"{self._address}: more than {MOST_BYTES:,} bytes would have to be fetched")
            received = bytearray()
            for piece in response.iter_raw():
                received += piece
                if len(received) >= skip + wanted:
                    break
                if time.monotonic() > end:
                    raise StoreError(f"{self._address}: the server sends too slowly")
        self.fetched += len(received)
        if len(received) < skip + wanted:
            raise StoreError(f"{self._address}: the connection ended after {len(received):,} bytes; try again")
        return bytes(received[skip : skip + wanted])

    def _check(self, response: httpx.Response, start: int) -> int:
        """How many bytes of the answer come before those asked for. Raises StoreError when it is no answer to that."""
        refuse(response, self._address)
        if response.headers.get("Content-Encoding", "identity") != "identity":
            raise StoreError(f"{self._address}: the server sends the file compressed, not as it is")
        if response.status_code == PARTIAL_CONTENT:
            found = _RANGE.fullmatch(response.headers.get("Content-Range", ""))
            if found is None or int(found[1]) != start:
                raise StoreError(f"{self._address}: the server sent another part of the file than it was asked for")
            size, skip = int(found[3]), 0
        else:
            length = response.headers.get("Content-Length", "")
            if not length.isdigit():
                raise StoreError(f"{self._address}: the server does not say how large the file is")
            size, skip = int(length), start
        if self.size not in (-1, size):
            raise StoreError(f"{self._address}: the file has changed while it was read; try again")
        self.size = size
        return skip


def refuse(response: httpx.Response, address: str) -> None:
    """Raise StoreError unless the answer is a file, or a part of one."""
    status = response.status_code
    if status in (OK, PARTIAL_CONTENT):
        return
    words = {
        401: "a token is needed; models of the Hugging Face hub take the one in HF_TOKEN",
        403: "this token or address may not read the file; accept the model's licence on its page, or set HF_TOKEN",
        404: "there is no such file",
        416: "the file is empty",
        429: "too many requests; try again later",
    }
    raise StoreError(f"{address}: {words.get(status, f'the server answered {status} {response.reason_phrase}')}")


@contextmanager
def told(address: str) -> Generator[None]:
    """What goes wrong on the way is told as a StoreError that names the address."""
    try:
        yield
    except httpx.TimeoutException:
        raise StoreError(f"{address}: no answer within {READ_SECONDS:g} s") from None
    except httpx.InvalidURL as error:
        raise StoreError(f"{address}: not an address: {error}") from None
    except httpx.HTTPError as error:
        raise StoreError(f"{address}: cannot be reached: {error}") from None
