"""AVX-512 VNNI: one instruction, 64 byte products."""

from puma.kernels.vectors import BYTES, INTEGERS, call


def dot(builder, total, unsigned, signed, wide):
    factors = [builder.bitcast(factor, BYTES) for factor in (unsigned, signed)]
    return call(builder, "llvm.x86.avx512.vpdpbusd.512", INTEGERS, [total, *factors])
