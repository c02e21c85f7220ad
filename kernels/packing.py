"""Weights from a file's order into tiles of sixteen outputs, once, when a model is loaded.

Formats are numbered as GGML numbers them.
"""

import numpy as np
from numba import types
from numpy.typing import NDArray

from puma.kernels.activations import BLOCK
from puma.kernels.compile import entry
from puma.kernels.formats.floats import pack_floats
from puma.kernels.formats.q4 import Q4_0_BYTES, Q4_1_BYTES, pack_q4
from puma.kernels.formats.q8 import Q8_0_BYTES, pack_q8_0
from puma.kernels.vectors import LANES

F32_CODE, F16_CODE, Q4_0_CODE, Q4_1_CODE, Q8_0_CODE, BF16_CODE = 0, 1, 2, 3, 8, 30

FLOAT_BYTES = {F32_CODE: 4, F16_CODE: 2, BF16_CODE: 2}
BLOCK_BYTES = {Q4_0_CODE: Q4_0_BYTES, Q4_1_CODE: Q4_1_BYTES, Q8_0_CODE: Q8_0_BYTES}

SUPPORTED_CODES = frozenset(FLOAT_BYTES | BLOCK_BYTES)


def takes_floats(code: int) -> bool:
    """Whether a format is multiplied with float32 activations; the others take quantised ones."""
    return code in FLOAT_BYTES


def tile_bytes(code: int, inner: int) -> int:
    """Bytes of one packed tile: sixteen outputs of `inner` weights."""
    if takes_floats(code):
        return LANES * inner * FLOAT_BYTES[code]
    return inner // BLOCK * BLOCK_BYTES[code]


READ_ONLY_BYTES = types.Array(types.uint8, 2, "C", readonly=True)


@entry(
    types.void(
        types.int64,
        READ_ONLY_BYTES,
        types.int64,
        types.int64[::1],
        types.uint8[:, ::1],
        types.int64,
        types.int64,
    ),
    cost=2,
)
def pack_tiles(code, file, inner, order, packed, first, last):
    """Pack tiles [first, last): output o of the packed matrix is the file's row order[o]."""
    for tile in range(first, last):
        outputs = min(LANES, order.size - tile * LANES)
        rows = np.empty((outputs, file.shape[1]), np.uint8)
        for output in range(outputs):
            row = order[tile * LANES + output]
            # Not as a slice: the error for shapes that differ would take as long to compile as all the rest.
            for column in range(file.shape[1]):
                rows[output, column] = file[row, column]
        if code == Q4_0_CODE:
            pack_q4(rows, packed[tile], outputs, inner // BLOCK, 2)
        elif code == Q4_1_CODE:
            pack_q4(rows, packed[tile], outputs, inner // BLOCK, 4)
        elif code == Q8_0_CODE:
            pack_q8_0(rows, packed[tile], outputs, inner // BLOCK)
        else:
            pack_floats(rows, packed[tile], outputs, inner, file.shape[1] // inner)


def pack(code: int, file: NDArray[np.uint8], inner: int, order: NDArray[np.int64], packed: NDArray[np.uint8]) -> None:
    """Fill `packed`, uint8 [tiles, tile_bytes(code, inner)] of zeros, from `file`, uint8 [outputs, bytes of a row].

    `order`, int64 [outputs], gives for each output the file's row.
    """
    file = file.view()
    # One type of array, whether it comes out of a file or not: one compiled function.
    file.flags.writeable = False
    pack_tiles(code, file, inner, order, packed, 0, packed.shape[0])
