"""Q8_0: 32 weights of eight bits share a scale.

Source of the format: GGML. A file block is [f16 scale][32 int8]; w = scale * q.

Packed block of a tile: [16 f16 scales][512 bytes]; 32-bit lane i of 64-byte group g holds output i's weights 4g to
4g + 3, each with 128 added, so that they are unsigned; the activations' record corrects for it.
"""

import numpy as np

from puma.kernels.activations import BLOCK, MINUS_8_SUMS, RECORD, SCALE
from puma.kernels.compile import kernel
from puma.kernels.dots import BYTES, block_totals, load_byte_groups, load_totals, scale_and_add, times_16
from puma.kernels.static import ONE, number_of
from puma.kernels.tiles import zero_tile
from puma.kernels.vectors import LANES, load_byte, load_half, load_halves, prefetch, store_float

Q8_0_BYTES = 2 * LANES + 32 * LANES
"""Bytes of one packed block: sixteen outputs, 32 inputs."""

AHEAD = 4
"""Blocks to prefetch ahead when weights come from memory."""


@kernel
def multiply_q8_0(rows, weights, inner, source, stride):
    """Tile of rows x 16 outputs: `rows` quantised rows at `source`, `stride` bytes apart, times one tile of weights."""
    tile = zero_tile(rows, ONE)
    for _ in range(inner // BLOCK):
        if number_of(rows) == 1:
            for line in range(0, Q8_0_BYTES, 64):
                prefetch(weights + AHEAD * Q8_0_BYTES + line)
        start = times_16(load_totals(rows, source + MINUS_8_SUMS, stride))
        totals = block_totals(BYTES, rows, start, load_byte_groups(weights + 2 * LANES), source, stride)
        tile = scale_and_add(tile, totals, load_halves(weights), source + SCALE, stride)
        weights += Q8_0_BYTES
        source += RECORD
    return tile


@kernel
def pack_q8_0(file, packed, outputs, blocks):
    """One tile: `file` is uint8 [<=16 outputs, blocks * 34], `packed` uint8 of one packed tile, zeroed."""
    for output in range(outputs):
        for block in range(blocks):
            source, target = block * 34, block * Q8_0_BYTES
            packed[target + 2 * output] = file[output, source]
            packed[target + 2 * output + 1] = file[output, source + 1]
            for byte in range(32):
                group, within = byte // 4, byte % 4
                packed[target + 2 * LANES + 64 * group + 4 * output + within] = file[output, source + 2 + byte] ^ 0x80


@kernel
def row_q8_0(weights, lane, inner, target):
    """Dequantise output `lane` of the tile at `weights` into `inner` float32 at `target`."""
    for _ in range(inner // BLOCK):
        scale = load_half(weights + 2 * lane)
        for byte in range(32):
            group, within = byte // 4, byte % 4
            value = load_byte(weights + 2 * LANES + 64 * group + 4 * lane + within)
            store_float(target + 4 * byte, scale * np.float32(value - 128))
        weights += Q8_0_BYTES
        target += 4 * BLOCK
