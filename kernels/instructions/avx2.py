"""AVX2: byte pairs to int16, then int16 pairs to int32, in two halves.

The first step saturates at 32,767, so bytes above 127 are multiplied as two nibbles.
"""

from llvmlite import ir

from puma.kernels.vectors import BYTES, LANES, call, llvm_vector

HALF_BYTES = llvm_vector("i8", 2 * LANES)
HALF_SHORTS = llvm_vector("i16", LANES)
HALF_INTEGERS = llvm_vector("i32", LANES // 2)


def pick(builder, first, second, lanes):
    chosen = ir.Constant(ir.VectorType(ir.IntType(32), len(lanes)), list(lanes))
    return builder.shuffle_vector(first, second, chosen)


def pairs(builder, unsigned, signed):
    """Products of 32 bytes, neighbours added: sixteen int16."""
    return call(builder, "llvm.x86.avx2.pmadd.ub.sw", HALF_SHORTS, [unsigned, signed])


def quarters(builder, unsigned, signed, wide):
    """Products of 32 bytes, four neighbours added: eight int32."""
    if not wide:
        return call(
            builder,
            "llvm.x86.avx2.pmadd.wd",
            HALF_INTEGERS,
            [pairs(builder, unsigned, signed), ir.Constant(HALF_SHORTS, [1] * LANES)],
        )
    low = builder.and_(unsigned, ir.Constant(HALF_BYTES, [15] * 2 * LANES))
    high = builder.lshr(unsigned, ir.Constant(HALF_BYTES, [4] * 2 * LANES))
    weighted = [(low, 1), (high, 16)]
    sums = [
        call(
            builder,
            "llvm.x86.avx2.pmadd.wd",
            HALF_INTEGERS,
            [pairs(builder, nibbles, signed), ir.Constant(HALF_SHORTS, [weight] * LANES)],
        )
        for nibbles, weight in weighted
    ]
    return builder.add(*sums)


def dot(builder, total, unsigned, signed, wide):
    unsigned, signed = (builder.bitcast(factor, BYTES) for factor in (unsigned, signed))
    empty = ir.Constant(BYTES, ir.Undefined)
    halves = []
    for start in (0, 2 * LANES):
        lanes = range(start, start + 2 * LANES)
        half = [pick(builder, factor, empty, lanes) for factor in (unsigned, signed)]
        halves.append(quarters(builder, *half, wide))
    return builder.add(total, pick(builder, *halves, range(LANES)))
