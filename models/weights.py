"""Weights in memory: matrices packed into tiles, vectors padded with zeros."""

import mmap
from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from puma.kernels.matmul import MATRIX_FIELDS
from puma.kernels.packing import pack, tile_bytes
from puma.kernels.vectors import LANES
from puma.models.formats.weight_types import WeightType

ROW_PADDING = 32
"""Rows of activations are padded to a multiple of this many values."""

CACHE_LINE = 64


def padded(size: int) -> int:
    return -(-size // ROW_PADDING) * ROW_PADDING


def allocated_bytes(nbytes: int) -> int:
    """Bytes that `allocate` takes for so many."""
    return nbytes + 2 * CACHE_LINE


def allocate(nbytes: int) -> NDArray[np.uint8]:
    """Zeros on a cache-line border, with a line to spare for prefetches and vectors that reach over the end.

    Raises MemoryError. The system provides pages as they are first written to; see `commit`.
    """
    raw = np.zeros(allocated_bytes(nbytes), np.uint8)
    start = -raw.ctypes.data % CACHE_LINE
    return raw[start : start + nbytes]


def commit(zeros: NDArray[np.uint8]) -> None:
    """Make every page of an array of zeros resident now, by writing one of them to each."""
    zeros[:: mmap.PAGESIZE] = 0
    zeros[-1:] = 0


class Tensor(msgspec.Struct, frozen=True):
    """A matrix as its file holds it: uint8 [outputs, bytes of a row], `inner` weights in a row."""

    type: WeightType
    outputs: int
    inner: int
    data: NDArray[np.uint8]
    order: NDArray[np.int64] | None = None
    """The file's row for each output, where they are to be taken in another order."""


class Matrix(msgspec.Struct, frozen=True):
    """A packed matrix: uint8 [tiles, bytes of a tile]."""

    type: WeightType
    outputs: int
    inner: int
    tiles: NDArray[np.uint8]

    def row(self) -> list[int]:
        """Its row of the matrix table."""
        fields = [int(self.type), self.outputs, self.inner, self.tiles.ctypes.data, self.tiles.shape[1]]
        assert len(fields) == MATRIX_FIELDS
        return fields


def packed_bytes(tensors: Sequence[Tensor]) -> int:
    """Bytes of the tiles of stacked tensors."""
    first, outputs = tensors[0], sum(tensor.outputs for tensor in tensors)
    return -(-outputs // LANES) * tile_bytes(int(first.type), first.inner)


def pack_matrix(tensors: Sequence[Tensor]) -> Matrix:
    """Stack tensors of one type and inner size; all but the last have a multiple of sixteen outputs."""
    first = tensors[0]
    code, outputs = int(first.type), sum(tensor.outputs for tensor in tensors)
    tiles = allocate(packed_bytes(tensors)).reshape(-1, tile_bytes(code, first.inner))
    start = 0
    for tensor in tensors:
        order = np.arange(tensor.outputs) if tensor.order is None else tensor.order
        count = -(-tensor.outputs // LANES)
        pack(code, tensor.data, tensor.inner, order, tiles[start : start + count])
        start += count
    return Matrix(first.type, outputs, first.inner, tiles)


def pad_vector(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """A copy, padded with zeros like a row."""
    target = allocate(4 * padded(values.size)).view(np.float32)
    target[: values.size] = values
    return target
