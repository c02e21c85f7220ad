"""Q4_0 and Q4_1: 32 weights of four bits share a scale; Q4_1 adds a minimum.

Source of the formats: GGML. A file block is [f16 scale][f16 minimum, Q4_1 only][16 bytes], where byte j holds weight j
in its low and weight j + 16 in its high nibble; w = scale * (q - 8), or scale * q + minimum.

Packed block of a tile: [16 f16 scales][16 f16 minima, Q4_1 only][256 bytes]; 32-bit lane i of 64-byte group g holds
output i's weights 4g to 4g + 3 in the low nibbles and 16 + 4g to 16 + 4g + 3 in the high ones. It is as large as the
file's blocks together.
"""

import numpy as np

from puma.kernels.activations import BLOCK, MINUS_8_SUMS, RECORD, SCALE, SCALED_SUM
from puma.kernels.compile import kernel
from puma.kernels.dots import NIBBLES, block_totals, load_nibbles, load_totals, scale_and_add, zero_totals
from puma.kernels.static import ONE, number_of
from puma.kernels.tiles import outer_multiply_add, zero_tile
from puma.kernels.vectors import LANES, load_byte, load_half, load_halves, prefetch, store_float

Q4_0_BYTES = 2 * LANES + 16 * LANES
Q4_1_BYTES = 4 * LANES + 16 * LANES
"""Bytes of one packed block: sixteen outputs, 32 inputs."""

AHEAD = 8
"""Blocks to prefetch ahead when weights come from memory."""


@kernel
def multiply_q4_0(rows, weights, inner, source, stride):
    """Tile of rows x 16 outputs: `rows` quantised rows at `source`, `stride` bytes apart, times one tile of weights."""
    tile = zero_tile(rows, ONE)
    for _ in range(inner // BLOCK):
        if number_of(rows) == 1:
            for line in range(0, Q4_0_BYTES, 64):
                prefetch(weights + AHEAD * Q4_0_BYTES + line)
        start = load_totals(rows, source + MINUS_8_SUMS, stride)
        totals = block_totals(NIBBLES, rows, start, load_nibbles(weights + 2 * LANES), source, stride)
        tile = scale_and_add(tile, totals, load_halves(weights), source + SCALE, stride)
        weights += Q4_0_BYTES
        source += RECORD
    return tile


@kernel
def multiply_q4_1(rows, weights, inner, source, stride):
    """As multiply_q4_0; the minimum meets the sum of the row's activations."""
    tile = zero_tile(rows, ONE)
    for _ in range(inner // BLOCK):
        if number_of(rows) == 1:
            for line in range(0, Q4_1_BYTES, 64):
                prefetch(weights + AHEAD * Q4_1_BYTES + line)
        groups = load_nibbles(weights + 4 * LANES)
        totals = block_totals(NIBBLES, rows, zero_totals(rows), groups, source, stride)
        tile = scale_and_add(tile, totals, load_halves(weights), source + SCALE, stride)
        minimum = load_halves(weights + 2 * LANES)
        tile = outer_multiply_add(tile, (minimum,), source + SCALED_SUM, stride)
        weights += Q4_1_BYTES
        source += RECORD
    return tile


@kernel
def pack_q4(file, packed, outputs, blocks, header):
    """One tile: `file` is uint8 [<=16 outputs, blocks * (header + 16)], `packed` uint8 of one packed tile, zeroed.

    `header` is 2 (scale) or 4 (scale and minimum).
    """
    size = LANES * (header + 16)
    for output in range(outputs):
        for block in range(blocks):
            source, target = block * (header + 16), block * size
            for byte in range(header):
                packed[target + (byte // 2) * 2 * LANES + 2 * output + byte % 2] = file[output, source + byte]
            target += LANES * header
            for byte in range(16):
                group, within = byte // 4, byte % 4
                packed[target + 64 * group + 4 * output + within] = file[output, source + header + byte]


@kernel
def row_q4(weights, lane, inner, target, has_minimum):
    """Dequantise output `lane` of the tile at `weights` into `inner` float32 at `target`."""
    size = Q4_1_BYTES if has_minimum else Q4_0_BYTES
    header = 4 * LANES if has_minimum else 2 * LANES
    for _ in range(inner // BLOCK):
        scale = load_half(weights + 2 * lane)
        minimum = load_half(weights + 2 * LANES + 2 * lane) if has_minimum else np.float32(-8.0) * scale
        for byte in range(16):
            group, within = byte // 4, byte % 4
            value = load_byte(weights + header + 64 * group + 4 * lane + within)
            store_float(target + 4 * byte, scale * np.float32(value & 15) + minimum)
            store_float(target + 4 * (byte + 16), scale * np.float32(value >> 4) + minimum)
        weights += size
        target += 4 * BLOCK
