"""Activations as the matmuls take them: float32 rows, and the same rows as int8 with a scale per 32 values.

A quantised row is a sequence of 48-byte records, one per 32 values:

    32 x int8 q    with x ~ scale * q
    float32        scale = max |x| / 127
    float32        scale * sum(q)          for weights with a minimum
    int32          -8 * sum(q)             for 4-bit weights that are stored with 8 added
    int32          -128 * sum(q)           for 8-bit weights that are stored with 128 added
"""

import numpy as np

from puma.kernels.arithmetic import add_integers, largest_magnitude, multiply, round_to_integers, sum_integers
from puma.kernels.compile import kernel
from puma.kernels.vectors import broadcast, load_floats, store_bytes, store_float, store_int32

BLOCK = 32
"""Values that share a scale."""

RECORD = 48
"""Bytes of one quantised block."""

SCALE, SCALED_SUM, MINUS_8_SUMS, MINUS_128_SUMS = 32, 36, 40, 44
"""Offsets in a record."""


@kernel
def quantise(source, count, target):
    """Quantise `count` float32 (a multiple of 32) at `source` into records at `target`."""
    for _ in range(count // BLOCK):
        low, high = load_floats(source), load_floats(source + 64)
        largest = largest_magnitude(low, high)
        inverse = broadcast(np.float32(127.0) / largest if largest != 0 else np.float32(0.0))
        low_bytes = round_to_integers(multiply(low, inverse))
        high_bytes = round_to_integers(multiply(high, inverse))
        store_bytes(target, low_bytes)
        store_bytes(target + 16, high_bytes)
        total = sum_integers(add_integers(low_bytes, high_bytes))
        scale = largest * np.float32(1.0 / 127.0)
        store_float(target + SCALE, scale)
        store_float(target + SCALED_SUM, scale * np.float32(total))
        store_int32(target + MINUS_8_SUMS, np.int32(-8 * total))
        store_int32(target + MINUS_128_SUMS, np.int32(-128 * total))
        source += 4 * BLOCK
        target += RECORD
