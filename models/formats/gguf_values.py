"""The values of GGUF's metadata.

Source: the GGUF specification, `gguf_metadata_value_type` (ggml/docs/gguf.md).
"""

import struct
from typing import Any

import numpy as np

from puma.models.formats.cursor import Cursor

STRING, ARRAY = 8, 9
NUMBERS = {
    0: struct.Struct("<B"),
    1: struct.Struct("<b"),
    2: struct.Struct("<H"),
    3: struct.Struct("<h"),
    4: struct.Struct("<I"),
    5: struct.Struct("<i"),
    6: struct.Struct("<f"),
    7: struct.Struct("<?"),
    10: struct.Struct("<Q"),
    11: struct.Struct("<q"),
    12: struct.Struct("<d"),
}
DTYPES = {number: np.dtype(layout.format) for number, layout in NUMBERS.items()}

MAX_DEPTH = 4
"""Arrays within arrays; no known file nests at all."""

SMALLEST_ARRAY = 12
"""Bytes of an empty array: its element type and its count."""


def read_metadata(cursor: Cursor, count: int) -> dict[str, Any]:
    """`count` keys with their values.

    Numbers become int, float or bool; strings str; numeric arrays numpy arrays, copied out of the file;
    arrays of strings list[str]. Bytes that are not UTF-8 become `\\xff` in a single string, and surrogate
    escapes in an array, where a vocabulary needs its exact bytes back.
    """
    metadata: dict[str, Any] = {}
    for index in range(count):
        cursor.place = f"metadata key {index + 1} of {count}"
        key = cursor.name()
        cursor.place = f"metadata key {key!r}"
        if key in metadata:
            raise cursor.error("the key is there twice")
        metadata[key] = read_value(cursor, cursor.u32(), 0)
    return metadata


def read_value(cursor: Cursor, kind: int, depth: int) -> Any:
    """One value of GGUF type `kind`, inside `depth` arrays."""
    if kind in NUMBERS:
        return cursor.number(NUMBERS[kind])
    if kind == STRING:
        return cursor.string().decode(errors="backslashreplace")
    if kind == ARRAY:
        return read_array(cursor, depth + 1)
    raise cursor.error(f"value type {kind} is unknown; GGUF has 0 to 12")


def read_array(cursor: Cursor, depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise cursor.error(f"arrays are nested more than {MAX_DEPTH} deep")
    kind, count = cursor.u32(), cursor.u64()
    if kind in NUMBERS:
        dtype = DTYPES[kind]
        cursor.need(count * dtype.itemsize)
        values = np.frombuffer(cursor.data, dtype, count, cursor.position).copy()
        cursor.position += values.nbytes
        return values
    if kind == STRING:
        cursor.need(count * 8)
        return [raw.decode(errors="surrogateescape") for raw in cursor.strings(count)]
    if kind == ARRAY:
        cursor.need(count * SMALLEST_ARRAY)
        return [read_array(cursor, depth + 1) for _ in range(count)]
    raise cursor.error(f"array element type {kind} is unknown; GGUF has 0 to 12")
