"""The tensor list of a GGUF file, and the check that every tensor lies inside the file, alone."""

import math

import msgspec

from puma.models.formats.cursor import Cursor
from puma.models.formats.weight_types import REMOVED, SUPPORTED, WeightType, names

MAX_DIMENSIONS = 4


class TensorInfo(msgspec.Struct, frozen=True):
    """Where one tensor lies and how it is stored."""

    name: str
    shape: tuple[int, ...]
    """GGUF's order: shape[0] is the contiguous dimension."""
    type: WeightType
    offset: int
    """Bytes from the start of the file."""
    nbytes: int


def read_tensors(cursor: Cursor, count: int, alignment: int) -> dict[str, TensorInfo]:
    """`count` entries; the data begins at the next multiple of `alignment` after the last one."""
    listed: dict[str, TensorInfo] = {}
    for index in range(count):
        cursor.place = f"tensor {index + 1} of {count}"
        name = cursor.name()
        cursor.place = f"tensor {name!r}"
        if name in listed:
            raise cursor.error("the name is there twice")
        listed[name] = read_info(cursor, name, alignment)
    start = -(-cursor.position // alignment) * alignment
    tensors = {name: msgspec.structs.replace(info, offset=start + info.offset) for name, info in listed.items()}
    check_places(cursor, tensors)
    return tensors


def read_info(cursor: Cursor, name: str, alignment: int) -> TensorInfo:
    """One entry, its offset still counted from the start of the data."""
    dimensions = cursor.u32()
    if not 1 <= dimensions <= MAX_DIMENSIONS:
        raise cursor.error(f"it has {dimensions} dimensions; 1 to {MAX_DIMENSIONS} are possible")
    shape = tuple(cursor.u64() for _ in range(dimensions))
    if 0 in shape:
        raise cursor.error(f"shape {shape} holds a zero")
    weight_type = known_type(cursor, cursor.u32())
    if shape[0] % weight_type.block_size:
        raise cursor.error(
            f"rows of {shape[0]} elements are no whole blocks; "
            f"{weight_type.name} stores blocks of {weight_type.block_size}"
        )
    offset = cursor.u64()
    if offset % alignment:
        raise cursor.error(f"offset {offset} is not a multiple of the alignment, {alignment}")
    nbytes = math.prod(shape) // weight_type.block_size * weight_type.block_bytes
    return TensorInfo(name, shape, weight_type, offset, nbytes)


def known_type(cursor: Cursor, number: int) -> WeightType:
    try:
        return WeightType(number)
    except ValueError:
        known = f" ({REMOVED[number]}, which GGML has removed)" if number in REMOVED else ""
        problem = f"weight type {number}{known} is unknown; supported: {names(SUPPORTED)}"
        raise cursor.error(problem) from None


def check_places(cursor: Cursor, tensors: dict[str, TensorInfo]) -> None:
    """Raise ModelFileError for the first tensor, in order of place, that ends outside or shares its bytes."""
    size, end, before = cursor.size, 0, ""
    for info in sorted(tensors.values(), key=lambda info: info.offset):
        cursor.place = f"tensor {info.name!r}"
        last = info.offset + info.nbytes
        if last > size:
            raise cursor.error(
                f"the file is cut short, or the offset wrong: the tensor is {info.nbytes} bytes at offset "
                f"{info.offset}, which takes a file of {last} bytes; the file has {size}; "
                "pull or download it again"
            )
        if info.offset < end:
            raise cursor.error(f"it begins at {info.offset}, inside tensor {before!r}, which ends at {end}")
        end, before = last, info.name
