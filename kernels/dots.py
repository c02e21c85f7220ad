"""Integer products: sixteen outputs' weight bytes with the activation bytes of several rows, exact in any order.

Totals are a tuple of int32 vectors, one per activation row; see tiles.py for how such tuples work.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from puma.kernels.instructions import dot
from puma.kernels.tiles import pack, row_address, unpack
from puma.kernels.vectors import FLOATS, INTEGERS, LANES, address, call, floats, integers, load_from, splat


@intrinsic
def zero_totals(context, rows):
    """One vector of int32 zeros per row."""

    def generate(target, builder, signature, values):
        return pack(builder, [ir.Constant(INTEGERS, [0] * LANES)] * rows.value)

    return types.UniTuple(integers, rows.value)(rows), generate


@intrinsic
def load_totals(context, rows, where, stride):
    """Per row r the int32 at where + r * stride, in all lanes."""

    def generate(target, builder, signature, values):
        _, base, step = values
        starts = [load_from(builder, row_address(builder, base, step, r), ir.IntType(32)) for r in range(rows.value)]
        return pack(builder, [splat(builder, start, INTEGERS) for start in starts])

    return types.UniTuple(integers, rows.value)(rows, address, address), generate


def dot_tile(wide: bool) -> Any:
    @intrinsic
    def dot_rows(context, totals, groups, where, stride):
        """totals[r] + products of the unsigned weight bytes in `groups` with row r's signed activation bytes.

        Lane i of a group holds four consecutive weights of output i; group g meets the four activation bytes at
        where + r * stride + 4 * g.
        """

        def generate(target, builder, signature, values):
            totals_value, groups_value, base, step = values
            weights = unpack(builder, groups_value, groups.count)
            made = []
            for r, total in enumerate(unpack(builder, totals_value, totals.count)):
                for g, weight in enumerate(weights):
                    at = row_address(builder, base, step, r, 4 * g)
                    four = splat(builder, load_from(builder, at, ir.IntType(32)), INTEGERS)
                    total = dot(builder, total, weight, four, wide)
                made.append(total)
            return pack(builder, made)

        return totals(totals, groups, address, address), generate

    return dot_rows


dot_nibbles = dot_tile(wide=False)
"""For weight bytes up to 127."""

dot_bytes = dot_tile(wide=True)
"""For weight bytes up to 255."""


@intrinsic
def scale_and_add(context, tile, totals, scale, where, stride):
    """tile[r] + float(totals[r]) * (scale * f), with f the float32 at where + r * stride."""

    def generate(target, builder, signature, values):
        tile_value, totals_value, scale_value, base, step = values
        sums, dots = unpack(builder, tile_value, tile.count), unpack(builder, totals_value, tile.count)
        made = []
        for r in range(tile.count):
            f = splat(builder, load_from(builder, row_address(builder, base, step, r), ir.FloatType()), FLOATS)
            factor = builder.fmul(scale_value, f)
            made.append(call(builder, "llvm.fma.v16f32", FLOATS, [builder.sitofp(dots[r], FLOATS), factor, sums[r]]))
        return pack(builder, made)

    return tile(tile, totals, floats, address, address), generate


@intrinsic
def load_nibbles(context, where):
    """256 bytes as eight groups of 64 values 0 to 15: low nibbles of four vectors, then their high nibbles."""

    def generate(target, builder, signature, values):
        mask, shift = (ir.Constant(INTEGERS, [value] * LANES) for value in (0x0F0F0F0F, 4))
        packed = [
            load_from(builder, row_address(builder, values[0], ir.Constant(ir.IntType(64), 64), j), INTEGERS)
            for j in range(4)
        ]
        low = [builder.and_(vector, mask) for vector in packed]
        high = [builder.and_(builder.lshr(vector, shift), mask) for vector in packed]
        return pack(builder, low + high)

    return types.UniTuple(integers, 8)(address), generate


@intrinsic
def load_byte_groups(context, where):
    """512 bytes as eight groups of 64."""

    def generate(target, builder, signature, values):
        stride = ir.Constant(ir.IntType(64), 64)
        groups = [load_from(builder, row_address(builder, values[0], stride, j), INTEGERS) for j in range(8)]
        return pack(builder, groups)

    return types.UniTuple(integers, 8)(address), generate
