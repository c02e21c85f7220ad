"""Static values are part of their type: a kernel is compiled anew for each, and its loops over them are unrolled."""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core.imputils import lower_constant
from numba.extending import intrinsic, models, register_model, typeof_impl


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


@intrinsic
def number_of(context, static):
    """A static number as a constant."""

    def generate(target, builder, signature, values):
        return ir.Constant(ir.IntType(64), static.value)

    return types.int64(static), generate


ELEMENT_BYTES = {"f32": 4, "f16": 2, "bf16": 2}


@intrinsic
def bytes_of(context, element):
    """The size of a static element as a constant."""

    def generate(target, builder, signature, values):
        return ir.Constant(ir.IntType(64), ELEMENT_BYTES[element.value])

    return types.int64(element), generate
