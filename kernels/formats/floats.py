"""F32, F16 and BF16: weights without blocks, multiplied with float32 activations.

Packed tile: for each input, the sixteen outputs' weights in the file's own precision.
"""

from puma.kernels.compile import kernel
from puma.kernels.static import ONE
from puma.kernels.tiles import load_columns, outer_multiply_add, zero_tile
from puma.kernels.vectors import LANES, load_byte, load_float, load_half, store_float, store_int32


@kernel
def multiply_floats(element, size, rows, weights, inner, source, stride):
    """Tile of rows x 16 outputs: `rows` float32 rows at `source`, `stride` bytes apart, times one tile of weights."""
    tile = zero_tile(rows, ONE)
    for _ in range(inner):
        tile = outer_multiply_add(tile, load_columns(element, ONE, weights, 0), source, stride)
        weights += LANES * size
        source += 4
    return tile


@kernel
def pack_floats(file, packed, outputs, inner, size):
    """One tile: `file` is uint8 [<=16 outputs, inner * size], `packed` uint8 of one packed tile, zeroed."""
    for output in range(outputs):
        for k in range(inner):
            for byte in range(size):
                packed[(k * LANES + output) * size + byte] = file[output, k * size + byte]


@kernel
def row_f32(weights, lane, inner, target):
    for k in range(inner):
        store_float(target + 4 * k, load_float(weights + 4 * (LANES * k + lane)))


@kernel
def row_f16(weights, lane, inner, target):
    for k in range(inner):
        store_float(target + 4 * k, load_half(weights + 2 * (LANES * k + lane)))


@kernel
def row_bf16(weights, lane, inner, target):
    for k in range(inner):
        low = weights + 2 * (LANES * k + lane)
        store_int32(target + 4 * k, load_byte(low) << 16 | load_byte(low + 1) << 24)
