"""Attention over a ragged batch: runs of one token (decode) and runs of many (prefill), divided among the threads.

A decode run is divided by span and key-value head, so that one long sequence keeps every thread busy; its spans are
folded in order afterwards. A prefill run is divided by head and by tiles of sixteen tokens.
"""

import numpy as np

from puma.kernels.attention import SCORES_STRIDE, SPAN, attend_span, finish, fold, span_addresses
from puma.kernels.compile import kernel
from puma.kernels.program import FLOATS, STRIDE
from puma.kernels.static import FOUR, ONE, SIXTEEN, THREE, TWO, number_of
from puma.kernels.step import (
    RUN_COUNT,
    RUN_FIELDS,
    RUN_POSITION,
    RUN_ROW,
    RUN_SLOT,
    RUN_TOTAL,
    RUNS,
    TABLE_STRIDE,
    TABLES,
)
from puma.kernels.vectors import LANES, load_int32, never_inline

HEADS, KV_HEADS, HEAD_DIM, TILES_PER_BLOCK, VALUE_BYTES = range(5)
"""Fields of the shape table, int64; VALUE_BYTES says the element of the KV cache: 2 is float16, 4 float32."""
SHAPE_FIELDS = 5

ADDRESSES_BYTES = 64
KEYS_AT, VALUES_AT, SCORES_AT = 0, ADDRESSES_BYTES, 2 * ADDRESSES_BYTES
SPAN_SUMS_AT = SCORES_AT + 16 * SCORES_STRIDE
RUNNING_SUMS_AT = SPAN_SUMS_AT + 128
SPAN_AT = RUNNING_SUMS_AT + 128
"""Where a thread keeps things in its scratch; the running sums o follow the span's, 16 heads further."""


def scratch_bytes(head_dim: int) -> int:
    """Bytes of scratch that each thread needs."""
    return SPAN_AT + 2 * 16 * 4 * head_dim


def partial_bytes(heads: int, head_dim: int) -> int:
    """Bytes of one span's result for all heads of one row: o, then (m, l)."""
    return heads * 4 * (head_dim + 2)


@kernel
def run_field(step, run, field):
    """One number of a run (see step.py)."""
    return np.int64(load_int32(step[RUNS] + 4 * (RUN_FIELDS * run + field)))


@kernel
def attend_heads(shape, query, keys, values, table, position, span, kv_head, partial, scratch):
    """The heads of one row that share a key-value head, over one span; results go to the row's partial."""
    head_dim, heads, value_bytes = shape[HEAD_DIM], shape[HEADS], shape[VALUE_BYTES]
    group = heads // shape[KV_HEADS]
    load_span(shape, keys, values, table, position + 1, span, kv_head, scratch)
    head, last = kv_head * group, (kv_head + 1) * group
    while head < last:
        left = last - head
        if left >= number_of(FOUR):
            attend_group(FOUR, head_dim, heads, value_bytes, query, position, span, head, partial, scratch)
            head += number_of(FOUR)
        elif left == number_of(THREE):
            attend_group(THREE, head_dim, heads, value_bytes, query, position, span, head, partial, scratch)
            head += number_of(THREE)
        elif left == number_of(TWO):
            attend_group(TWO, head_dim, heads, value_bytes, query, position, span, head, partial, scratch)
            head += number_of(TWO)
        else:
            attend_group(ONE, head_dim, heads, value_bytes, query, position, span, head, partial, scratch)
            head += number_of(ONE)


@kernel
def attend_group(rows, head_dim, heads, value_bytes, query, position, span, head, partial, scratch):
    never_inline()
    own = 4 * head_dim * head
    attend_span(
        rows,
        FOUR,
        head_dim,
        (query + own, 4 * head_dim),
        (scratch + KEYS_AT, scratch + VALUES_AT, value_bytes),
        (span * SPAN, position + 1, 0, position + 1),
        scratch + SCORES_AT,
        (partial + own, 4 * head_dim),
        partial + 4 * head_dim * heads + 8 * head,
    )


