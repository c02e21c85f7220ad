"""Integer products: sixteen outputs' weight bytes with the activation bytes of several rows, exact in any order.

Totals are a tuple of int32 vectors, one per activation row; see tiles.py for how such tuples work.
"""

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from puma.kernels.activations import REST, SHIFT
from puma.kernels.compile import kernel
from puma.kernels.instructions import dot
from puma.kernels.static import Static
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


@intrinsic
def times_16(context, totals):
    def generate(target, builder, signature, values):
        four = ir.Constant(INTEGERS, [4] * LANES)
        return pack(builder, [builder.shl(total, four) for total in unpack(builder, values[0], totals.count)])

    return totals(totals), generate


@intrinsic
def add_totals(context, first, second):
    def generate(target, builder, signature, values):
        left, right = (unpack(builder, value, first.count) for value in values)
        return pack(builder, [builder.add(x, y) for x, y in zip(left, right, strict=True)])

    return first(first, second), generate


@intrinsic
def shift_totals(context, totals, where, stride):
    """totals[r] shifted left by the int32 at where + r * stride."""

    def generate(target, builder, signature, values):
        totals_value, base, step = values
        made = []
        for r, total in enumerate(unpack(builder, totals_value, totals.count)):
            bits = load_from(builder, row_address(builder, base, step, r), ir.IntType(32))
            made.append(builder.shl(total, splat(builder, bits, INTEGERS)))
        return pack(builder, made)

    return totals(totals, address, address), generate


@intrinsic
def any_set(context, rows, where, stride):
    """Whether one of the int32 at where + r * stride is not 0."""

    def generate(target, builder, signature, values):
        _, base, step = values
        found = ir.Constant(ir.IntType(32), 0)
        for r in range(rows.value):
            word = load_from(builder, row_address(builder, base, step, r), ir.IntType(32))
            found = builder.or_(found, word)
        return builder.icmp_signed("!=", found, ir.Constant(ir.IntType(32), 0))

    return types.boolean(rows, address, address), generate


NIBBLES, BYTES = Static("nibbles"), Static("bytes")
"""Weight bytes up to 127, and up to 255."""


@intrinsic
def dot_rows(context, kind, totals, groups, where, stride):
    """totals[r] + products of the unsigned weight bytes in `groups` with row r's signed activation bytes.

    Lane i of a group holds four consecutive weights of output i; group g meets the four activation bytes at
    where + r * stride + 4 * g. `kind` is NIBBLES or BYTES.
    """

    def generate(target, builder, signature, values):
        _, totals_value, groups_value, base, step = values
        weights = unpack(builder, groups_value, groups.count)
        made = []
        for r, total in enumerate(unpack(builder, totals_value, totals.count)):
            for g, weight in enumerate(weights):
                at = row_address(builder, base, step, r, 4 * g)
                four = splat(builder, load_from(builder, at, ir.IntType(32)), INTEGERS)
                total = dot(builder, total, weight, four, kind.value == "bytes")
            made.append(total)
        return pack(builder, made)

    return totals(kind, totals, groups, address, address), generate


@kernel
def block_totals(kind, rows, start, groups, source, stride):
    """start[r] + sum over a block of weight * (q * 2**shift + rest), for the records at source + r * stride."""
    if any_set(rows, source + SHIFT, stride):
        rough = dot_rows(kind, zero_totals(rows), groups, source, stride)
        rough = shift_totals(rough, source + SHIFT, stride)
        return dot_rows(kind, add_totals(start, rough), groups, source + REST, stride)
    return dot_rows(kind, start, groups, source, stride)


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
