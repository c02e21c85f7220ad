"""Paged attention: query rows against the keys and values of one sequence, in absolute order of positions.

The cache is a sequence of tiles of sixteen tokens; a block is one or more consecutive tiles. Per layer and tile:

    keys     [kv_heads, head_dim, 16]     so that sixteen scores are one vector, without horizontal sums
    values   [kv_heads, 16, head_dim]

of float16 or float32, the cache's element; it is chosen once per span. All arithmetic is in float32.

Positions are divided into spans of 128. Each span has its own softmax: the largest score m, the sum l of exp(score - m)
and the weighted sum o of the values. Spans are folded together from the first to the last. One query or many, alone or
in a batch, every row takes exactly these steps, so its result has the same bits.

Softmax over spans: Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018.
"""

import numpy as np

from puma.kernels.arithmetic import (
    add,
    divide,
    exponential,
    keep_first,
    largest_lane,
    maximum,
    multiply,
    multiply_add,
    subtract,
    sum_lanes,
)
from puma.kernels.compile import kernel
from puma.kernels.static import F16, F32, ONE, bytes_of, number_of
from puma.kernels.tiles import load_addresses, load_columns, load_columns_at, outer_multiply_add, store_tile, zero_tile
from puma.kernels.vectors import (
    LANES,
    broadcast,
    load_float,
    load_floats,
    load_int32,
    store_float,
    store_floats,
    store_int64,
)

SPAN = 128
"""Positions that share one softmax."""

SPAN_TILES = SPAN // LANES

SCORES_STRIDE = 4 * SPAN + 64
"""Bytes between two rows of scores; off a power of two, so that rows do not compete for the same cache lines."""

MASKED = np.float32(-1e30)


