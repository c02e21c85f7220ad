"""A tiny GGUF writer: valid files for tests, and the pieces to make invalid ones from.

The type of a metadata value follows its Python type: bool, int (uint32; int64 below 0, uint64 from 2**32 on),
float (float32), str, bytes (a string as it is), numpy array (an array of its dtype), list of str or bytes.
`Typed` says it explicitly.
"""

import struct
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from puma.models.formats.weight_types import WeightType

NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
STRING, ARRAY = 8, 9
DTYPES = {
    "u1": 0,
    "i1": 1,
    "u2": 2,
    "i2": 3,
    "u4": 4,
    "i4": 5,
    "f4": 6,
    "b1": 7,
    "u8": 10,
    "i8": 11,
    "f8": 12,
}


class Typed(NamedTuple):
    """A metadata value with its GGUF type number, whatever the value is."""

    type: int
    value: Any


def string(text: str | bytes) -> bytes:
    raw = text.encode() if isinstance(text, str) else text
    return struct.pack("<Q", len(raw)) + raw


def array(type_number: int, count: int, body: bytes) -> bytes:
    """An array's bytes after its own type number; `count` need not be true."""
    return struct.pack("<IQ", type_number, count) + body


def value(item: Any) -> bytes:
    """Type number and bytes of one metadata value."""
    match item:
        case Typed(type=number, value=bytes() as raw) if number not in (STRING,):
            return struct.pack("<I", number) + raw
        case Typed(type=number, value=plain) if number in NUMBERS:
            return struct.pack("<I" + NUMBERS[number], number, plain)
        case bool():
            return struct.pack("<I?", 7, item)
        case int() if item < 0:
            return struct.pack("<Iq", 11, item)
        case int() if item >= 1 << 32:
            return struct.pack("<IQ", 10, item)
        case int():
            return struct.pack("<II", 4, item)
        case float():
            return struct.pack("<If", 6, item)
        case str() | bytes():
            return struct.pack("<I", STRING) + string(item)
        case np.ndarray():
            return struct.pack("<I", ARRAY) + array(DTYPES[item.dtype.str[1:]], item.size, item.tobytes())
        case list() | tuple():
            return struct.pack("<I", ARRAY) + array(STRING, len(item), b"".join(map(string, item)))
        case _:
            raise TypeError(f"no GGUF type for {item!r}")


def tensor_info(name: str | bytes, shape: tuple[int, ...], type_number: int, offset: int) -> bytes:
    return string(name) + struct.pack(f"<I{len(shape)}Q", len(shape), *shape) + struct.pack("<IQ", type_number, offset)


def padding(length: int, alignment: int) -> bytes:
    return bytes(-length % alignment)


def gguf_bytes(
    metadata: dict[str, Any],
    tensors: dict[str, tuple[tuple[int, ...], int, bytes]],
    *,
    version: int = 3,
    alignment: int = 32,
) -> bytes:
    """A whole file. Shapes are in GGUF's order: the contiguous dimension first."""
    if alignment != 32:
        metadata = {"general.alignment": alignment, **metadata}
    infos, data = b"", b""
    for name, (shape, weight_type, raw) in tensors.items():
        data += padding(len(data), alignment)
        infos += tensor_info(name, shape, int(weight_type), len(data))
        data += raw
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(metadata))
    head += b"".join(string(key) + value(item) for key, item in metadata.items()) + infos
    return head + padding(len(head), alignment) + data + padding(len(data), alignment)


def write_gguf(
    path: Path,
    metadata: dict[str, Any],
    tensors: dict[str, tuple[tuple[int, ...], WeightType, bytes]],
    *,
    version: int = 3,
    alignment: int = 32,
) -> None:
    path.write_bytes(gguf_bytes(metadata, dict(tensors), version=version, alignment=alignment))
