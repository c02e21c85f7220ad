"""Tiles: several vectors held in registers at once, one per activation row (and output group).

A tile is a tuple of vectors. Its size is known when a kernel is compiled, because the kernel is given a Static, whose
value is part of its type; so one kernel's source serves every tile size, and each is unrolled.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.imputils import lower_constant
from numba.extending import intrinsic, models, register_model, typeof_impl

from puma.kernels.instructions import dot
from puma.kernels.vectors import (
    FLOATS,
    INTEGERS,
    LANES,
    address,
    call,
    floats,
    integers,
    llvm_vector,
    load_from,
    splat,
    store_to,
)


class Static:
    """A value that is part of its type, so that kernels are compiled anew for each."""

    def __init__(self, value: int | str) -> None:
        self.value = value


class StaticType(types.Opaque):
    def __init__(self, value: int | str) -> None:
        self.value = value
        super().__init__(name=f"static<{value}>")


@typeof_impl.register(Static)
def typeof_static(static: Static, context: Any) -> StaticType:
    return StaticType(static.value)


register_model(StaticType)(models.OpaqueModel)


@lower_constant(StaticType)
def lower_static(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    return context.get_dummy_value()


ONE, TWO, THREE, FOUR, SIXTEEN = (Static(number) for number in (1, 2, 3, 4, 16))
F32, F16, BF16 = (Static(element) for element in ("f32", "f16", "bf16"))


def unpack(builder: ir.IRBuilder, tile: Any, size: int) -> list[Any]:
    return [builder.extract_value(tile, index) for index in range(size)]


def pack(builder: ir.IRBuilder, vectors: list[Any]) -> Any:
    return cgutils.pack_array(builder, vectors)


def row_address(builder: ir.IRBuilder, base: Any, stride: Any, row: int, offset: int = 0) -> Any:
    at = builder.add(base, builder.mul(stride, ir.Constant(ir.IntType(64), row)))
    return builder.add(at, ir.Constant(ir.IntType(64), offset))


@intrinsic
def number_of(context, static):
    """A static number as a constant."""

    def generate(target, builder, signature, values):
        return ir.Constant(ir.IntType(64), static.value)

    return types.int64(static), generate


@intrinsic
def zero_tile(context, rows, width):
    """rows x width vectors of zeros, row by row."""
    size = rows.value * width.value

    def generate(target, builder, signature, values):
        return pack(builder, [ir.Constant(FLOATS, [0.0] * LANES)] * size)

    return types.UniTuple(floats, size)(rows, width), generate


@intrinsic
def outer_multiply_add(context, tile, columns, where, stride):
    """tile[r, c] + columns[c] * f, with f the float32 at where + r * stride: the step of every float product."""
    width = columns.count
    rows = tile.count // width

    def generate(target, builder, signature, values):
        tile_value, columns_value, base, step = values
        sums, factors = unpack(builder, tile_value, rows * width), unpack(builder, columns_value, width)
        made = []
        for r in range(rows):
            f = splat(builder, load_from(builder, row_address(builder, base, step, r), ir.FloatType()), FLOATS)
            made += [
                call(builder, "llvm.fma.v16f32", FLOATS, [factors[c], f, sums[r * width + c]]) for c in range(width)
            ]
        return pack(builder, made)

    return tile(tile, columns, address, address), generate


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


def widen(builder: ir.IRBuilder, where: Any, element: str) -> Any:
    """Sixteen values of "f32", "f16" or "bf16" as float32."""
    if element == "f32":
        return load_from(builder, where, FLOATS)
    if element == "f16":
        return builder.fpext(load_from(builder, where, llvm_vector("f16")), FLOATS)
    # A bfloat16 is the upper half of a float32.
    wide = builder.zext(load_from(builder, where, llvm_vector("i16")), INTEGERS)
    return builder.bitcast(builder.shl(wide, ir.Constant(INTEGERS, [16] * LANES)), FLOATS)


@intrinsic
def load_columns(context, element, width, where, stride):
    """`width` vectors of sixteen elements each, `stride` bytes apart, widened to float32."""

    def generate(target, builder, signature, values):
        base, step = values[2:]
        return pack(
            builder, [widen(builder, row_address(builder, base, step, c), element.value) for c in range(width.value)]
        )

    return types.UniTuple(floats, width.value)(element, width, address, address), generate


@intrinsic
def load_addresses(context, width, where):
    """`width` consecutive int64 from memory."""

    def generate(target, builder, signature, values):
        eight = ir.Constant(ir.IntType(64), 8)
        return pack(
            builder,
            [load_from(builder, row_address(builder, values[1], eight, c), ir.IntType(64)) for c in range(width.value)],
        )

    return types.UniTuple(types.int64, width.value)(width, address), generate


@intrinsic
def load_columns_at(context, element, addresses, offset):
    """One vector of sixteen elements from each address, `offset` bytes further, widened to float32."""

    def generate(target, builder, signature, values):
        bases = unpack(builder, values[1], addresses.count)
        return pack(builder, [widen(builder, builder.add(base, values[2]), element.value) for base in bases])

    return types.UniTuple(floats, addresses.count)(element, addresses, address), generate


@intrinsic
def load_byte_groups(context, where):
    """512 bytes as eight groups of 64."""

    def generate(target, builder, signature, values):
        stride = ir.Constant(ir.IntType(64), 64)
        groups = [load_from(builder, row_address(builder, values[0], stride, j), INTEGERS) for j in range(8)]
        return pack(builder, groups)

    return types.UniTuple(integers, 8)(address), generate


@intrinsic
def store_tile(context, tile, width, where, row_stride, column_stride):
    """Store tile[r, c] at where + r * row_stride + c * column_stride."""

    def generate(target, builder, signature, values):
        tile_value, _, base, row_step, column_step = values
        for index, vector in enumerate(unpack(builder, tile_value, tile.count)):
            row, column = divmod(index, width.value)
            at = row_address(builder, row_address(builder, base, row_step, row), column_step, column)
            store_to(builder, at, vector)
        return target.get_dummy_value()

    return types.void(tile, width, address, address, address), generate


@intrinsic
def add_to_tile(context, tile, width, where, row_stride, column_stride):
    """tile[r, c] + what is stored at where + r * row_stride + c * column_stride."""

    def generate(target, builder, signature, values):
        tile_value, _, base, row_step, column_step = values
        made = []
        for index, vector in enumerate(unpack(builder, tile_value, tile.count)):
            row, column = divmod(index, width.value)
            at = row_address(builder, row_address(builder, base, row_step, row), column_step, column)
            made.append(builder.fadd(vector, load_from(builder, at, FLOATS)))
        return pack(builder, made)

    return tile(tile, width, address, address, address), generate
