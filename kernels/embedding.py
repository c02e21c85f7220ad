"""One row of a packed matrix as float32: the embedding of a token."""

from puma.kernels.compile import kernel
from puma.kernels.formats.floats import row_bf16, row_f16, row_f32
from puma.kernels.formats.q4 import row_q4
from puma.kernels.formats.q8 import row_q8_0
from puma.kernels.matmul import FORMAT, INNER, TILE_BYTES, WEIGHTS
from puma.kernels.packing import BF16_CODE, F16_CODE, F32_CODE, Q4_0_CODE, Q4_1_CODE
from puma.kernels.vectors import LANES


@kernel
def embed(matrix, token, target):
    """Dequantise output `token` of the matrix into float32 at `target`."""
    weights = matrix[WEIGHTS] + token // LANES * matrix[TILE_BYTES]
    lane = token % LANES
    if matrix[FORMAT] == Q4_1_CODE:
        row_q4(weights, lane, matrix[INNER], target, True)
    elif matrix[FORMAT] == Q4_0_CODE:
        row_q4(weights, lane, matrix[INNER], target, False)
    elif matrix[FORMAT] == F32_CODE:
        row_f32(weights, lane, matrix[INNER], target)
    elif matrix[FORMAT] == F16_CODE:
        row_f16(weights, lane, matrix[INNER], target)
    elif matrix[FORMAT] == BF16_CODE:
        row_bf16(weights, lane, matrix[INNER], target)
    else:
        row_q8_0(weights, lane, matrix[INNER], target)
