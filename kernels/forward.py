"""One step: a ragged batch through all layers to the chosen tokens, in one call that never needs the interpreter.

Every thread walks the program (see program.py) and does its share of each operation; a barrier follows each, save
those that work on a single row: there every thread does all of it, and writes what the others write.
"""

from numba import carray

from puma.kernels import program as at
from puma.kernels.batch_attention import SHAPE_FIELDS, attend_batch, fold_batch
from puma.kernels.compile import entry, kernel
from puma.kernels.matmul import MATRIX_FIELDS
from puma.kernels.operations import (
    embed_rows,
    gated_rows,
    multiply_rows,
    norm_rows,
    quantise_rows,
    rotate_rows,
    sample_rows,
    select_rows,
)
from puma.kernels.parts import TABLE, WORD, part
from puma.kernels.step import ROWS, SAMPLE_TOTAL, STEP_FIELDS
from puma.kernels.team import BASE, atomic_load, await_job, barrier, publish
from puma.kernels.vectors import float_of_bits, words


@part(WORD(WORD, WORD, TABLE, TABLE, TABLE, TABLE, TABLE, WORD, WORD, WORD, WORD), cost=11)
def attend(thread, threads, machine, step, shape, source, out, keys, values, scratch, goal):
    """Attention of all runs; the decode runs' spans are folded once all threads have done theirs."""
    shared, partials = machine[at.SHARED], machine[at.PARTIALS]
    spans = attend_batch(thread, threads, step, shape, source, keys, values, partials, out, scratch)
    if spans:
        goal = barrier(shared, threads, goal)
        fold_batch(thread, threads, step, shape, partials, out)
    return goal


@kernel
def forward(thread, threads, machine):
    """This thread's part of a step."""
    program = carray(words(machine[at.PROGRAM]), (machine[at.OPERATIONS], at.OPERATION_FIELDS))
    matrices = carray(words(machine[at.MATRICES]), (machine[at.MATRIX_TOTAL], MATRIX_FIELDS))
    buffers = carray(words(machine[at.BUFFERS]), (machine[at.BUFFER_TOTAL], at.BUFFER_FIELDS))
    shape, step = carray(words(machine[at.SHAPE]), SHAPE_FIELDS), carray(words(machine[at.STEP]), STEP_FIELDS)
    shared = machine[at.SHARED]
    scratch = machine[at.SCRATCH] + thread * machine[at.SCRATCH_STRIDE]
    goal = atomic_load(shared + BASE)
    rows = step[ROWS]
    part, parts = (0, 1) if rows == 1 else (thread, threads)
    for index in range(program.shape[0]):
        operation = program[index]
        code = operation[at.CODE]
        source, out = buffers[operation[at.IN]], buffers[operation[at.OUT]]
        matrix, outlier = matrices[operation[at.MATRIX]], float_of_bits(operation[at.OUTLIER])
        keys = machine[at.KEYS] + operation[at.LAYER] * machine[at.LAYER_BYTES]
        values = machine[at.VALUES] + operation[at.LAYER] * machine[at.LAYER_BYTES]
        if code == at.EMBED:
            embed_rows(thread, threads, step, matrix, out)
        elif code == at.NORM:
            epsilon = float_of_bits(operation[at.PARAMETER])
            norm_rows(part, parts, rows, source, out, operation[at.VECTOR], epsilon, outlier)
        elif code in (at.MULTIPLY, at.ADD):
            multiply_rows(thread, threads, rows, source, matrix, out, code == at.ADD)
        elif code == at.GATED:
            gated_rows(thread, threads, rows, source, matrix, matrices[operation[at.SECOND]], out, scratch)
        elif code == at.ROTATE:
            cosines, sines = machine[at.COSINES], machine[at.SINES]
            rotate_rows(thread, threads, step, shape, source, keys, values, cosines, sines)
        elif code == at.ATTEND:
            goal = attend(thread, threads, machine, step, shape, source, out, keys, values, scratch, goal)
        elif code == at.QUANTISE:
            quantise_rows(part, parts, rows, source, outlier)
        elif code == at.SELECT:
            select_rows(thread, threads, step, source, out)
            rows = step[SAMPLE_TOTAL]
            part, parts = (0, 1) if rows == 1 else (thread, threads)
        elif code == at.SAMPLE:
            weights = machine[at.WEIGHTS] + thread * machine[at.WEIGHTS_STRIDE]
            sample_rows(thread, threads, step, source, weights)
        if parts == threads or code not in (at.NORM, at.QUANTISE):
            goal = barrier(shared, threads, goal)


@entry("int64(int64, int64, int64, int64)", cost=6)
def run(thread, threads, seen, machine_address):
    """Thread 0: run the step and return 0. Others: step after step; when idle, the newest one's number, at the end -1.

    Both stand in one function so that `forward` is compiled once.
    """
    machine = carray(words(machine_address), at.MACHINE_FIELDS)
    while True:
        if thread == 0:
            publish(machine[at.SHARED])
        else:
            job = await_job(machine[at.SHARED], thread, seen)
            if job == seen or job < 0:
                return job
            seen = job
        forward(thread, threads, machine)
        if thread == 0:
            return 0
