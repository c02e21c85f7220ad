"""One file per instruction set: how sixteen sums of four byte products are formed on it.

Each file has one function, `dot(builder, total, unsigned, signed, wide)`: int32 lanes, with
total[i] + sum over j < 4 of unsigned[4 * i + j] * signed[4 * i + j]. The result is exact, so every set yields the
same bits. `wide` says that unsigned bytes may exceed 127.
"""

from importlib import import_module

from puma.kernels import cpu

dot = import_module(f"puma.kernels.instructions.{cpu.LOWERING}").dot