@kernel
def load_span(shape, keys, values, table, limit, span, kv_head, scratch):
    """Put the addresses of one head's key and value tiles of a span into scratch."""
    head_bytes = shape[HEAD_DIM] * shape[VALUE_BYTES] * LANES
    tile_bytes, own = shape[KV_HEADS] * head_bytes, kv_head * head_bytes
    first = span * (SPAN // LANES)
    count = -(-limit // LANES) - first
    span_addresses(keys + own, table, shape[TILES_PER_BLOCK], tile_bytes, first, count, scratch + KEYS_AT)
    span_addresses(values + own, table, shape[TILES_PER_BLOCK], tile_bytes, first, count, scratch + VALUES_AT)


@kernel
def attend_tile(shape, source, row, keys, values, table, position, count, head, out, scratch):
    """Up to sixteen consecutive tokens of one head, over all the spans they see."""
    never_inline()
    head_dim = shape[HEAD_DIM]
    span_out, running = scratch + SPAN_AT, scratch + SPAN_AT + 64 * head_dim
    last_limit = position + count
    for span in range(-(-last_limit // SPAN)):
        load_span(shape, keys, values, table, last_limit, span, head // (shape[HEADS] // shape[KV_HEADS]), scratch)
        attend_span(
            SIXTEEN,
            ONE,
            head_dim,
            (source[FLOATS] + row * source[STRIDE] + 4 * head_dim * head, source[STRIDE]),
            (scratch + KEYS_AT, scratch + VALUES_AT, shape[VALUE_BYTES]),
            (span * SPAN, position + 1, 1, last_limit),
            scratch + SCORES_AT,
            (span_out, 4 * head_dim),
            scratch + SPAN_SUMS_AT,
        )
        for r in range(count):
            fold(
                running + 4 * head_dim * r,
                scratch + RUNNING_SUMS_AT + 8 * r,
                span_out + 4 * head_dim * r,
                scratch + SPAN_SUMS_AT + 8 * r,
                head_dim,
                span == 0,
            )
    for r in range(count):
        target = out[FLOATS] + (row + r) * out[STRIDE] + 4 * head_dim * head
        finish(running + 4 * head_dim * r, scratch + RUNNING_SUMS_AT + 8 * r, head_dim, target)


@kernel
def attend_batch(thread, threads, step, shape, source, keys, values, partials, out, scratch):
    """All prefill runs, and the spans of all decode runs. Returns the number of spans; fold_batch does the rest."""
    runs = step[RUN_TOTAL]
    heads, kv_heads, head_dim = shape[HEADS], shape[KV_HEADS], shape[HEAD_DIM]
    spans = count_spans(step, runs)
    first, last = spans * kv_heads * thread // threads, spans * kv_heads * (thread + 1) // threads
    item, tile_item = 0, 0
    for run in range(runs):
        count, position = run_field(step, run, RUN_COUNT), run_field(step, run, RUN_POSITION)
        row = run_field(step, run, RUN_ROW)
        table = step[TABLES] + step[TABLE_STRIDE] * run_field(step, run, RUN_SLOT)
        if count == 1:
            items = (position // SPAN + 1) * kv_heads
            for i in range(max(first, item), min(last, item + items)):
                span, kv_head = (i - item) // kv_heads, (i - item) % kv_heads
                partial = partials + (i // kv_heads) * (heads * 4 * (head_dim + 2))
                query = source[FLOATS] + row * source[STRIDE]
                attend_heads(shape, query, keys, values, table, position, span, kv_head, partial, scratch)
            item += items
            continue
        for start in range(0, count, LANES):
            for head in range(heads):
                if tile_item % threads == thread:
                    attend_tile(
                        shape,
                        source,
                        row + start,
                        keys,
                        values,
                        table,
                        position + start,
                        min(LANES, count - start),
                        head,
                        out,
                        scratch,
                    )
                tile_item += 1
    return spans


@kernel
def count_spans(step, runs):
    """Spans of all decode runs together."""
    spans = 0
    for run in range(runs):
        if run_field(step, run, RUN_COUNT) == 1:
            spans += run_field(step, run, RUN_POSITION) // SPAN + 1
    return spans


@kernel
def fold_batch(thread, threads, step, shape, partials, out):
    """Fold the spans of the decode runs, in order, and divide: each thread does every threads-th head."""
    runs = step[RUN_TOTAL]
    heads, head_dim = shape[HEADS], shape[HEAD_DIM]
    size = heads * 4 * (head_dim + 2)
    partial, item = partials, 0
    for run in range(runs):
        if run_field(step, run, RUN_COUNT) != 1:
            continue
        spans = run_field(step, run, RUN_POSITION) // SPAN + 1
        row = run_field(step, run, RUN_ROW)
        for head in range(heads):
            if item % threads == thread:
                o, sums = partial + 4 * head_dim * head, partial + 4 * head_dim * heads + 8 * head
                for span in range(1, spans):
                    fold(o, sums, o + size * span, sums + size * span, head_dim, False)
                finish(o, sums, head_dim, out[FLOATS] + row * out[STRIDE] + 4 * head_dim * head)
            item += 1
        partial += size * spans
