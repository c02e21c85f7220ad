"""Activations as the matmuls take them: float32 rows, and the same rows as integers with a scale per 32 values.

A quantised row is a sequence of 80-byte records, one per 32 values x:

    32 x int8 q       x ~ scale * (q * 2**shift + rest), with |q| <= 127
    float32 SCALE
    float32 SCALED_SUM      scale * sum(q * 2**shift + rest), for weights with a minimum
    int32   MINUS_8_SUMS    -8 * sum(q * 2**shift + rest), for 4-bit weights that are stored with 8 added
    int32   SHIFT           0 or 8
    32 x int8 rest    0 unless shift is 8

Most blocks need no rest. But a few channels of a model carry values far above all others, and there the rounding to
q is as coarse as the largest value is large: a block that reaches beyond a multiple of the row's root mean square is
kept to sixteen bits. Whether it is depends on its row alone, never on its company.
"""

import math

import numpy as np

from puma.kernels.arithmetic import (
    add,
    add_integers,
    largest_magnitude,
    multiply,
    multiply_add,
    round_to_integers,
    smaller_integers,
    subtract,
    sum_integers,
    sum_lanes,
    to_floats,
)
from puma.kernels.compile import kernel
from puma.kernels.vectors import broadcast, load_floats, store_bytes, store_float, store_int32

BLOCK = 32
"""Values that share a scale."""

RECORD = 80
"""Bytes of one quantised block."""

SCALE, SCALED_SUM, MINUS_8_SUMS, SHIFT, REST = 32, 36, 40, 44, 48
"""Offsets in a record."""

REST_BITS = 8


@kernel
def root_mean_square(source, count):
    even, odd = broadcast(0.0), broadcast(0.0)
    for _ in range(count // BLOCK):
        low, high = load_floats(source), load_floats(source + 64)
        even, odd = multiply_add(low, low, even), multiply_add(high, high, odd)
        source += 4 * BLOCK
    return np.float32(math.sqrt(sum_lanes(add(even, odd)) / np.float32(count)))


@kernel
def store_rest(scaled, rounded, target):
    """Store what rounding left, in units of 2**-8; returns the sum of its lanes."""
    rest = multiply(subtract(scaled, to_floats(rounded)), broadcast(np.float32(1 << REST_BITS)))
    rest_bytes = smaller_integers(round_to_integers(rest), 127)
    store_bytes(target, rest_bytes)
    return sum_integers(rest_bytes)


@kernel
def quantise(source, count, target, outlier):
    """Quantise a row of `count` float32 (a multiple of 32) at `source` into records at `target`.

    `outlier`, float32, is the multiple of the root mean square beyond which a block keeps sixteen bits; 0: all do.
    """
    limit = outlier * root_mean_square(source, count)
    for _ in range(count // BLOCK):
        low, high = load_floats(source), load_floats(source + 64)
        largest = largest_magnitude(low, high)
        inverse = broadcast(np.float32(127.0) / largest if largest != 0 else np.float32(0.0))
        low, high = multiply(low, inverse), multiply(high, inverse)
        low_bytes, high_bytes = round_to_integers(low), round_to_integers(high)
        store_bytes(target, low_bytes)
        store_bytes(target + 16, high_bytes)
        total = sum_integers(add_integers(low_bytes, high_bytes))
        scale, shift = largest * np.float32(1.0 / 127.0), 0
        if largest > limit:
            rest = store_rest(low, low_bytes, target + REST) + store_rest(high, high_bytes, target + REST + 16)
            scale, shift = scale * np.float32(1.0 / (1 << REST_BITS)), REST_BITS
            total = (total << REST_BITS) + rest
        else:
            for at in range(REST, REST + BLOCK, 4):
                store_int32(target + at, 0)
        store_float(target + SCALE, scale)
        store_float(target + SCALED_SUM, scale * np.float32(total))
        store_int32(target + MINUS_8_SUMS, -8 * total)
        store_int32(target + SHIFT, shift)
        source += 4 * BLOCK
        target += RECORD
