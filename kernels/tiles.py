"""Tiles: several vectors held in registers at once, one per activation row (and output group).

A tile is a tuple of vectors. Its size is known when a kernel is compiled, because the kernel is given a Static, whose
value is part of its type; so one kernel's source serves every tile size, and each is unrolled.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from puma.kernels.vectors import (
    FLOATS,
    INTEGERS,
    LANES,
    address,
    call,
    floats,
    llvm_vector,
    load_from,
    splat,
    store_to,
)


def unpack(builder: ir.IRBuilder, tile: Any, size: int) -> list[Any]:
    return [builder.extract_value(tile, index) for index in range(size)]


def pack(builder: ir.IRBuilder, vectors: list[Any]) -> Any:
    return cgutils.pack_array(builder, vectors)


def row_address(builder: ir.IRBuilder, base: Any, stride: Any, row: int, offset: int = 0) -> Any:
    at = builder.add(base, builder.mul(stride, ir.Constant(ir.IntType(64), row)))
    return builder.add(at, ir.Constant(ir.IntType(64), offset))


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
            builder,
            [widen(builder, row_address(builder, base, step, c), element.value) for c in range(width.value)],
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
def store_narrowed(context, element, where, value):
    """Store a float32, or a vector of them, as F32 or rounded to F16."""

    def generate(target, builder, signature, values):
        number = values[2]
        if element.value == "f16":
            number = builder.fptrunc(number, llvm_vector("f16") if value == floats else ir.HalfType())
        store_to(builder, values[1], number)
        return target.get_dummy_value()

    return types.void(element, address, value), generate


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
