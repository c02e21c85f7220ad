"""Products of activation rows with packed weight matrices: out[r, o] (+)= sum over k of w[o, k] * x[r, k].

Whatever the number of rows, each output is summed over k in the same order; threads divide the outputs, never k.
A matrix is described by a row of the matrix table:

    FORMAT, OUTPUTS, INNER, WEIGHTS (address of its tiles), TILE_BYTES
"""

from puma.kernels.compile import kernel
from puma.kernels.formats.floats import multiply_floats
from puma.kernels.formats.q4 import multiply_q4_0, multiply_q4_1
from puma.kernels.formats.q8 import multiply_q8_0
from puma.kernels.packing import BF16_CODE, F16_CODE, F32_CODE, Q4_0_CODE, Q4_1_CODE
from puma.kernels.static import BF16, F16, F32, FOUR, ONE, TWO, number_of
from puma.kernels.tiles import add_to_tile, store_tile
from puma.kernels.vectors import LANES, never_inline

FORMAT, OUTPUTS, INNER, WEIGHTS, TILE_BYTES = range(5)
MATRIX_FIELDS = 5

ROW_CHUNK = 128
"""Rows whose activations stay in the second-level cache while the weights pass by."""


@kernel
def product(rows, weights, inputs):
    """One tile of rows x 16 outputs.

    `weights` is (format, address of a tile, inner size); `inputs` is (quantised rows, their stride, float32 rows, their
    stride), of which the format takes one.
    """
    code, tile, inner = weights
    quantised, quantised_stride, source, stride = inputs
    if code == Q4_1_CODE:
        return multiply_q4_1(rows, tile, inner, quantised, quantised_stride)
    if code == Q4_0_CODE:
        return multiply_q4_0(rows, tile, inner, quantised, quantised_stride)
    if code == F32_CODE:
        return multiply_floats(F32, 4, rows, tile, inner, source, stride)
    if code == F16_CODE:
        return multiply_floats(F16, 2, rows, tile, inner, source, stride)
    if code == BF16_CODE:
        return multiply_floats(BF16, 2, rows, tile, inner, source, stride)
    return multiply_q8_0(rows, tile, inner, quantised, quantised_stride)


@kernel
def store_product(rows, weights, inputs, target, accumulate):
    """Store or add one product at `target`: (address, stride)."""
    never_inline()
    tile = product(rows, weights, inputs)
    out, stride = target
    if accumulate:
        tile = add_to_tile(tile, ONE, out, stride, 0)
    store_tile(tile, ONE, out, stride, 0)


@kernel
def further(inputs, rows):
    """The inputs from `rows` rows further down."""
    quantised, quantised_stride, source, stride = inputs
    return quantised + rows * quantised_stride, quantised_stride, source + rows * stride, stride


@kernel
def store_rows(count, weights, inputs, target, accumulate):
    """`count` rows times one tile of weights, in groups as large as the registers hold."""
    done = 0
    while done < count:
        group = further(inputs, done)
        place = (target[0] + done * target[1], target[1])
        if count - done >= number_of(FOUR):
            store_product(FOUR, weights, group, place, accumulate)
            done += number_of(FOUR)
        elif count - done >= number_of(TWO):
            store_product(TWO, weights, group, place, accumulate)
            done += number_of(TWO)
        else:
            store_product(ONE, weights, group, place, accumulate)
            done += number_of(ONE)


@kernel
def tile_of(matrix, tile):
    """One tile of a matrix, as `product` takes it."""
    return matrix[FORMAT], matrix[WEIGHTS] + tile * matrix[TILE_BYTES], matrix[INNER]


@kernel
def multiply_matrix(thread, threads, matrix, rows, inputs, target, accumulate):
    """This thread's share of the outputs, for all rows."""
    tiles = -(-matrix[OUTPUTS] // LANES)
    first, last = tiles * thread // threads, tiles * (thread + 1) // threads
    out, stride = target
    for start in range(0, rows, ROW_CHUNK):
        for tile in range(first, last):
            place = (out + start * stride + 4 * LANES * tile, stride)
            count = min(ROW_CHUNK, rows - start)
            store_rows(count, tile_of(matrix, tile), further(inputs, start), place, accumulate)
