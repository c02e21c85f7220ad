"""The threads of a step: they meet at barriers inside compiled code, spin between steps, and park when idle.

Shared words, int64, each on a cache line of its own:

    JOB        number of the newest step
    ARRIVALS   threads that have come to a barrier, all barriers of all steps together
    BASE       arrivals before the newest step
    QUIT       not 0: helpers leave
    PARKED     one word per thread: not 0 while a helper is outside compiled code
"""

import platform

from llvmlite import ir
from numba import types

from puma.kernels.compile import kernel
from puma.kernels.vectors import POINTER, address, call, instruction

WORD = 8
LINE = 64
JOB, ARRIVALS, BASE, QUIT, PARKED = 0, LINE, 2 * LINE, 3 * LINE, 4 * LINE

SPINS_BEFORE_YIELD = 2000
"""Pauses (some 40 cycles each) after which a waiting thread offers its core to others."""

SPINS_BEFORE_PARKING = 20_000
"""Pauses after which a helper without work returns to Python and sleeps."""


def shared_bytes(threads: int) -> int:
    return PARKED + LINE * threads


@instruction(types.int64, address, types.int64)
def atomic_add(builder, where, value):
    """Add and return what was there before."""
    return builder.atomic_rmw("add", builder.inttoptr(where, POINTER), value, "seq_cst")


@instruction(types.int64, address)
def atomic_load(builder, where):
    return builder.load_atomic(builder.inttoptr(where, POINTER), "seq_cst", WORD, typ=ir.IntType(64))


@instruction(types.int64, address, types.int64)
def atomic_store(builder, where, value):
    """Store and return what was there before."""
    return builder.atomic_rmw("xchg", builder.inttoptr(where, POINTER), value, "seq_cst")


@instruction(types.void)
def pause(builder):
    """Tell the core that this is a waiting loop."""
    if platform.machine() in ("x86_64", "AMD64"):
        call(builder, "llvm.x86.sse2.pause", ir.VoidType(), [])
    elif platform.machine() in ("aarch64", "arm64"):
        call(builder, "llvm.aarch64.hint", ir.VoidType(), [ir.Constant(ir.IntType(32), 1)])


sched_yield = types.ExternalFunction("sched_yield", types.int32())


@kernel
def barrier(shared, threads, goal):
    """Wait for all threads. Takes and returns the number of arrivals awaited: start at BASE, pass it on."""
    if threads == 1:
        return goal
    goal += threads
    atomic_add(shared + ARRIVALS, 1)
    spins = 0
    while atomic_load(shared + ARRIVALS) < goal:
        pause()
        spins += 1
        if spins > SPINS_BEFORE_YIELD:
            sched_yield()
    return goal


@kernel
def publish(shared):
    """Leader: start the next step. All have arrived at the last barrier, though some may not have seen it yet."""
    atomic_store(shared + BASE, atomic_load(shared + ARRIVALS))
    atomic_add(shared + JOB, 1)


@kernel
def await_job(shared, thread, seen):
    """Helper: the number of the next step, or -1 after QUIT, or `seen` when it parked for lack of work."""
    spins = 0
    while True:
        if atomic_load(shared + QUIT) != 0:
            return -1
        job = atomic_load(shared + JOB)
        if job != seen:
            return job
        pause()
        spins += 1
        if spins > SPINS_BEFORE_YIELD:
            sched_yield()
        if spins > SPINS_BEFORE_PARKING:
            atomic_store(shared + PARKED + LINE * thread, 1)
            # A step published before the flag was set would find nobody to wake us.
            if atomic_load(shared + JOB) == seen and atomic_load(shared + QUIT) == 0:
                return seen
            atomic_store(shared + PARKED + LINE * thread, 0)
