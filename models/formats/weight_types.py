"""How GGML stores weights: each type's number, and the size of its blocks.

A tensor's contiguous dimension is cut into blocks of `block_size` elements, each `block_bytes` bytes.
Numbers and sizes are those of `enum ggml_type` and the block structs in ggml-common.h.
"""

from enum import IntEnum


class WeightType(IntEnum):
    """A GGML type: value, elements per block, bytes per block."""

    block_size: int
    block_bytes: int

    def __new__(cls, number: int, block_size: int, block_bytes: int) -> "WeightType":
        member = int.__new__(cls, number)
        member._value_ = number
        member.block_size = block_size
        member.block_bytes = block_bytes
        return member

    F32 = 0, 1, 4
    F16 = 1, 1, 2
    Q4_0 = 2, 32, 18
    Q4_1 = 3, 32, 20
    Q5_0 = 6, 32, 22
    Q5_1 = 7, 32, 24
    Q8_0 = 8, 32, 34
    Q8_1 = 9, 32, 40
    Q2_K = 10, 256, 84
    Q3_K = 11, 256, 110
    Q4_K = 12, 256, 144
    Q5_K = 13, 256, 176
    Q6_K = 14, 256, 210
    Q8_K = 15, 256, 292
    IQ2_XXS = 16, 256, 66
    IQ2_XS = 17, 256, 74
    IQ3_XXS = 18, 256, 98
    IQ1_S = 19, 256, 50
    IQ4_NL = 20, 32, 18
    IQ3_S = 21, 256, 110
    IQ2_S = 22, 256, 82
    IQ4_XS = 23, 256, 136
    I8 = 24, 1, 1
    I16 = 25, 1, 2
    I32 = 26, 1, 4
    I64 = 27, 1, 8
    F64 = 28, 1, 8
    IQ1_M = 29, 256, 56
    BF16 = 30, 1, 2
    TQ1_0 = 34, 256, 54
    TQ2_0 = 35, 256, 66
    MXFP4 = 39, 32, 17
    NVFP4 = 40, 64, 36
    Q1_0 = 41, 128, 18


REMOVED = {
    4: "Q4_2",
    5: "Q4_3",
    31: "Q4_0_4_4",
    32: "Q4_0_4_8",
    33: "Q4_0_8_8",
    36: "IQ4_NL_4_4",
    37: "IQ4_NL_4_8",
    38: "IQ4_NL_8_8",
}
"""Numbers that GGML once gave and took back; no current file holds them."""

SUPPORTED = (
    WeightType.F32,
    WeightType.F16,
    WeightType.BF16,
    WeightType.Q8_0,
    WeightType.Q4_0,
    WeightType.Q4_1,
)
"""Types that can be computed with."""


def names(types: tuple[WeightType, ...]) -> str:
    """Names for a message: "F32, F16"."""
    return ", ".join(weight_type.name for weight_type in types)
