"""Any CPU: widened to int32 by LLVM, which chooses the instructions of the machine at hand."""

from llvmlite import ir

from puma.kernels.vectors import BYTES, INTEGERS, LANES


def dot(builder, total, unsigned, signed, wide):
    wide_type = ir.VectorType(ir.IntType(32), 4 * LANES)
    products = builder.mul(
        builder.zext(builder.bitcast(unsigned, BYTES), wide_type),
        builder.sext(builder.bitcast(signed, BYTES), wide_type),
    )
    empty = ir.Constant(wide_type, ir.Undefined)
    for j in range(4):
        every_fourth = ir.Constant(INTEGERS, list(range(j, 4 * LANES, 4)))
        total = builder.add(total, builder.shuffle_vector(products, empty, every_fourth))
    return total
