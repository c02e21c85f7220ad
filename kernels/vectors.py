"""SIMD vectors as values of compiled code: sixteen float32 or int32 lanes, and how they are loaded and stored.

A vector is a Numba type whose data model is an LLVM vector; LLVM turns sixteen lanes into one, two or four registers
of the machine. Addresses are plain int64; nothing checks them, so every kernel is compared with a NumPy twin.
"""

import inspect
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, register_model

LANES = 16


class VectorType(types.Type):
    """`lanes` values of one element type: "f32" or "i32"."""

    def __init__(self, element: str, lanes: int = LANES) -> None:
        self.element, self.lanes = element, lanes
        super().__init__(name=f"vector<{lanes}x{element}>")


ELEMENTS = {
    "f32": ir.FloatType(),
    "f16": ir.HalfType(),
    "i32": ir.IntType(32),
    "i16": ir.IntType(16),
    "i8": ir.IntType(8),
}


def llvm_vector(element: str, lanes: int = LANES) -> ir.VectorType:
    return ir.VectorType(ELEMENTS[element], lanes)


@register_model(VectorType)
class VectorModel(models.PrimitiveModel):
    def __init__(self, manager: Any, fe_type: VectorType) -> None:
        super().__init__(manager, fe_type, llvm_vector(fe_type.element, fe_type.lanes))


floats = VectorType("f32")
integers = VectorType("i32")
address = types.int64

FLOATS = llvm_vector("f32")
INTEGERS = llvm_vector("i32")
BYTES = llvm_vector("i8", 4 * LANES)
POINTER = ir.PointerType()


def instruction(result: types.Type, *arguments: types.Type) -> Callable[..., Any]:
    """Decorate an emitter (builder, *values) -> value: it becomes a function that compiled code can call."""

    def decorate(emit: Callable[..., Any]) -> Any:
        def typing(context: Any, *given: types.Type) -> Any:
            def generate(target: Any, builder: ir.IRBuilder, signature: Any, values: tuple[Any, ...]) -> Any:
                made = emit(builder, *values)
                return target.get_dummy_value() if result is types.void else made

            return result(*arguments), generate

        typing.__name__ = typing.__qualname__ = emit.__name__
        typing.__module__ = emit.__module__
        typing.__doc__ = emit.__doc__
        # Numba matches the call's arguments with these names.
        typing.__signature__ = inspect.signature(emit)  # pyright: ignore[reportFunctionMemberAccess]
        return intrinsic(typing)

    return decorate


def call(builder: ir.IRBuilder, name: str, result: ir.Type, values: list[Any], **options: Any) -> Any:
    """Call an LLVM intrinsic by name."""
    function_type = ir.FunctionType(result, [value.type for value in values])
    return builder.call(cgutils.get_or_insert_function(builder.module, function_type, name), values, **options)


def load_from(builder: ir.IRBuilder, where: Any, kind: ir.Type) -> Any:
    """Load with no assumption about alignment."""
    loaded = builder.load(builder.inttoptr(where, POINTER), typ=kind)
    loaded.align = 1
    return loaded


def store_to(builder: ir.IRBuilder, where: Any, value: Any) -> None:
    builder.store(value, builder.inttoptr(where, POINTER)).align = 1


def splat(builder: ir.IRBuilder, value: Any, kind: ir.VectorType) -> Any:
    """A vector whose lanes all hold `value`."""
    empty = ir.Constant(kind, ir.Undefined)
    first = builder.insert_element(empty, value, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(
        first, empty, ir.Constant(ir.VectorType(ir.IntType(32), kind.count), [0] * kind.count)
    )


def constant(value: float) -> ir.Constant:
    return ir.Constant(FLOATS, [value] * LANES)


@instruction(floats, address)
def load_floats(builder, where):
    """Sixteen float32."""
    return load_from(builder, where, FLOATS)


@instruction(floats, address)
def load_halves(builder, where):
    """Sixteen float16, widened."""
    return builder.fpext(load_from(builder, where, llvm_vector("f16")), FLOATS)


@instruction(floats, types.float32)
def broadcast(builder, value):
    return splat(builder, value, FLOATS)


@instruction(types.void, address, floats)
def store_floats(builder, where, value):
    store_to(builder, where, value)


@instruction(types.void, address, integers)
def store_bytes(builder, where, value):
    """The low byte of each of sixteen int32."""
    store_to(builder, where, builder.trunc(value, llvm_vector("i8")))


@instruction(types.float32, address)
def load_float(builder, where):
    return load_from(builder, where, ir.FloatType())


@instruction(types.void, address, types.float32)
def store_float(builder, where, value):
    store_to(builder, where, value)


@instruction(types.float32, address)
def load_half(builder, where):
    return builder.fpext(load_from(builder, where, ir.HalfType()), ir.FloatType())


@instruction(types.int32, address)
def load_int32(builder, where):
    return load_from(builder, where, ir.IntType(32))


@instruction(types.void, address, types.int32)
def store_int32(builder, where, value):
    store_to(builder, where, value)


@instruction(types.int64, address)
def load_int64(builder, where):
    return load_from(builder, where, ir.IntType(64))


@instruction(types.void, address, types.int64)
def store_int64(builder, where, value):
    store_to(builder, where, value)


@instruction(types.void, address)
def prefetch(builder, where):
    """Ask for a cache line that will be read soon."""
    flags = [ir.Constant(ir.IntType(32), flag) for flag in (0, 3, 1)]
    call(builder, "llvm.prefetch.p0", ir.VoidType(), [builder.inttoptr(where, POINTER), *flags])


@instruction(types.void)
def never_inline(builder):
    """Keep the function this stands in out of its callers, so that it is compiled once."""
    builder.function.attributes.add("noinline")


@instruction(types.int64, address)
def load_byte(builder, where):
    """One unsigned byte."""
    return builder.zext(load_from(builder, where, ir.IntType(8)), ir.IntType(64))


@instruction(types.float32, types.int64)
def float_of_bits(builder, bits):
    """The float32 whose bits are the lower half of an integer."""
    return builder.bitcast(builder.trunc(bits, ir.IntType(32)), ir.FloatType())


@instruction(types.CPointer(types.int64), address)
def words(builder, where):
    """An address as a pointer to int64, for numba.carray: an array without an owner costs no reference counting."""
    return builder.inttoptr(where, ir.IntType(64).as_pointer())
