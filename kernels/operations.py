"""The operations of a program, each on one thread's share of the rows, heads or outputs."""

import math

import numpy as np
from numba import types

from puma.kernels.activations import quantise
from puma.kernels.attention import tile_offset
from puma.kernels.batch_attention import HEAD_DIM, HEADS, KV_HEADS, TILES_PER_BLOCK, VALUE_BYTES
from puma.kernels.compile import kernel
from puma.kernels.elementwise import copy_row, rms_norm, rotate, silu_times, store_key, store_value
from puma.kernels.embedding import embed
from puma.kernels.matmul import OUTPUTS, ROW_CHUNK, further, multiply_matrix, store_rows, tile_of
from puma.kernels.parts import TABLE, WORD, part
from puma.kernels.program import FLOATS, PADDED, QUANTISED, QUANTISED_STRIDE, SIZE, STRIDE
from puma.kernels.sample import CHOICE_FIELDS, CHOSEN_FIELDS, choose
from puma.kernels.static import F16, F32, bytes_of
from puma.kernels.step import (
    CHOICES,
    CHOSEN,
    LAST_TOKENS,
    POSITIONS,
    ROW_SLOTS,
    ROWS,
    SAMPLE_ROWS,
    SAMPLE_SLOTS,
    SAMPLE_TOTAL,
    TABLE_STRIDE,
    TABLES,
    TOKENS,
)
from puma.kernels.vectors import LANES, load_int32, store_int32


@kernel
def embed_rows(thread, threads, step, matrix, out):
    """A token of -1 stands for the one that the row's slot sampled last, in an earlier step."""
    for row in range(thread, step[ROWS], threads):
        token = load_int32(step[TOKENS] + 4 * row)
        if token < 0:
            token = load_int32(step[LAST_TOKENS] + 4 * load_int32(step[ROW_SLOTS] + 4 * row))
        embed(matrix, np.int64(token), out[FLOATS] + row * out[STRIDE])


@kernel
def norm_rows(thread, threads, rows, source, out, weights, epsilon, outlier):
    for row in range(rows * thread // threads, rows * (thread + 1) // threads):
        target = out[FLOATS] + row * out[STRIDE]
        rms_norm(source[FLOATS] + row * source[STRIDE], weights, source[SIZE], source[PADDED], epsilon, target)
        if out[QUANTISED]:
            quantise(target, out[PADDED], out[QUANTISED] + row * out[QUANTISED_STRIDE], outlier)


@kernel
def inputs_of(buffer):
    """A buffer's rows, as products take them."""
    return buffer[QUANTISED], buffer[QUANTISED_STRIDE], buffer[FLOATS], buffer[STRIDE]


@part(types.void(WORD, WORD, WORD, TABLE, TABLE, TABLE, types.boolean), cost=7)
def multiply_rows(thread, threads, rows, source, matrix, out, accumulate):
    target = (out[FLOATS], out[STRIDE])
    multiply_matrix(thread, threads, matrix, rows, inputs_of(source), target, accumulate)


@part(types.void(WORD, WORD, WORD, TABLE, TABLE, TABLE, TABLE, WORD), cost=3)
def gated_rows(thread, threads, rows, source, gate, up, out, scratch):
    """out = silu(source x gate) * (source x up), a tile of sixteen outputs at a time."""
    tiles = -(-gate[OUTPUTS] // LANES)
    first, last = tiles * thread // threads, tiles * (thread + 1) // threads
    for start in range(0, rows, GATED_ROWS):
        count, inputs = min(GATED_ROWS, rows - start), further(inputs_of(source), start)
        for tile in range(first, last):
            target = out[FLOATS] + start * out[STRIDE] + 4 * LANES * tile
            store_rows(count, tile_of(gate, tile), inputs, (target, out[STRIDE]), False)
            store_rows(count, tile_of(up, tile), inputs, (scratch, 4 * LANES), False)
            for row in range(count):
                silu_times(target + row * out[STRIDE], scratch + 4 * LANES * row, LANES)


GATED_ROWS = ROW_CHUNK
"""Rows whose intermediate results a thread keeps in its scratch."""

GATED_SCRATCH = GATED_ROWS * LANES * 4
"""Bytes of that scratch."""


@kernel
def rotate_rows(thread, threads, step, shape, source, keys, values, cosines, sines):
    """Rotate queries (scaled by 1 / sqrt(head_dim)) and keys; put keys and values into the cache."""
    heads, kv_heads, head_dim, value_bytes = shape[HEADS], shape[KV_HEADS], shape[HEAD_DIM], shape[VALUE_BYTES]
    half = head_dim // 2
    scale = np.float32(1.0 / math.sqrt(head_dim))
    tile_bytes = kv_heads * head_dim * value_bytes * LANES
    items = step[ROWS] * (heads + kv_heads)
    for item in range(items * thread // threads, items * (thread + 1) // threads):
        row, head = item // (heads + kv_heads), item % (heads + kv_heads)
        position = np.int64(load_int32(step[POSITIONS] + 4 * row))
        at = source[FLOATS] + row * source[STRIDE] + 4 * head_dim * head
        cosine, sine = cosines + 4 * half * position, sines + 4 * half * position
        if head < heads:
            rotate(at, cosine, sine, half, scale)
            continue
        rotate(at, cosine, sine, half, np.float32(1.0))
        table = step[TABLES] + step[TABLE_STRIDE] * load_int32(step[ROW_SLOTS] + 4 * row)
        tile = tile_offset(table, position // LANES, shape[TILES_PER_BLOCK], tile_bytes)
        tile += (head - heads) * head_dim * value_bytes * LANES
        lane = position % LANES
        key, value = keys + tile + value_bytes * lane, values + tile + value_bytes * head_dim * lane
        if value_bytes == bytes_of(F16):
            store_key(F16, at, key, head_dim)
            store_value(F16, at + 4 * head_dim * kv_heads, value, head_dim)
        else:
            store_key(F32, at, key, head_dim)
            store_value(F32, at + 4 * head_dim * kv_heads, value, head_dim)


@kernel
def select_rows(thread, threads, step, source, out):
    for sample in range(thread, step[SAMPLE_TOTAL], threads):
        row = load_int32(step[SAMPLE_ROWS] + 4 * sample)
        copy_row(source[FLOATS] + row * source[STRIDE], out[FLOATS] + sample * out[STRIDE], out[PADDED])


@kernel
def quantise_rows(thread, threads, rows, buffer, outlier):
    if buffer[QUANTISED]:
        for row in range(rows * thread // threads, rows * (thread + 1) // threads):
            where = buffer[QUANTISED] + row * buffer[QUANTISED_STRIDE]
            quantise(buffer[FLOATS] + row * buffer[STRIDE], buffer[PADDED], where, outlier)


@part(types.void(WORD, WORD, TABLE, TABLE, WORD), cost=5)
def sample_rows(thread, threads, step, logits, weights):
    for sample in range(thread, step[SAMPLE_TOTAL], threads):
        chosen = step[CHOSEN] + 4 * CHOSEN_FIELDS * sample
        choose(
            logits[FLOATS] + sample * logits[STRIDE],
            logits[SIZE],
            logits[PADDED],
            step[CHOICES] + 8 * CHOICE_FIELDS * sample,
            chosen,
            weights,
        )
        slot = load_int32(step[SAMPLE_SLOTS] + 4 * sample)
        store_int32(step[LAST_TOKENS] + 4 * slot, max(np.int32(0), load_int32(chosen)))
