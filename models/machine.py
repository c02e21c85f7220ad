"""Everything a model's compiled steps work on: tables, buffers, KV array and scratch, allocated once."""

import msgspec
import numpy as np
from numpy.typing import NDArray

from puma.config.memory import MemoryPlan
from puma.kernels import batch_attention
from puma.kernels import program as at
from puma.kernels.activations import BLOCK, RECORD
from puma.kernels.attention import SPAN
from puma.kernels.operations import GATED_SCRATCH
from puma.kernels.step import STEP_FIELDS
from puma.kernels.team import shared_bytes
from puma.kernels.vectors import LANES
from puma.models.architectures.hyperparameters import Hyperparameters
from puma.models.program import Program, Rows
from puma.models.weights import CACHE_LINE, allocate, padded

SPARE_ROWS = LANES
"""Attention reads tiles of sixteen rows, which may reach beyond the last one."""


class Limits(msgspec.Struct, frozen=True):
    """The largest step."""

    rows: int
    samples: int
    threads: int
    context: int


class Machine:
    """Owns the memory behind one machine table (see kernels/program.py)."""

    def __init__(
        self,
        program: Program,
        shape: Hyperparameters,
        plan: MemoryPlan,
        limits: Limits,
        rope: tuple[NDArray[np.float32], NDArray[np.float32]],
    ) -> None:
        self._kept: list[NDArray[np.uint8]] = []
        self._program, self._rope = program, rope
        self.table = np.zeros(at.MACHINE_FIELDS, np.int64)
        self.step = np.zeros(STEP_FIELDS, np.int64)
        self.shared = self._zeros(shared_bytes(limits.threads)).view(np.int64)
        self._operations = program.table()
        self._matrices = np.array([each.row() for each in program.matrices])
        self._buffers = np.array([self._buffer(rows, limits) for rows in program.buffers], np.int64)
        self._place_parts()
        self._shape = np.array([shape.heads, shape.kv_heads, shape.head_dim, plan.tokens_per_block // LANES])
        self._fill(shape, plan, limits)

    def _fill(self, shape: Hyperparameters, plan: MemoryPlan, limits: Limits) -> None:
        layer_bytes = plan.pool_bytes // (2 * shape.layers)
        keys, values = (self._zeros(layer_bytes * shape.layers) for _ in range(2))
        # Enough as long as no two sequences share a block.
        span_total = limits.samples + plan.tokens // SPAN + 1
        scratch = max(GATED_SCRATCH, batch_attention.scratch_bytes(shape.head_dim))
        weights = 4 * padded(shape.vocabulary) + CACHE_LINE
        partials = self._zeros(span_total * batch_attention.partial_bytes(shape.heads, shape.head_dim))
        table = self.table
        table[at.PROGRAM], table[at.OPERATIONS] = self._operations.ctypes.data, len(self._operations)
        table[at.MATRICES], table[at.MATRIX_TOTAL] = self._matrices.ctypes.data, len(self._matrices)
        table[at.BUFFERS], table[at.BUFFER_TOTAL] = self._buffers.ctypes.data, len(self._buffers)
        table[at.SHAPE], table[at.STEP] = self._shape.ctypes.data, self.step.ctypes.data
        table[at.KEYS], table[at.VALUES] = keys.ctypes.data, values.ctypes.data
        table[at.LAYER_BYTES] = layer_bytes
        table[at.COSINES], table[at.SINES] = (angles.ctypes.data for angles in self._rope)
        table[at.PARTIALS] = partials.ctypes.data
        table[at.SCRATCH] = self._zeros(scratch * limits.threads).ctypes.data
        table[at.SCRATCH_STRIDE] = scratch
        table[at.WEIGHTS] = self._zeros(weights * limits.threads).ctypes.data
        table[at.WEIGHTS_STRIDE] = weights
        table[at.SHARED] = self.shared.ctypes.data

    def _zeros(self, nbytes: int) -> NDArray[np.uint8]:
        self._kept.append(allocate(nbytes))
        return self._kept[-1]

    def _buffer(self, rows: Rows, limits: Limits) -> list[int]:
        """A row of the buffer table, with its memory unless it is a part of another buffer."""
        fields = [0] * at.BUFFER_FIELDS
        fields[at.SIZE], fields[at.PADDED] = rows.counted or rows.size, padded(rows.size)
        if rows.part_of >= 0:
            return fields
        count = (limits.samples if rows.per_sample else limits.rows) + SPARE_ROWS
        # A line more than a power of two, so that the same column of neighbouring rows has its own cache line.
        fields[at.STRIDE] = 4 * padded(rows.size) + CACHE_LINE
        fields[at.FLOATS] = self._zeros(count * fields[at.STRIDE]).ctypes.data
        if rows.quantised:
            fields[at.QUANTISED_STRIDE] = padded(rows.size) // BLOCK * RECORD
            fields[at.QUANTISED] = self._zeros(count * fields[at.QUANTISED_STRIDE]).ctypes.data
        return fields

    def _place_parts(self) -> None:
        for fields, rows in zip(self._buffers, self._program.buffers, strict=True):
            if rows.part_of >= 0:
                whole = self._buffers[rows.part_of]
                fields[at.FLOATS] = whole[at.FLOATS] + 4 * rows.offset
                fields[at.STRIDE] = whole[at.STRIDE]
