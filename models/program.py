"""Builds an architecture's program: what the compiled forward pass walks (see kernels/program.py)."""

from collections.abc import Callable, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from puma.kernels import program as at
from puma.kernels.packing import takes_floats
from puma.kernels.vectors import LANES
from puma.models.weights import Matrix, Tensor, allocated_bytes, pack_matrix, packed_bytes, pad_vector

OUTLIER = 2.0
"""Activations in blocks that reach beyond so many times their row's root mean square keep sixteen bits, not eight.

On SmolLM2 Q4_1 the mean absolute difference of the top-five log-probabilities from float32 is 0.084 with eight bits
throughout, 0.028 at 4, 0.024 at 3 and 0.015 at 2; llama.cpp's is 0.086.
"""


def bits(number: float) -> int:
    """Those of a float32, as tables hold it."""
    return int(np.float32(number).view(np.int32))


class Rows(msgspec.Struct):
    """A buffer of activation rows: `size` values each."""

    size: int
    per_sample: bool = False
    """Whether it holds one row per sampled token, instead of one per token of the step."""
    quantised: bool = False
    """Whether some product takes its rows as int8."""
    counted: int = 0
    """Values that count, when they are fewer than `size`; 0: all."""
    part_of: int = -1
    offset: int = 0
    """A part of another buffer's rows, from this value on."""


class Program:
    """Operations, matrices, vectors and buffers of a model, in the order in which they were added.

    A matrix is a stack of the file's tensors until `pack` has been called.
    """

    def __init__(self) -> None:
        self.operations: list[dict[int, int]] = []
        self.matrices: list[Matrix] = []
        self._stacks: list[Sequence[Tensor]] = []
        self.vectors: list[NDArray[np.float32]] = []
        self.buffers: list[Rows] = []

    def buffer(self, size: int, *, per_sample: bool = False, counted: int = 0) -> int:
        """A new buffer; returns its number, as do all that make something."""
        self.buffers.append(Rows(size, per_sample, counted=counted))
        return len(self.buffers) - 1

    def matrix(self, tensors: Sequence[Tensor]) -> int:
        """Tensors of one type, stacked."""
        self._stacks.append(tensors)
        return len(self._stacks) - 1

    @property
    def weight_bytes(self) -> int:
        """What all matrices and vectors take in memory, packed or to be packed."""
        waiting = sum(allocated_bytes(packed_bytes(stack)) for stack in self._stacks)
        packed = sum(allocated_bytes(matrix.tiles.nbytes) for matrix in self.matrices)
        return waiting + packed + sum(allocated_bytes(vector.nbytes) for vector in self.vectors)

    def pack(self, progress: Callable[[float], None]) -> None:
        """Make all matrices; `progress` is called with the part that is done, 0 to 1."""
        for number, stack in enumerate(self._stacks):
            self.matrices.append(pack_matrix(stack))
            progress((number + 1) / len(self._stacks))
        self._stacks = []

    def embed(self, matrix: int, out: int) -> None:
        self._add(at.EMBED, out=out, matrix=matrix)

    def norm(
        self, source: int, out: int, weights: NDArray[np.float32], epsilon: float, *, outlier: float = OUTLIER
    ) -> None:
        """RMS norm; `weights` is float32 [size]."""
        self.vectors.append(pad_vector(weights))
        vector = self.vectors[-1].ctypes.data
        self._add(at.NORM, source=source, out=out, vector=vector, parameter=bits(epsilon), outlier=bits(outlier))

    def project(self, source: int, out: int, tensors: Sequence[Tensor], *, residual: bool = False) -> None:
        """out = source x tensors, side by side; `residual` adds instead. Neighbours of one type are one product."""
        start = 0
        while start < len(tensors):
            stop = start + 1
            while stop < len(tensors) and tensors[stop].type == tensors[start].type:
                stop += 1
            offset = sum(tensor.outputs for tensor in tensors[:start])
            target = out if offset == 0 else self._part(out, offset)
            self.multiply(source, target, self.matrix(tensors[start:stop]), residual=residual)
            start = stop

    def multiply(self, source: int, out: int, matrix: int, *, residual: bool = False) -> None:
        self._take(source, matrix)
        self._add(at.ADD if residual else at.MULTIPLY, source=source, out=out, matrix=matrix)

    def gated(self, source: int, out: int, gate: Tensor, up: Tensor) -> None:
        """out = silu(source x gate) * (source x up)."""
        matrix, second = self.matrix([gate]), self.matrix([up])
        self._take(source, matrix)
        self._take(source, second)
        self._add(at.GATED, source=source, out=out, matrix=matrix, second=second)

    def rotate(self, source: int, layer: int) -> None:
        self._add(at.ROTATE, source=source, layer=layer)

    def attend(self, source: int, out: int, layer: int) -> None:
        self._add(at.ATTEND, source=source, out=out, layer=layer)

    def quantise(self, source: int) -> None:
        """Rows that no norm has made, for the products that take integers."""
        self._add(at.QUANTISE, source=source, outlier=bits(OUTLIER))

    def select(self, source: int, out: int) -> None:
        self._add(at.SELECT, source=source, out=out)

    def sample(self, logits: int) -> None:
        self._add(at.SAMPLE, source=logits)

    def _part(self, whole: int, offset: int) -> int:
        assert offset % LANES == 0
        rows = self.buffers[whole]
        self.buffers.append(Rows(rows.size - offset, rows.per_sample, part_of=whole, offset=offset))
        return len(self.buffers) - 1

    def _take(self, source: int, matrix: int) -> None:
        if not takes_floats(int(self._stacks[matrix][0].type)):
            self.buffers[source].quantised = True

    def _add(
        self,
        code: int,
        *,
        source: int = 0,
        out: int = 0,
        matrix: int = 0,
        second: int = 0,
        vector: int = 0,
        parameter: int = 0,
        layer: int = 0,
        outlier: int = 0,
    ) -> None:
        fields = {at.CODE: code, at.IN: source, at.OUT: out, at.MATRIX: matrix, at.SECOND: second}
        fields |= {at.VECTOR: vector, at.PARAMETER: parameter, at.LAYER: layer, at.OUTLIER: outlier}
        self.operations.append(fields)

    def table(self) -> NDArray[np.int64]:
        """int64 [operations, OPERATION_FIELDS]."""
        table = np.zeros((len(self.operations), at.OPERATION_FIELDS), np.int64)
        for row, fields in zip(table, self.operations, strict=True):
            row[list(fields)] = list(fields.values())
        return table
