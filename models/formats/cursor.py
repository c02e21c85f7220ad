"""Cursor: a position in a file, or in its beginning, that never passes the end."""

import struct
from mmap import mmap
from pathlib import Path

from puma.models.errors import ModelFileError

U32 = struct.Struct("<I")
U64 = struct.Struct("<Q")


class MoreNeeded(Exception):
    """The file goes on, but not what there is of it: its first `end` bytes are needed. Never seen by a user."""

    def __init__(self, end: int) -> None:
        super().__init__(end)
        self.end = end


class Cursor:
    """Reads little-endian values from a file of `size` bytes in order; `data` is the file, or its beginning.

    `place` says what is being read, for messages. Whatever is wanted is compared with what the file still
    holds before it is read, so no length in the file is ever trusted.
    """

    def __init__(self, data: mmap | bytes, size: int, path: Path | str) -> None:
        self.data = data
        self.size = size
        self.path = path
        self.position = 0
        self.place = "the header"

    @property
    def remaining(self) -> int:
        return self.size - self.position

    def error(self, problem: str) -> ModelFileError:
        """The exception to raise: the file, the place, the problem."""
        return ModelFileError(f"{self.path}: {self.place}: {problem}")

    def need(self, count: int) -> None:
        """Raise ModelFileError unless `count` more bytes are there; MoreNeeded when they are not here yet."""
        if count > self.remaining:
            raise self.error(
                f"the file is cut short: {count} bytes wanted at offset {self.position}, "
                f"the file has {self.size} bytes; pull or download it again"
            )
        if self.position + count > len(self.data):
            raise MoreNeeded(self.position + count)

    def number(self, layout: struct.Struct) -> int | float | bool:
        """One number of the given layout."""
        self.need(layout.size)
        (value,) = layout.unpack_from(self.data, self.position)
        self.position += layout.size
        return value

    def u32(self) -> int:
        return int(self.number(U32))

    def u64(self) -> int:
        return int(self.number(U64))

    def string(self) -> bytes:
        """A string's bytes: its length (uint64), then as many bytes."""
        length = self.u64()
        self.need(length)
        self.position += length
        return self.data[self.position - length : self.position]

    def name(self) -> str:
        """A string that names something. Raises ModelFileError unless it is UTF-8."""
        raw = self.string()
        try:
            return raw.decode()
        except UnicodeDecodeError:
            raise self.error(f"the name {raw[:64]!r} is not UTF-8") from None

    def strings(self, count: int) -> list[bytes]:
        """`count` strings; the loop of a vocabulary, so it is kept tight."""
        data, position, end = self.data, self.position, len(self.data)
        unpack, found = U64.unpack_from, list[bytes]()
        for index in range(count):
            length = 8
            if length <= end - position:
                (length,) = unpack(data, position)
                position += 8
            if length > end - position:
                self.place += f", element {index + 1} of {count}"
                self.position = position
                self.need(length)
            found.append(data[position : position + length])
            position += length
        self.position = position
        return found
