"""Arithmetic on vectors. No reassociation is ever allowed: the order of every sum is the one written down.

That is what makes a request's answer independent of its neighbours (docs/architecture.md).
"""

from llvmlite import ir
from numba import types

from puma.kernels.vectors import FLOATS, INTEGERS, LANES, call, constant, floats, instruction, integers, splat


@instruction(floats, floats, floats, floats)
def multiply_add(builder, x, y, z):
    """x * y + z, rounded once."""
    return call(builder, "llvm.fma.v16f32", FLOATS, [x, y, z])


@instruction(floats, floats, floats)
def multiply(builder, x, y):
    return builder.fmul(x, y)


@instruction(floats, floats, floats)
def add(builder, x, y):
    return builder.fadd(x, y)


@instruction(floats, floats, floats)
def subtract(builder, x, y):
    return builder.fsub(x, y)


@instruction(floats, floats, floats)
def divide(builder, x, y):
    return builder.fdiv(x, y)


@instruction(floats, floats, floats)
def maximum(builder, x, y):
    """Lane by lane; y where x is NaN or y is."""
    return builder.select(builder.fcmp_ordered(">", x, y), x, y)


@instruction(types.float32, floats, floats)
def largest_magnitude(builder, x, y):
    """Of 32 lanes; NaN if any is NaN, since without its sign a float orders like the integer of the same bits."""
    bits = [
        builder.and_(builder.bitcast(each, INTEGERS), ir.Constant(INTEGERS, [0x7FFFFFFF] * LANES)) for each in (x, y)
    ]
    larger = builder.select(builder.icmp_unsigned(">", *bits), *bits)
    return builder.bitcast(call(builder, "llvm.vector.reduce.umax.v16i32", ir.IntType(32), [larger]), ir.FloatType())


@instruction(integers, floats)
def round_to_integers(builder, x):
    """To the nearest, halves to even."""
    return builder.fptosi(call(builder, "llvm.nearbyint.v16f32", FLOATS, [x]), INTEGERS)


@instruction(floats, integers)
def to_floats(builder, x):
    return builder.sitofp(x, FLOATS)


@instruction(integers, integers, types.int32)
def smaller_integers(builder, x, bound):
    """Lane by lane, x or the bound."""
    bounds = splat(builder, bound, INTEGERS)
    return builder.select(builder.icmp_signed("<", x, bounds), x, bounds)


@instruction(integers, integers, integers)
def add_integers(builder, x, y):
    return builder.add(x, y)


@instruction(types.int32, integers)
def sum_integers(builder, x):
    return call(builder, "llvm.vector.reduce.add.v16i32", ir.IntType(32), [x])


@instruction(types.float32, floats)
def sum_lanes(builder, x):
    """Halves added to halves, four times: a fixed order."""
    lanes = LANES
    while lanes > 1:
        lanes //= 2
        empty = ir.Constant(x.type, ir.Undefined)
        low, high = (
            builder.shuffle_vector(x, empty, ir.Constant(ir.VectorType(ir.IntType(32), lanes), list(half)))
            for half in (range(lanes), range(lanes, 2 * lanes))
        )
        x = builder.fadd(low, high)
    return builder.extract_element(x, ir.Constant(ir.IntType(32), 0))


@instruction(types.float32, floats)
def largest_lane(builder, x):
    return call(builder, "llvm.vector.reduce.fmax.v16f32", ir.FloatType(), [x])


@instruction(floats, floats, types.int32, types.float32)
def keep_first(builder, x, count, otherwise):
    """Lanes 0 to count - 1 of x; `otherwise` in the rest."""
    lane_numbers = ir.Constant(INTEGERS, list(range(LANES)))
    kept = builder.icmp_signed("<", lane_numbers, splat(builder, count, INTEGERS))
    return builder.select(kept, x, splat(builder, otherwise, FLOATS))


LOG2_E = 1.4426950408889634
LN2_HIGH, LN2_LOW = 0.693359375, -2.12194440e-4
"""ln 2 in two parts, so that n * ln 2 is subtracted without losing bits (Cody and Waite)."""

EXP_COEFFICIENTS = (
    1.9875691500e-4,
    1.3981999507e-3,
    8.3334519073e-3,
    4.1665795894e-2,
    1.6666665459e-1,
    5.0000001201e-1,
)
"""The Cephes library's minimax polynomial for (exp(r) - 1 - r) / r**2 on |r| <= ln(2) / 2, highest power first."""


@instruction(floats, floats)
def exponential(builder, x):
    """exp(x) for x <= 88; below -87 it stays at exp(-87), which is as good as zero here. Error below 2 ulp."""

    def fused(a, b, c):
        return call(builder, "llvm.fma.v16f32", FLOATS, [a, b, c])

    # Comparisons that are false for NaN: it passes through, so that a broken weight shows in the logits.
    x = builder.select(builder.fcmp_ordered("<", x, constant(-87.0)), constant(-87.0), x)
    x = builder.select(builder.fcmp_ordered(">", x, constant(88.0)), constant(88.0), x)
    power = call(builder, "llvm.nearbyint.v16f32", FLOATS, [builder.fmul(x, constant(LOG2_E))])
    rest = fused(power, constant(-LN2_LOW), fused(power, constant(-LN2_HIGH), x))
    polynomial = constant(EXP_COEFFICIENTS[0])
    for coefficient in EXP_COEFFICIENTS[1:]:
        polynomial = fused(polynomial, rest, constant(coefficient))
    mantissa = builder.fadd(fused(polynomial, builder.fmul(rest, rest), rest), constant(1.0))
    exponent = builder.add(builder.fptosi(power, INTEGERS), ir.Constant(INTEGERS, [127] * LANES))
    scale = builder.bitcast(builder.shl(exponent, ir.Constant(INTEGERS, [23] * LANES)), FLOATS)
    return builder.fmul(mantissa, scale)
