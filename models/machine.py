"""Everything a model's compiled steps work on: tables, buffers, KV array and scratch, allocated once."""

import numpy as np
from numpy.typing import NDArray

from puma.config.memory import KVGeometry, MemoryPlan
from puma.kernels import program as at
from puma.kernels.step import STEP_FIELDS
from puma.kernels.vectors import LANES
from puma.models.architectures.hyperparameters import Hyperparameters
from puma.models.program import Program, Rows
from puma.models.sizes import BufferSizes, Limits, Sizes, machine_sizes
from puma.models.weights import allocate, commit, padded


class Machine:
    """Owns the memory behind one machine table (see kernels/program.py). Raises MemoryError when there is too little.

    Keys and values are resident from the beginning; scratch becomes so as steps first need it.
    """

    def __init__(
        self,
        program: Program,
        shape: Hyperparameters,
        geometry: KVGeometry,
        plan: MemoryPlan,
        limits: Limits,
        rope: tuple[NDArray[np.float32], NDArray[np.float32]],
    ) -> None:
        self._kept: list[NDArray[np.uint8]] = []
        self._program, self._rope = program, rope
        self.table = np.zeros(at.MACHINE_FIELDS, np.int64)
        self.step = np.zeros(STEP_FIELDS, np.int64)
        self.sizes = machine_sizes(program.buffers, shape, plan, limits)
        self.shared = self._zeros(self.sizes.shared).view(np.int64)
        self._operations = program.table()
        self._matrices = np.array([each.row() for each in program.matrices])
        buffers = zip(program.buffers, self.sizes.buffers, strict=True)
        self._buffers = np.array([self._buffer(rows, sizes) for rows, sizes in buffers], np.int64)
        self._place_parts()
        tiles_per_block = plan.tokens_per_block // LANES
        self._shape = np.array([shape.heads, shape.kv_heads, shape.head_dim, tiles_per_block, geometry.value_bytes])
        self.keys, self.values = (self._zeros(self.sizes.layer * self.sizes.layers) for _ in range(2))
        """The KV cache: uint8, layer after layer, of the layout in kernels/attention.py."""
        self._fill(self.sizes)

    def _fill(self, sizes: Sizes) -> None:
        commit(self.keys)
        commit(self.values)
        table = self.table
        table[at.PROGRAM], table[at.OPERATIONS] = self._operations.ctypes.data, len(self._operations)
        table[at.MATRICES], table[at.MATRIX_TOTAL] = self._matrices.ctypes.data, len(self._matrices)
        table[at.BUFFERS], table[at.BUFFER_TOTAL] = self._buffers.ctypes.data, len(self._buffers)
        table[at.SHAPE], table[at.STEP] = self._shape.ctypes.data, self.step.ctypes.data
        table[at.KEYS], table[at.VALUES] = self.keys.ctypes.data, self.values.ctypes.data
        table[at.LAYER_BYTES] = sizes.layer
        table[at.COSINES], table[at.SINES] = (angles.ctypes.data for angles in self._rope)
        table[at.PARTIALS] = self._zeros(sizes.partials).ctypes.data
        table[at.SCRATCH] = self._zeros(sizes.scratch * sizes.threads).ctypes.data
        table[at.SCRATCH_STRIDE] = sizes.scratch
        table[at.WEIGHTS] = self._zeros(sizes.weights * sizes.threads).ctypes.data
        table[at.WEIGHTS_STRIDE] = sizes.weights
        table[at.SHARED] = self.shared.ctypes.data

    def _zeros(self, nbytes: int) -> NDArray[np.uint8]:
        self._kept.append(allocate(nbytes))
        return self._kept[-1]

    def _buffer(self, rows: Rows, sizes: BufferSizes) -> list[int]:
        """A row of the buffer table, with its memory unless it is a part of another buffer."""
        fields = [0] * at.BUFFER_FIELDS
        fields[at.SIZE], fields[at.PADDED] = rows.counted or rows.size, padded(rows.size)
        fields[at.STRIDE], fields[at.QUANTISED_STRIDE] = sizes.stride, sizes.quantised_stride
        if sizes.floats:
            fields[at.FLOATS] = self._zeros(sizes.floats).ctypes.data
        if sizes.quantised:
            fields[at.QUANTISED] = self._zeros(sizes.quantised).ctypes.data
        return fields

    def _place_parts(self) -> None:
        for fields, rows in zip(self._buffers, self._program.buffers, strict=True):
            if rows.part_of >= 0:
                whole = self._buffers[rows.part_of]
                fields[at.FLOATS] = whole[at.FLOATS] + 4 * rows.offset
                fields[at.STRIDE] = whole[at.STRIDE]
