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
def product(rows, code, weights, inner, quantised, quantised_stride, source, source_stride):
    """One tile of rows x 16 outputs, from whichever form of the activations the weights' format takes."""
    if code == Q4_1_CODE:
        return multiply_q4_1(rows, weights, inner, quantised, quantised_stride)
    if code == Q4_0_CODE:
        return multiply_q4_0(rows, weights, inner, quantised, quantised_stride)
    if code == F32_CODE:
        return multiply_floats(F32, 4, rows, weights, inner, source, source_stride)
    if code == F16_CODE:
        return multiply_floats(F16, 2, rows, weights, inner, source, source_stride)
    if code == BF16_CODE:
        return multiply_floats(BF16, 2, rows, weights, inner, source, source_stride)
    return multiply_q8_0(rows, weights, inner, quantised, quantised_stride)


@kernel
def store_product(
    rows,
    code,
    weights,
    inner,
    quantised,
    quantised_stride,
    source,
    source_stride,
    out,
    out_stride,
    accumulate,
):
    never_inline()
    tile = product(rows, code, weights, inner, quantised, quantised_stride, source, source_stride)
    if accumulate:
        tile = add_to_tile(tile, ONE, out, out_stride, 0)
    store_tile(tile, ONE, out, out_stride, 0)


@kernel
def store_rows(
    count,
    code,
    weights,
    inner,
    quantised,
    quantised_stride,
    source,
    source_stride,
    out,
    out_stride,
    accumulate,
):
    """`count` rows times one tile of weights, in groups as large as the registers hold."""
    while count > 0:
        if count >= number_of(FOUR):
            taken = number_of(FOUR)
            store_product(
                FOUR,
                code,
                weights,
                inner,
                quantised,
                quantised_stride,
                source,
                source_stride,
                out,
                out_stride,
                accumulate,
            )
        elif count >= number_of(TWO):
            taken = number_of(TWO)
            store_product(
                TWO,
                code,
                weights,
                inner,
                quantised,
                quantised_stride,
                source,
                source_stride,
                out,
                out_stride,
                accumulate,
            )
        else:
            taken = number_of(ONE)
            store_product(
                ONE,
                code,
                weights,
                inner,
                quantised,
                quantised_stride,
                source,
                source_stride,
                out,
                out_stride,
                accumulate,
            )
        quantised += taken * quantised_stride
        source += taken * source_stride
        out += taken * out_stride
        count -= taken


@kernel
def multiply_matrix(
    thread,
    threads,
    matrix,
    rows,
    quantised,
    quantised_stride,
    source,
    source_stride,
    out,
    out_stride,
    accumulate,
):
    """This thread's share of the outputs, for all rows."""
    tiles = -(-matrix[OUTPUTS] // LANES)
    first, last = tiles * thread // threads, tiles * (thread + 1) // threads
    for start in range(0, rows, ROW_CHUNK):
        count = min(ROW_CHUNK, rows - start)
        for tile in range(first, last):
            store_rows(
                count,
                matrix[FORMAT],
                matrix[WEIGHTS] + tile * matrix[TILE_BYTES],
                matrix[INNER],
                quantised + start * quantised_stride,
                quantised_stride,
                source + start * source_stride,
                source_stride,
                out + start * out_stride + 4 * LANES * tile,
                out_stride,
                accumulate,
            )