@kernel
def tile_offset(table, tile, tiles_per_block, tile_bytes):
    """Bytes from the start of a layer's keys (or values) to a sequence's tile."""
    block = np.int64(load_int32(table + 4 * (tile // tiles_per_block)))
    return (block * tiles_per_block + tile % tiles_per_block) * tile_bytes


@kernel
def span_addresses(cache, table, tiles_per_block, tile_bytes, first, count, addresses):
    """Write the addresses of tiles [first, first + count) to memory; the last is repeated to the span's end."""
    where = np.int64(0)
    for tile in range(SPAN_TILES):
        if tile < count:
            where = cache + tile_offset(table, first + tile, tiles_per_block, tile_bytes)
        store_int64(addresses + 8 * tile, where)


@kernel
def span_scores(element, rows, width, query, query_stride, head_dim, keys, count, scores):
    """scores[r, p] = query[r] . key[p], for `count` tiles whose addresses stand at `keys`, `width` at a time."""
    for first in range(0, count, number_of(width)):
        tiles = load_addresses(width, keys + 8 * first)
        sums = zero_tile(rows, width)
        for d in range(head_dim):
            columns = load_columns_at(element, tiles, bytes_of(element) * LANES * d)
            sums = outer_multiply_add(sums, columns, query + 4 * d, query_stride)
        store_tile(sums, width, scores + 4 * LANES * first, SCORES_STRIDE, 4 * LANES)


@kernel
def span_softmax(scores, visible):
    """Turn the first `visible` scores into exp(score - largest), the rest of their last tile into 0.

    Returns (largest score, sum of the exponentials).
    """
    tiles = -(-visible // LANES)
    largest = broadcast(MASKED)
    for tile in range(tiles):
        score = keep_first(load_floats(scores + 64 * tile), np.int32(visible - LANES * tile), MASKED)
        largest = maximum(largest, score)
    highest = largest_lane(largest)
    total = broadcast(0.0)
    for tile in range(tiles):
        score = subtract(load_floats(scores + 64 * tile), broadcast(highest))
        weight = keep_first(exponential(score), np.int32(visible - LANES * tile), np.float32(0.0))
        store_floats(scores + 64 * tile, weight)
        total = add(total, weight)
    return highest, sum_lanes(total)


@kernel
def span_values(element, rows, width, scores, values, visible, head_dim, first, results):
    """results[r, first * 16 ...] = sum over positions of weight[r, p] * value[p], `width` vectors of the head."""
    sums = zero_tile(rows, width)
    for tile in range(-(-visible // LANES)):
        where = load_addresses(ONE, values + 8 * tile)[0] + bytes_of(element) * LANES * first
        for lane in range(min(LANES, visible - LANES * tile)):
            columns = load_columns(element, width, where, bytes_of(element) * LANES)
            sums = outer_multiply_add(sums, columns, scores + 4 * (LANES * tile + lane), SCORES_STRIDE)
            where += bytes_of(element) * head_dim
    store_tile(sums, width, results[0] + 4 * LANES * first, results[1], 4 * LANES)


@kernel
def attend_span(rows, width, head_dim, queries, cached, reach, scores, results, sums):
    """One span for `rows` query rows that share a key-value head.

    `queries` and `results` are (address, stride) of float32 rows [rows, head_dim]. `cached` is where the addresses of
    the key tiles stand, where those of the value tiles, and the bytes of the cache's element. `reach` is (start, limit,
    step, last): the span begins at position `start`, and row r sees positions below limit + r * step, but none from
    `last` on. Writes o to the results and (m, l) to sums, float32 [rows, 2]; l = 0 where a row sees nothing.
    """
    keys, values, value_bytes = cached
    start, limit, step, last = reach
    seen = min(SPAN, last - start)
    tiles = -(-seen // LANES)
    if value_bytes == bytes_of(F16):
        span_scores(F16, rows, width, queries[0], queries[1], head_dim, keys, tiles, scores)
    else:
        span_scores(F32, rows, width, queries[0], queries[1], head_dim, keys, tiles, scores)
    for r in range(number_of(rows)):
        row_softmax(scores + SCORES_STRIDE * r, min(seen, limit + r * step - start), seen, sums + 8 * r)
    vectors = head_dim // LANES
    first = np.int64(0)
    while first < vectors:
        count = number_of(width) if vectors - first >= number_of(width) else 1
        if count > 1 and value_bytes == bytes_of(F16):
            span_values(F16, rows, width, scores, values, seen, head_dim, first, results)
        elif count > 1:
            span_values(F32, rows, width, scores, values, seen, head_dim, first, results)
        elif value_bytes == bytes_of(F16):
            span_values(F16, rows, ONE, scores, values, seen, head_dim, first, results)
        else:
            span_values(F32, rows, ONE, scores, values, seen, head_dim, first, results)
        first += count


@kernel
def row_softmax(scores, visible, seen, sums):
    """One row of a span: the weights of what it sees, zeros up to what the others see."""
    highest, total = MASKED, np.float32(0.0)
    if visible > 0:
        highest, total = span_softmax(scores, visible)
    for tile in range(max(0, -(-visible // LANES)), -(-seen // LANES)):
        store_floats(scores + 64 * tile, broadcast(0.0))
    store_float(sums, highest)
    store_float(sums + 4, total)


@kernel
def fold(running, running_sums, span, span_sums, head_dim, is_first):
    """Fold one row's span into what has been gathered: both become relative to the larger of the two maxima."""
    m, total = load_float(span_sums), load_float(span_sums + 4)
    if is_first:
        store_float(running_sums, m)
        store_float(running_sums + 4, total)
        for d in range(0, 4 * head_dim, 4 * LANES):
            store_floats(running + d, load_floats(span + d))
    elif total != 0:
        before, gathered = load_float(running_sums), load_float(running_sums + 4)
        both = broadcast(max(before, m))
        keep = exponential(subtract(broadcast(before), both))
        take = exponential(subtract(broadcast(m), both))
        for d in range(0, 4 * head_dim, 4 * LANES):
            taken = multiply(load_floats(span + d), take)
            store_floats(running + d, multiply_add(load_floats(running + d), keep, taken))
        store_float(running_sums, max(before, m))
        sums = multiply_add(broadcast(gathered), keep, multiply(broadcast(total), take))
        store_floats(span, sums)
        store_float(running_sums + 4, load_float(span))


@kernel
def finish(running, running_sums, head_dim, out):
    """out = o / l."""
    total = broadcast(load_float(running_sums + 4))
    for d in range(0, 4 * head_dim, 4 * LANES):
        store_floats(out + d, divide(load_floats(running + d), total))
