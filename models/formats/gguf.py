"""GGUF files, versions 2 and 3: metadata and tensors, mapped into memory and checked before use.

Source of the format: the GGUF specification (ggml/docs/gguf.md). All numbers are little-endian:

    "GGUF"  version u32  tensor count u64  metadata count u64  metadata...  tensor entries...  padding  data
"""

from contextlib import suppress
from mmap import ACCESS_READ, mmap
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from puma.models.errors import ModelFileError
from puma.models.formats.cursor import Cursor, MoreNeeded
from puma.models.formats.gguf_tensors import TensorInfo, read_tensors
from puma.models.formats.gguf_values import read_metadata
from puma.models.formats.not_gguf import HEAD_BYTES, describe
from puma.models.formats.weight_types import SUPPORTED, WeightType, names

VERSIONS = (2, 3)
DEFAULT_ALIGNMENT = 32


class GGUFHeader:
    """All that a model file says before its weights."""

    def __init__(
        self, path: Path | str, size: int, version: int, metadata: dict[str, Any], tensors: dict[str, TensorInfo]
    ) -> None:
        self.path = path
        """Of the file, or its address, as messages show it."""
        self.size = size
        """Bytes of the whole file."""
        self.version = version
        self.metadata = metadata
        """Numbers, str, numpy arrays, list[str]: see gguf_values.read_metadata."""
        self.tensors = tensors

    def check_types(self, supported: tuple[WeightType, ...] = SUPPORTED) -> None:
        """Raise ModelFileError, naming the first tensor, when a weight type is not among `supported`."""
        for info in self.tensors.values():
            if info.type not in supported:
                raise ModelFileError(
                    f"{self.path}: tensor {info.name!r}: weight type {info.type.name} "
                    f"(number {int(info.type)}) is not supported; supported: {names(supported)}"
                )


class GGUFFile(GGUFHeader):
    """A model file; a context manager. Views that `data` gave keep the mapping alive after close()."""

    def __init__(self, header: GGUFHeader, mapping: mmap) -> None:
        super().__init__(header.path, header.size, header.version, header.metadata, header.tensors)
        self._mapping = mapping

    def data(self, name: str) -> NDArray[np.uint8]:
        """The bytes of a tensor: a read-only view of shape [nbytes]."""
        info = self.tensors[name]
        return np.frombuffer(self._mapping, np.uint8, info.nbytes, info.offset)

    def close(self) -> None:
        unmap(self._mapping)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def read_gguf(path: Path) -> GGUFFile:
    """Map a file and check all of it but the weights' values. Raises ModelFileError."""
    mapping = map_file(path)
    try:
        return GGUFFile(parse(Cursor(mapping, len(mapping), path)), mapping)
    except BaseException:
        unmap(mapping)
        raise


def read_prefix(prefix: bytes, size: int, name: str) -> GGUFHeader:
    """The header of a file of `size` bytes from its beginning.

    Raises MoreNeeded when more of it is needed, and ModelFileError as read_gguf does.
    """
    if len(prefix) < min(size, HEAD_BYTES):
        raise MoreNeeded(min(size, HEAD_BYTES))
    check_head(name, prefix[:HEAD_BYTES], size)
    return parse(Cursor(prefix, size, name))


def map_file(path: Path) -> mmap:
    """The whole file, read-only. Raises ModelFileError unless it begins as a GGUF file does."""
    if path.is_dir():
        raise ModelFileError(f"{path}: not a GGUF file: it is a folder; name a .gguf file in it")
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
            size = file.seek(0, 2)
            check_head(path, head, size)
            return mmap(file.fileno(), 0, access=ACCESS_READ)
    except OSError as error:
        raise ModelFileError(f"{path}: cannot be read: {error.strerror or error}") from error


def check_head(path: Path | str, head: bytes, size: int) -> None:
    if len(head) < 8 or head[:4] != b"GGUF":
        raise ModelFileError(
            f"{path}: not a GGUF file: it is {describe(head, size)}. Pull or download the model again."
        )


def unmap(mapping: mmap) -> None:
    # While a view is alive the mapping cannot be closed; the last view takes it along.
    with suppress(BufferError):
        mapping.close()


def parse(cursor: Cursor) -> GGUFHeader:
    cursor.position = 4
    version = cursor.u32()
    check_version(cursor, version)
    tensor_count, metadata_count = cursor.u64(), cursor.u64()
    metadata = read_metadata(cursor, metadata_count)
    cursor.place = "the metadata"
    refuse_shards(cursor, metadata)
    tensors = read_tensors(cursor, tensor_count, alignment_of(cursor, metadata))
    return GGUFHeader(cursor.path, cursor.size, version, metadata, tensors)


def check_version(cursor: Cursor, version: int) -> None:
    if version in VERSIONS:
        return
    swapped = int.from_bytes(version.to_bytes(4, "big"), "little")
    if version > 0xFFFF and swapped <= 0xFFFF:
        raise cursor.error(
            f"it is a big-endian GGUF file (version {swapped}, bytes swapped); only little-endian is read"
        )
    raise cursor.error(f"GGUF version {version} is not supported; supported: 2 and 3; convert the model again")


def alignment_of(cursor: Cursor, metadata: dict[str, Any]) -> int:
    alignment = metadata.get("general.alignment", DEFAULT_ALIGNMENT)
    if type(alignment) is not int or alignment < 1 or alignment & (alignment - 1):
        raise cursor.error(f"general.alignment is {alignment!r}; it must be a power of two")
    return alignment


def refuse_shards(cursor: Cursor, metadata: dict[str, Any]) -> None:
    count = metadata.get("split.count", 0)
    if not isinstance(count, int) or count > 1:
        number = metadata.get("split.no", 0)
        part = number + 1 if isinstance(number, int) else number
        raise cursor.error(
            f"this is part {part} of a model in {count} files (split.count); "
            "only models in one file are supported; merge them (llama-gguf-split --merge)"
        )
